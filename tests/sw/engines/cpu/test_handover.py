"""Hand-over: whatever the order of accesses, the threads of a job have different numbers, and its block stays as long
as one of them is inside.

The library's loops themselves run, as generators (`interleaving`), so that a seed chooses the order of all accesses.
Faults that are planted in their source are found.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from splitjoin.engines.compiled.helpers import CALLED, INSIDE, LEAVING, Team, make_board
from splitjoin.engines.cpu.tasks import Block, Field, Job, run_jobs
from splitjoin.engines.loops import address_of
from tests.support.interleaving import Steps, in_random_order, interleaved
from tests.support.sampling import at_length

#: What is planted in the source.
FAULTS = {
    "leave": ("    for (int64_t looks = 1; load(board, inside); looks++) look_again(looks);\n", ""),
    "late": ("""        add(board, inside, 1);
        job = load(board, open_job);
""", """        job = load(board, open_job);
        add(board, inside, 1);
"""),
    "size": ("if (number < load(board, job_size) && ", "if ("),
    "open": ("    store(board, open_job, 0);\n", ""),
    "number": ("const int64_t number = add(board, next_number, 1);",
               "const int64_t number = load(board, next_number); store(board, next_number, number + 1);")}


class Play:
    """One thread that shares jobs of random sizes, and helpers that look; each uses its block in several steps. A job's
    entry is its number, and its block is ten times that.
    """

    def __init__(self, seed: int, fault: str | None = None):
        self.chance, self.board = random.Random(seed), make_board()
        self.code = interleaved(FAULTS)(self.call, fault)
        self.alive: int | None = None  # the job whose block is there
        self.numbers: dict[int, list[int]] = {}
        self.sizes: dict[int, int] = {}

    def call(self, entry: int, number: int, block: int) -> Steps:
        """What an entry does."""
        assert block == 10 * entry, "an entry has the block of another one"
        self.numbers.setdefault(entry, []).append(number)
        for _ in range(self.chance.randrange(25)):
            assert self.alive == entry, "the block is gone"
            yield
        return 1

    def first(self, jobs: int) -> Steps:
        """The thread that shares jobs with numbers from 1 on."""
        for job in range(1, jobs + 1):
            self.alive, self.sizes[job] = job, self.chance.randrange(1, 4)
            self.board[LEAVING] = self.chance.randrange(2)  # a helper is lent
            done = yield from self.code["share"](self.board, job, 10 * job, self.sizes[job])
            assert done
            self.alive = None

    def helper(self) -> Steps:
        """A helper that is called twice."""
        for _ in range(2):
            yield from self.code["summon"](self.board, int(self.board[CALLED]) + 1)
            yield from self.code["attend"](self.board, self.chance.randrange(1, 80))

    def run(self) -> None:
        """All threads, in a random order of steps."""
        threads: list[Iterator[None]] = [self.first(3), *(
            self.helper() for _ in range(self.chance.randrange(1, 4)))]
        self.chance.shuffle(threads)
        for _ in in_random_order(threads, self.chance):
            pass
        for job, numbers in self.numbers.items():
            assert sorted(numbers) == list(range(len(numbers))), "a number is given twice"
            assert len(numbers) <= self.sizes[job], "more threads than asked for"
        assert self.board[INSIDE] == 0


@pytest.mark.parametrize("seeds", [range(300), at_length(range(300, 10_300))], ids=["few", "many"])
def test_every_interleaving_leaves_blocks_alone(seeds: range) -> None:
    for seed in seeds:
        Play(seed).run()


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    def wrong(seed: int) -> bool:
        try:
            Play(seed, fault).run()
        except AssertionError:
            return True
        return False

    assert any(wrong(seed) for seed in range(400))


ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def address(entry: Any) -> int:
    return ctypes.cast(entry, ctypes.c_void_p).value or 0


class Sums:
    """Jobs that add a part of ``values`` to each of ``sums``; what they are is in a block."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.entry = ENTRY(self._add)

    def job(self, values: np.ndarray, sums: np.ndarray) -> Job:
        block = Block((Field("values"),))
        block.put("values", values)
        self.of[block.address] = values, sums
        return Job(address(self.entry), block, len(sums))

    def _add(self, part: int, block: int) -> int:
        values, sums = self.of[block]
        a, b = (len(values) * n // len(sums) for n in (part, part + 1))
        sums[part] += values[a:b].sum()
        return 1


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_jobs_run_in_phases(threads: int) -> None:
    """Each part once; the second phase reads what the first has written."""
    team, adding, values = Team(threads, threads), Sums(), np.arange(1000)  # so many are awake, whatever there are
    for turn in range(40):
        sums, total = np.zeros(turn % 7 + 1, np.int64), np.zeros(1, np.int64)
        run_jobs(team, [adding.job(values, sums)], [], [adding.job(sums, total)])
        assert total[0] == values.sum()
        if turn == 20:
            team.run(lambda _: None)  # helpers are called away, and come back
    team.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failure_in_any_thread_is_raised(threads: int) -> None:
    team, entry = Team(threads, threads), ENTRY(lambda part, _: part != 2)
    with pytest.raises(RuntimeError, match="compiled loop failed"):
        run_jobs(team, [Job(address(entry), Block(()), 4)])
    team.close()


def test_no_more_helpers_are_woken_than_are_awake() -> None:
    """The work is divided for all threads."""
    for awake in (1, 3):
        team, adding, sums = Team(16, awake), Sums(), np.zeros(16, np.int64)
        for _ in range(5):
            run_jobs(team, [adding.job(np.arange(1000), sums)])
        assert sums.sum() == 5 * 499_500
        assert sums.all()
        assert len(team._helpers) == awake - 1
        team.close()


def test_a_block_takes_what_its_fields_say() -> None:
    block = Block((Field("values", "uint32"), Field("n", dimensions=0)))
    assert block.put("values", values := np.arange(3, dtype=np.uint32))
    assert not block.put("values", values)
    with pytest.raises(AssertionError, match="values"):
        block.put("values", np.arange(3))
    assert address_of(values) == values.ctypes.data
    assert address_of(values[:0]) == values.ctypes.data
