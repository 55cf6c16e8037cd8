"""A batch of several threads in one call: whatever the order of accesses, each task is done once, and behind all tasks
of the phases before, those of earlier entries included, though all batches have the same controls.

The library's loops run, as generators (`interleaving`), so that a seed chooses the order of all accesses. Faults that
are planted in their source are found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from splitjoin.engines.compiled.helpers import CALLED, INSIDE, make_board
from splitjoin.engines.cpu.tasks import CONTROL
from tests.support.interleaving import Steps, in_random_order, interleaved
from tests.support.sampling import at_length

from .test_handover import FAULTS as HANDOVER
from .test_tasks import FAULTS as TICKETS

#: What is planted in the source.
FAULTS = {name: HANDOVER[name] for name in ("leave", "late")} | {name: TICKETS[name] for name in ("phases", "exchange")}


class Play:
    """The first thread runs batches of two entries, each with phases of tasks, by up to three threads."""

    def __init__(self, seed: int, fault: str | None = None):
        chance = self.chance = random.Random(seed)
        self.board, self.size, self.patient = make_board(), chance.randrange(2, 4), chance.random() < 0.5
        self.loops = interleaved(FAULTS)(self.call, fault)
        self.controls = np.zeros((2, CONTROL), np.int64)
        self.limits = [np.cumsum([chance.randrange(1, 4) for _ in range(chance.randrange(1, 4))]) for _ in range(2)]
        self.done: list[tuple[int, int, int]] = []  # batch, entry and phase of all tasks that have ended
        self.begun: set[tuple[int, int, int]] = set()
        self.batch = 0
        self.alive: int | None = None  # the block that is there

    def call(self, entry: int, number: int, block: int) -> Steps:
        """What an entry does: its tasks."""
        assert self.alive == block, "the block is gone"
        control, limits = self.controls[entry], self.limits[entry]
        while True:
            task = yield from self.loops["claim"](control, limits, number)
            if task < 0:
                return 1
            batch, phase = self.batch, int(np.searchsorted(limits, task, side="right"))
            assert (batch, entry, int(task)) not in self.begun, "a task is done twice"
            self.begun.add((batch, entry, int(task)))
            for before in range(phase):
                tasks = int(limits[before] - (limits[before - 1] if before else 0))
                assert self.done.count((batch, entry, before)) == tasks, "a phase begins too early"
            for _ in range(self.chance.randrange(8)):
                yield
            assert self.batch == batch, "the batch is gone"
            self.done.append((batch, entry, phase))
            yield from self.loops["complete"](control, limits)

    def first(self) -> Steps:
        """The thread whose batches these are."""
        for self.batch in range(3):
            for entry in range(2):
                self.alive = 2 * self.batch + entry
                yield from self.loops["reset"](self.controls[entry], self.limits[entry], self.patient)
                yield from self.loops["share"](self.board, entry, self.alive, self.size)
                self.alive = None
                ended = sum(of[:2] == (self.batch, entry) for of in self.done)
                assert ended == self.limits[entry][-1], "a task is left"

    def helper(self) -> Steps:
        """A helper that is called twice."""
        for _ in range(2):
            yield from self.loops["summon"](self.board, int(self.board[CALLED]) + 1)
            yield from self.loops["attend"](self.board, self.chance.randrange(1, 80))

    def run(self) -> None:
        """All threads, in a random order of steps."""
        threads: list[Iterator[None]] = [self.first(), *(self.helper() for _ in range(self.chance.randrange(1, 4)))]
        self.chance.shuffle(threads)
        for _ in in_random_order(threads, self.chance):
            pass
        assert self.board[INSIDE] == 0


@pytest.mark.parametrize("seeds", [range(150), at_length(range(150, 10_150))], ids=["few", "many"])
def test_every_interleaving_is_exact(seeds: range) -> None:
    for seed in seeds:
        Play(seed).run()


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    def wrong(seed: int) -> bool:
        try:
            Play(seed, fault).run()
        except (AssertionError, IndexError):
            return True
        return False

    assert any(wrong(seed) for seed in range(300))
