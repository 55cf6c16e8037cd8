"""`Team`: helpers share work, and one of them may fail."""

from __future__ import annotations

from pathlib import Path

from splitjoin.engines.compiled.helpers import Team

from ..support.scheduler import Scheduler


class _Stopped(BaseException):
    """Ends a call, as SystemExit does."""


def team(scheduler: Scheduler, folder: Path) -> None:
    """Each number is called at most once, and all are unless one fails, whose exception comes. Helpers end with the
    team, whether somebody closes or drops it.
    """
    chance, closes = scheduler.chance, scheduler.chance.random() < 0.7
    made = Team(chance.randint(2, 4), awake=4)
    for _ in range(chance.randint(1, 4)):
        n, fails = chance.randint(0, 8), chance.choice([None, None, 0, 1, 3])
        called: list[int] = []

        def work(i: int, fails: int | None = fails, called: list[int] = called) -> int:
            called.append(i)
            scheduler.step()
            if i == fails:
                raise chance.choice([KeyError(i), _Stopped])
            return i * i

        try:
            found = made.map(work, range(n))
            assert found == [i * i for i in range(n)]
            assert fails is None or fails >= n or n == 0
        except (KeyError, _Stopped):
            assert fails in called
            closes = True  # the traceback holds the team
        assert len(called) == len(set(called))
        begun: list[int] = []
        made.run(begun.append)
        assert begun[0] == 0 or 0 in begun
        assert len(begun) == len(set(begun)) <= made.size
    helpers = list(made._helpers)
    if closes:
        made.close()
    del made
    for helper in helpers:
        helper.join()
