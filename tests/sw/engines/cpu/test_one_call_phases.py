"""A batch of several threads in one call: whatever the order of accesses, each task is done once, and behind all tasks
of the phases before, those of earlier entries included, though all batches have the same controls.

The sources of `one_call_loops`, `handover` and `tickets` run, as generators (`interleaving`), so that a seed chooses
the order of all accesses. Faults that are planted in them are found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from splitjoin.engines.compiled import handover
from splitjoin.engines.compiled.handover import CALLED, INSIDE, make_board
from splitjoin.engines.cpu import one_call_loops, tickets
from splitjoin.engines.cpu.tickets import CONTROL
from tests.support.interleaving import Steps, generators, in_random_order
from tests.support.sampling import at_length

Fault = tuple[str, str]
#: What is planted in the sources of `handover` and of `tickets`.
FAULTS: dict[str, tuple[Fault | None, Fault | None]] = {
    "leave": (("while atomic_load(board, INSIDE):", "while False:"), None),
    "late": (("        atomic_add(board, INSIDE, 1)\n        job = atomic_load(board, OPEN)\n",
              "        job = atomic_load(board, OPEN)\n        atomic_add(board, INSIDE, 1)\n"), None),
    "phases": (None, ("if first < last:", "if True:")),
    "exchange": (None, ("if atomic_exchange(control, _NEXT, left, then):",
                        "if not atomic_store(control, _NEXT, then):"))}


class Play:
    """The first thread runs batches of two entries, each with phases of tasks, by up to three threads."""

    def __init__(self, seed: int, faults: tuple[Fault | None, Fault | None] = (None, None)):
        chance = self.chance = random.Random(seed)
        self.board, self.size, self.patient = make_board(), chance.randrange(2, 4), chance.random() < 0.5
        given = {"call_entry": self.call, "_LOOKS": 2}
        self.hand = generators(handover, ("share", "attend", "summon"), fault=faults[0], **given)
        self.tickets = generators(tickets, ("claim", "complete"), fault=faults[1], _LOOKS=2)
        self.loops = generators(one_call_loops, ("_share",), share=self.hand["share"], call_entry=self.call,
                                reset=getattr(tickets.reset, "py_func", tickets.reset))
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
            task = yield from self.tickets["claim"](control, limits, number)
            if task < 0:
                return False
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
            yield from self.tickets["complete"](control, limits)

    def first(self) -> Steps:
        """The thread whose batches these are."""
        for self.batch in range(3):
            for entry in range(2):
                self.alive = 2 * self.batch + entry
                yield from self.loops["_share"](self.board, self.size, self.patient, self.controls[entry],
                                                self.limits[entry], entry, self.alive)
                self.alive = None
                ended = sum(of[:2] == (self.batch, entry) for of in self.done)
                assert ended == self.limits[entry][-1], "a task is left"

    def helper(self) -> Steps:
        """A helper that is called twice."""
        for _ in range(2):
            yield from self.hand["summon"](self.board, int(self.board[CALLED]) + 1)
            yield from self.hand["attend"](self.board, self.chance.randrange(1, 80))

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
            Play(seed, FAULTS[fault]).run()
        except (AssertionError, IndexError):
            return True
        return False

    assert any(wrong(seed) for seed in range(300))
