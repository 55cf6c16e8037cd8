"""`MeasuredThreads`: one thread or several for a session's batches, by the time that batches with each have taken.

The estimate of a batch's work says how many threads it is worth dividing it for. But what they lose depends on the
machine: where two processors share no cache, a grid that one of them has written is far from the other, and two threads
may take longer than one. So a session compares both on its own batches, now and then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["MeasuredThreads"]

#: Batches of a turn, of which the first is not compared, as caches have to follow; and turns in a comparison.
_TURN, _TURNS = 3, 2
#: Batches between a comparison and the next one: at first, and at most. They double.
_SOON, _LATE = 64, 4096
#: Several threads must take less than this part of one thread's time.
_PAYS = 0.95
_NEVER = float("inf")


@dataclass
class _Batches:
    """A comparison of one thread with several, for batches of about one size.

    ``least``: seconds an arrival of one thread and of several, the least of each. ``is_one``: True if one thread goes
    on. ``counted``: batches since the last comparison; ``wait``: batches from one comparison to the next.
    """

    least: list[float] = field(default_factory=lambda: [_NEVER, _NEVER])
    is_one: bool = False
    counted: int = 0
    wait: int = 0


class MeasuredThreads:
    """Chooses between one thread and those that an estimate proposes, batch by batch."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Batches] = {}
        self._now: tuple[_Batches, int, int] | None = None

    def choose(self, several: int, arrivals: int) -> int:
        """The number of threads for a batch of so many ``arrivals``: 1 or ``several``, which an estimate proposes."""
        self._now = None
        if several == 1:
            return 1
        known = self._known.setdefault((arrivals.bit_length(), several), _Batches())
        turn = (known.counted - known.wait) // _TURN
        # A comparison begins with those that the estimate proposes.
        alone = known.is_one if turn < 0 else turn % _TURNS > 0
        size = 1 if alone else several
        self._now = known, size, arrivals
        return size

    def note(self, seconds: float) -> None:
        """Note the time of the batch for which `choose` was asked last."""
        if self._now is None:
            return
        known, size, arrivals = self._now
        at = known.counted - known.wait
        known.counted += 1
        if at < 0:
            return
        if at % _TURN:
            which = int(size > 1)
            known.least[which] = min(known.least[which], seconds / arrivals)
        if at + 1 == _TURN * _TURNS:
            one, several = known.least
            known.is_one = several > one * _PAYS
            known.least = [_NEVER, _NEVER]
            known.wait = min(max(2 * known.wait, _SOON), _LATE)
            known.counted = 0

    @property
    def is_one(self) -> bool:
        """True if one thread has been found faster, or not much slower, for batches like the last one."""
        return self._now is not None and self._now[0].is_one
