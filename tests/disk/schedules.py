"""Schedules: what happens to a subject's files at which call, drawn by a seed, and how a failure is replayed."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from splitjoin.base.disk import using
from splitjoin.base.errors import SplitJoinError

from ..support.simulated_disk import FAULTS, Ended, SimulatedDisk
from .epochs import EpochsSubject
from .files import CacheSubject, ResultsSubject, StatesSubject

#: A file system in memory, where there is one.
_FAST = "/dev/shm"
#: A call, by its number, or by its name and its number among those of the name.
Place = int | tuple[str, int]


class Subject(Protocol):
    """Files that product code writes, and what must be true of them."""

    def live(self) -> None:
        """One process. Raises `SplitJoinError` or OSError where a fault comes before there is anything to go on with,
        KeyboardInterrupt likewise, and `Ended`.
        """

    def end(self) -> None:
        """Let go what the system lets go when a process ends."""

    def look(self) -> None:
        """Check what readers see, in a process of its own."""

    def finish(self) -> None:
        """Check that all is well on a disk that is well."""


SUBJECTS: dict[str, Callable[[Path, random.Random], Subject]] = {
    "epochs": EpochsSubject, "results": ResultsSubject, "states": StatesSubject, "cache": CacheSubject}


@dataclass(frozen=True)
class Failure:
    """A schedule that failed: why, the calls of the process, and the command that replays it."""

    why: str
    calls: tuple[str, ...]
    replay: str


def random_schedule(name: str, seed: int) -> Failure | None:
    """Run one schedule: up to three processes, each with up to three faults or streaks of them, power cuts between."""
    chance = random.Random(seed)

    def faults() -> Mapping[Place, str]:
        made: dict[Place, str] = {}
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            at, word, streak = chance.randint(1, 60), chance.choice(FAULTS), chance.choice([1, 1, 1, 2, 10])
            if chance.random() < 0.5:
                made |= dict.fromkeys(range(at, at + streak), word)
            else:  # where it matters
                kind, at = chance.choice(["rename", "sync folder", "sync", "write"]), chance.randint(1, 16)
                made |= {(kind, n): word for n in range(at, at + streak)}
        return made

    return _run(name, chance, [faults() for _ in range(chance.randint(1, 3))],
                f"python -m tests.disk {name} --seed {seed} --schedules 1")


def every_call(name: str, faults: Iterable[str] = FAULTS) -> Iterable[Failure]:
    """The failures among schedules with one of ``faults`` at each call of a subject's second process, or of its first
    one if the second has nothing to do.
    """
    replay = f"python -m tests.disk {name} --every-call"
    counts: list[int] = []
    _run(name, random.Random(0), [{}, {}], replay, counts, cuts=1.0)
    first, second = counts
    for word in faults:
        for call in range(1, (second or first) + 1):
            failure = _run(name, random.Random(0), [*([{}] if second else []), {call: word}], replay, cuts=1.0)
            if failure is not None:
                yield failure


def run(name: str, seeds: Iterable[int]) -> Iterable[Failure]:
    """The failures among random schedules."""
    return (failure for seed in seeds if (failure := random_schedule(name, seed)) is not None)


def _run(name: str, chance: random.Random, lives: list[Mapping[Place, str]], replay: str,
         counts: list[int] | None = None, *, cuts: float = 0.6) -> Failure | None:
    """Run a schedule: ``lives``, what happens in each process; ``cuts``, how probable a power cut is behind each.
    ``counts`` gets the number of calls of each.
    """
    at = Path(tempfile.mkdtemp(prefix="splitjoin-disk-", dir=_FAST if os.path.isdir(_FAST) else None)).resolve()
    disk = SimulatedDisk(at / "root", chance)
    subject = SUBJECTS[name](disk.root, chance)
    calls: list[str] = []
    try:
        for faults in lives:
            disk.faults = faults
            with using(disk):
                with suppress(Ended, SplitJoinError, OSError, KeyboardInterrupt):
                    subject.live()
                calls += ["process:", *disk.calls]
                if counts is not None:
                    counts.append(len(disk.calls))
                disk.faults = {}
                subject.end()
            disk.restart()
            subject.look()
            if chance.random() < cuts:
                calls.append("power cut")
                disk.cut_power()
                subject.look()
        with using(disk):
            subject.finish()
    except Exception:
        return Failure(traceback.format_exc(), tuple(calls), replay)
    finally:
        disk.restart()
        shutil.rmtree(at)
    return None
