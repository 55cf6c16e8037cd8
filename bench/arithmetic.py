"""The speed-up of a compiled loop in registers alone, by a session's threads: the limit that the machine itself sets.

It reads and writes no memory between the ends of its tasks, and four chains of shifts keep the units of a core busy. So
two threads on one core gain little from each other, and its speed-up is about the number of cores, which may be half
that of processors; no batch of a join can be expected to scale further.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from bench.record import Recorder
from splitjoin.base.processors import processors
from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.cpu.tasks import Block, Job, run_jobs

#: Tasks that threads claim, and the steps of each, about 50 µs; times that are not counted, and that are.
TASKS, STEPS, WARM, TIMES = 64, 25_000, 2, 12
CLOCK = "arithmetic in registers alone: time by the clock of one thread over it, the median"
CPU = "arithmetic in registers alone: CPU seconds over those of one"


@numba.cfunc("int64(int64, int64)", nopython=True)
def arithmetic(task: Any, block: Any) -> Any:
    """Do ``task``: steps of four random numbers each (xorshift). ``block`` is not read."""
    a, b, c, d = np.uint64(task + 1), np.uint64(task + 2), np.uint64(task + 3), np.uint64(task + 4)
    for _ in range(STEPS):
        a ^= a << np.uint64(13)
        b ^= b << np.uint64(13)
        c ^= c << np.uint64(13)
        d ^= d << np.uint64(13)
        a ^= a >> np.uint64(7)
        b ^= b >> np.uint64(7)
        c ^= c >> np.uint64(7)
        d ^= d >> np.uint64(7)
        a ^= a << np.uint64(17)
        b ^= b << np.uint64(17)
        c ^= c << np.uint64(17)
        d ^= d << np.uint64(17)
    return np.int64(a ^ b ^ c ^ d != np.uint64(0))  # which it is, and no compiler knows


def measure_arithmetic(out: Recorder, threads: tuple[int, ...]) -> None:
    """Its speed-up, and its CPU time beside that of one thread, by numbers of ``threads``, the first of which is 1."""
    team = Team(max(threads))
    job = Job(arithmetic.address, Block(()), TASKS)
    clock, used = dict[int, float](), dict[int, float]()
    for n in threads:
        team.size = n
        took, began = [], 0.0
        for turn in range(WARM + TIMES):
            if turn == WARM:
                began = time.process_time()
            start = time.perf_counter()
            run_jobs(team, [job])
            took.append(time.perf_counter() - start)
        clock[n], used[n] = float(np.median(took[WARM:])), time.process_time() - began
    team.close()
    for n in threads:
        config = {"engine": "arithmetic alone", "threads": n, "processors": processors()}
        out.add("speedup", clock[threads[0]] / clock[n], "times", config, CLOCK)
        out.add("cpu_to_one_thread", used[n] / used[threads[0]], "times", config, CPU)
