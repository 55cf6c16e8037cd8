"""Tickets: however threads are interleaved, each task is done once, after all tasks of the phases before.

The library's loops themselves run, as generators (`interleaving`), so that a seed chooses the order of all
accesses of all threads. A batch's step stores numbers and then probes them, as an index's does: the answer is exact
whatever the order. Faults that are planted in its source are found.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.cpu.tasks import PHASE, STOP, make_control, resume
from splitjoin.engines.loops import loops
from tests.support.interleaving import Steps, in_random_order, interleaved
from tests.support.sampling import at_length

NEXT, DONE = 0, 16

#: What is planted in the source.
FAULTS = {
    "phases": ("if (first < last) {", "if (true) {"),
    "exchange": ("if (exchange(control, next_task, left, then)) return task;",
                 "store(control, next_task, then); return task;"),
    "early": ("if (add(control, ended, 1) + 1 != load(control, phase_limit)) return;", "add(control, ended, 1);"),
    "lost": ("if (add(control, ended, 1) + 1 != load(control, phase_limit)) return;",
             "store(control, ended, load(control, ended) + 1);"
             "if (load(control, ended) != load(control, phase_limit)) return;"),
    "end": ("const int64_t limit = load(control, phase_limit);", "const int64_t limit = limits[0];"),
    "opened": ("        store(control, phase_limit, limits[phase]);\n", ""),
    "unstopped": (" || load(control, stopped)", "")}


class Job:
    """Numbers in steps: two tasks store the step's even and odd ones, others count the multiples of 3 up to each.

    ``full_at``: tasks that stop all threads the first time, as a grid that is full does.
    """

    def __init__(self, chance: random.Random, steps: int, probes: int, full_at: set[int]):
        self.limits = [n for step in range(steps) for n in ((probes + 2) * step + 2, (probes + 2) * (step + 1))]
        self.steps, self.probes, self.full_at = steps, probes, set(full_at)
        self.numbers = [[chance.randrange(100) for _ in range(6)] for _ in range(steps)]
        self.stored: list[int] = []
        self.answers: dict[int, list[int]] = {}
        self.done = [0] * self.limits[-1]

    def do(self, task: int) -> Generator[None, None, bool]:
        """Yield between the parts of a task, and return True if it is done."""
        step, at = divmod(task, self.probes + 2)
        if task in self.full_at:
            self.full_at.remove(task)
            return False
        if at < 2 and self.done[task] == 0:
            for number in self.numbers[step]:
                if number % 2 == at:
                    yield
                    self.stored.append(number)
        elif at >= 2:
            self.answers[task] = []
            for number in range(at, 100, 17):
                yield
                self.answers[task].append(sum(stored == number for stored in self.stored))
        self.done[task] += 1
        return True

    def expected(self) -> dict[int, list[int]]:
        """The answers of tasks that are done one after the other."""
        found, stored = {}, []
        for step in range(self.steps):
            stored += self.numbers[step]
            for at in range(2, self.probes + 2):
                found[step * (self.probes + 2) + at] = [stored.count(number) for number in range(at, 100, 17)]
        return found


def thread(number: int, code: Mapping[str, Callable[..., Steps]], control: Any, job: Job) -> Iterator[None]:
    limits = np.array(job.limits)
    while True:
        task = yield from code["claim"](control, limits, number)
        if task < 0:
            return
        if not (yield from job.do(task)):
            yield from code["stop"](control)
            return
        yield from code["complete"](control, limits)


def play(seed: int, code: Mapping[str, Callable[..., Steps]]) -> Job:
    """Run a job's threads in a random order of steps; some leave a while, as others take the processor."""
    chance = random.Random(seed)
    steps, probes = chance.randrange(1, 4), chance.randrange(1, 4)
    tasks = steps * (probes + 2)
    job = Job(chance, steps, probes, {chance.randrange(tasks) for _ in range(chance.randrange(3))})
    control = make_control(np.array(job.limits), patient=chance.random() < 0.5)
    for _ in range(9):
        threads = [thread(number, code, control, job) for number in range(chance.randrange(1, 5))]
        for _ in in_random_order(threads, chance):
            pass
        if not control[STOP]:
            break
        resume(control, np.array(job.limits))
    return job


def is_exact(job: Job) -> bool:
    """True if the answers are those of one thread, and every task was done."""
    return job.answers == job.expected() and all(job.done)


@pytest.mark.parametrize("seeds", [range(300), at_length(range(300, 10_300))], ids=["few", "many"])
def test_every_interleaving_is_exact(seeds: range) -> None:
    code = interleaved(FAULTS)()
    for seed in seeds:
        assert is_exact(play(seed, code)), seed


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    code = interleaved(FAULTS)(fault=fault)

    def wrong(seed: int) -> bool:
        try:
            return not is_exact(play(seed, code))
        except (AssertionError, IndexError):
            return True

    assert any(wrong(seed) for seed in range(300))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_compiled_tickets(threads: int) -> None:
    """All threads at once: each task is claimed once, in phases."""
    limits = np.cumsum(np.arange(1, 60) % 7 + 1)
    ended = np.zeros(limits[-1], np.int64)
    control, team = make_control(limits), Team(threads)

    def work(number: int) -> None:
        while (task := loops()["claim"](control, limits, number)) >= 0:
            phase = int(np.searchsorted(limits, task, side="right"))
            assert ended[:limits[phase - 1] if phase else 0].all()
            ended[task] += 1
            loops()["complete"](control, limits)

    team.run(work)
    team.close()
    assert (ended == 1).all()
    assert control[PHASE] == len(limits)


def test_a_stopped_phase_begins_again() -> None:
    limits = np.array([2, 5, 6])
    control = make_control(limits)

    def tasks(until: Callable[[int], bool]) -> list[int]:
        found = []
        while (task := loops()["claim"](control, limits, 0)) >= 0:
            found.append(task)
            if until(task):
                loops()["stop"](control)
                break
            loops()["complete"](control, limits)
        return found

    assert tasks(lambda task: task == 3) == [0, 1, 2, 3]
    assert loops()["claim"](control, limits, 0) == -1
    resume(control, limits)
    assert tasks(lambda task: False) == [2, 3, 4, 5]
    assert [int(n) for n in control[[NEXT, DONE, PHASE]]] == [6 << 31 | 6, 6, 3]
    assert loops()["claim"](control, limits, 1) == -1


def test_a_helper_that_waits_too_long_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = np.array([1, 2])
    control: Any = make_control(limits)
    assert loops()["claim"](control, limits, 0) == 0
    assert loops()["claim"](control, limits, 1) == -1  # task 0 has not ended
    loops()["complete"](control, limits)
    assert loops()["claim"](control, limits, 1) == 1


def test_two_threads_each_begin_at_an_end() -> None:
    """So each keeps to one stream's tasks as long as both are busy."""
    limits = np.array([4, 7])
    control: Any = make_control(limits)
    found = [int(loops()["claim"](control, limits, number)) for number in (0, 1, 0, 1)]
    assert found == [0, 3, 1, 2]
    for _ in found:
        loops()["complete"](control, limits)
    assert [int(loops()["claim"](control, limits, number)) for number in (1, 1, 0)] == [6, 5, 4]
