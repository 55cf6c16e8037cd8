"""Compile tiers: sessions begin by NumPy while another process compiles, which ends when a seed says, fails or dies."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import splitjoin
from splitjoin.base.threads import sleep
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.cpu import compilation
from splitjoin.engines.cpu.compilation import Compilation
from splitjoin.engines.cpu.numpy_session import NumpySession
from splitjoin.engines.cpu.tiered import TieredSession
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.tuning import Tuning

from ..support.scheduler import Scheduler
from .sessions import R, S, batches, together, tuples

__all__ = ["tiers"]

_NEVER = float("inf")


@dataclass
class _Job:
    """A process that compiles: when it ends, its status as of `os.waitpid`, and when its marker is in the cache."""

    marker: str
    ends: float
    status: int
    known: float


class _Machine:
    """The machine on which loops are compiled, of which two jobs may run at a time."""

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._jobs: list[_Job] = []

    def spawn(self, path: str, command: list[str], environment: object, **options: object) -> int:
        now, chance = self._scheduler.now, self._scheduler.chance
        running = [job for job in self._jobs if job.ends > now]
        assert len(running) < 2, "no more than two may compile at a time"
        if self._scheduler.buggify("no process"):
            raise OSError("there are too many processes")
        ends = chance.choice([now, now + chance.uniform(0, 1), now + chance.uniform(1, 8), _NEVER])
        status, known = chance.choice([
            (0, ends), (0, ends - chance.uniform(0, 1)), (0, ends + chance.uniform(0, 2)),  # in time, early, late
            (1 << 8, _NEVER), (9, _NEVER), (75 << 8, _NEVER), (0, _NEVER)])  # failed, died, busy, cache removed
        self._jobs.append(_Job(command[-1], ends, status, known))
        return len(self._jobs)

    def wait(self, pid: int, options: int) -> tuple[int, int]:
        assert options == os.WNOHANG
        job = self._jobs[pid - 1]
        self._scheduler.step()
        if job.ends > self._scheduler.now:
            return 0, 0
        job.ends = -1
        if self._scheduler.buggify("somebody else waited"):
            raise ChildProcessError("no child processes")
        return pid, job.status

    def find(self, marker: str) -> Path | None:
        return Path(marker) if any(job.marker == marker and job.known <= self._scheduler.now
                                   for job in self._jobs) else None


def tiers(scheduler: Scheduler, folder: Path) -> None:
    """Each session has golden's items and counters, and is compiled once its loops are known."""
    chance, machine = scheduler.chance, _Machine(scheduler)
    is_loaded = chance.random() < 0.7

    def join(number: int) -> None:
        # Each has a condition of its own, or shares that of another one.
        query = splitjoin.query(R, S, on=f"r.x = s.a AND r.ts > {-1 - number // chance.randint(1, 2)}",
                                window=f"RANGE {chance.choice([1, 5, 16])}", time="ts", order="total")
        n, reference = chance.randint(1, 15), GoldenDevice().open(query)
        compiling = Compilation(query, "auto", retry=chance.choice([0.1, 5.0]))
        tuning = Tuning(first_batch=chance.randint(1, 8), compiling_seconds=chance.choice([0.0, 0.05]),
                        loading_seconds=chance.choice([0.0, 1e-3]))
        with TieredSession(query, lambda: NumpySession(query), compiling, tuning) as session:
            for batch in batches(scheduler, n):
                arrivals = Arrivals(np.array([0, 1] * len(batch), np.uint8),
                                    np.arange(2 * batch.start, 2 * batch.stop), tuples("r", batch), tuples("s", batch))
                must_move = bool(len(batch)) and compiling.is_known and is_loaded
                session.push(arrivals)
                reference.push(arrivals)
                assert not must_move or session._second is not None
                if chance.random() < 0.5:
                    assert session.poll().tolist() == reference.poll().tolist()
                sleep(chance.choice([0.0, 0.1, 2.0]))
            assert session.flush().tolist() == reference.flush().tolist()
            counters = reference.counters()
            assert {name: session.counters()[name] for name in counters} == counters

    patches: list[Any] = [
        mock.patch.object(os, "posix_spawn", machine.spawn), mock.patch.object(os, "waitpid", machine.wait),
        mock.patch.object(compilation, "find", machine.find), mock.patch.object(compilation, "cache_folder"),
        mock.patch.object(compilation, "tell"), mock.patch.object(compilation, "_children", []),
        mock.patch.object(Compilation, "is_loaded", is_loaded)]
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        together(scheduler, *(lambda number=number: join(number) for number in range(chance.randint(1, 4))))
