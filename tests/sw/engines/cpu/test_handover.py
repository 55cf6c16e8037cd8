"""Hand-over: whatever the order of accesses, the threads of a job have different numbers, and its block stays as long
as one of them is inside.

The library's loops themselves run, as generators (`interleaving`), so that a seed chooses the order of all accesses.
Faults that are planted in their source are found.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator

import numpy as np
import pytest

from splitjoin.engines.compiled.handover import CALLED, INSIDE, LEAVING, make_board
from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.compiled.jit import compiled
from splitjoin.engines.cpu.block import Block, Field, Job, entry_of, run_jobs
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


@compiled
def add_part(part: int, values: np.ndarray, sums: np.ndarray, parts: int) -> None:
    a, b = len(values) * part // parts, len(values) * (part + 1) // parts
    sums[part] += values[a:b].sum()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_jobs_run_in_phases(threads: int) -> None:
    """Compiled: each part once; the second phase reads what the first has written."""
    # So many are awake, whatever this machine has.
    team, fields = Team(threads, threads), (Field("values"), Field("sums"), Field("parts", dimensions=0))
    entry, values = entry_of(add_part, fields), np.arange(1000)
    for turn in range(40):
        sums, total = np.zeros(turn % 7 + 1, np.int64), np.zeros(1, np.int64)
        first, second = Block(fields), Block(fields)
        first.put_all((("values", values), ("sums", sums), ("parts", len(sums))))
        second.put_all((("values", sums), ("sums", total), ("parts", 1)))
        run_jobs(team, [Job(entry, first, len(sums))], [], [Job(entry, second, 1)])
        assert total[0] == values.sum()
        if turn == 20:
            team.run(lambda _: None)  # helpers are called away, and come back
    team.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failure_in_any_thread_is_raised(threads: int) -> None:
    team, kind = Team(threads, threads), ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    entry = kind(lambda part, _: part != 2)
    with pytest.raises(RuntimeError, match="compiled loop failed"):
        run_jobs(team, [Job(ctypes.cast(entry, ctypes.c_void_p).value or 0, Block(()), 4)])
    team.close()


def test_no_more_helpers_are_woken_than_are_awake() -> None:
    """The work is divided for all threads."""
    fields = Field("values"), Field("sums"), Field("parts", dimensions=0)
    for awake in (1, 3):
        team, block, sums = Team(16, awake), Block(fields), np.zeros(16, np.int64)
        block.put_all((("values", np.arange(1000)), ("sums", sums), ("parts", 16)))
        for _ in range(5):
            run_jobs(team, [Job(entry_of(add_part, fields), block, 16)])
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
