"""Hand-over: whatever the order of accesses, the threads of a job have different numbers, and its block stays as long
as one of them is inside.

A twin in Python does what `splitjoin.engines.cpu.handover` does, and yields before each access to the board, so that a
seed chooses the order of all accesses. Faults that are planted in the twin are found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from splitjoin.engines.cpu import handover
from splitjoin.engines.cpu.block import Block, Field, Job, entry_of, run_jobs
from splitjoin.engines.cpu.handover import BLOCK, ENTRY, INSIDE, JOBS, NUMBER, OPEN, SIZE, make_board
from splitjoin.engines.cpu.helpers import Team
from splitjoin.engines.cpu.jit import compiled
from tests.support.sampling import at_length


class Play:
    """One thread that shares jobs of random sizes, and helpers that look; each uses its block in several steps."""

    def __init__(self, seed: int, faults: frozenset[str]):
        self.chance, self.faults, self.board = random.Random(seed), faults, make_board()
        self.alive: int | None = None  # the job whose block is there
        self.numbers: dict[int, list[int]] = {}

    def use(self, block: int, number: int) -> Iterator[None]:
        """What an entry does."""
        self.numbers.setdefault(block, []).append(number)
        for _ in range(self.chance.randrange(3)):
            assert self.alive == block, "the block is gone"
            yield

    def first(self, jobs: int) -> Iterator[None]:
        """As `handover.share`, for jobs with numbers from 1 on."""
        board = self.board
        for job in range(1, jobs + 1):
            self.alive = job
            for entry, value in ((ENTRY, job), (BLOCK, job), (SIZE, self.chance.randrange(1, 4)), (NUMBER, 1)):
                yield
                board[entry] = value
            yield
            board[JOBS] += 1
            yield
            board[OPEN] = board[JOBS]
            yield from self.use(job, 0)
            yield
            board[OPEN] = 0
            while True:
                yield
                if board[INSIDE] == 0 or "leave" in self.faults:
                    break
            self.alive = None

    def helper(self) -> Iterator[None]:
        """As `handover.attend`."""
        board, seen = self.board, 0
        for _ in range(30):
            yield
            if board[OPEN] in (0, seen):
                continue
            yield
            job = board[OPEN]
            if "late" not in self.faults:
                board[INSIDE] += 1
                yield
                job = board[OPEN]
            if job not in (0, seen):
                yield
                number = int(board[NUMBER])
                board[NUMBER] += 1
                yield
                if number < board[SIZE] or "size" in self.faults:
                    yield
                    yield from self.use(int(board[BLOCK]), number)
                seen = int(job)
            yield
            if "late" not in self.faults:
                board[INSIDE] -= 1

    def run(self) -> None:
        """All threads, in a random order of steps."""
        threads = [self.first(3), *(self.helper() for _ in range(self.chance.randrange(1, 4)))]
        sizes: dict[int, int] = {}
        while threads:
            one = self.chance.choice(threads)
            for _ in range(self.chance.choice((1, 1, 4))):
                if next(one, False) is False:
                    threads.remove(one)
                    break
            sizes[int(self.board[BLOCK])] = int(self.board[SIZE])
        for block, numbers in self.numbers.items():
            assert sorted(numbers) == list(range(len(numbers))), "a number is given twice"
            assert len(numbers) <= max(sizes[block], 1), "more threads than asked for"
        assert self.board[INSIDE] == 0


@pytest.mark.parametrize("seeds", [range(300), at_length(range(300, 10_300))], ids=["few", "many"])
def test_every_interleaving_leaves_blocks_alone(seeds: range) -> None:
    for seed in seeds:
        Play(seed, frozenset()).run()


@pytest.mark.parametrize("fault", ["leave", "late", "size"])
def test_planted_faults_are_found(fault: str) -> None:
    def wrong(seed: int) -> bool:
        try:
            Play(seed, frozenset([fault])).run()
        except AssertionError:
            return True
        return False

    assert any(wrong(seed) for seed in range(300))


@compiled
def add_part(part: int, values: np.ndarray, sums: np.ndarray, parts: int) -> None:
    a, b = len(values) * part // parts, len(values) * (part + 1) // parts
    sums[part] += values[a:b].sum()


@compiled
def fail(part: int, values: np.ndarray) -> None:
    if values[part] == 0:
        raise ValueError


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_jobs_run_in_phases(threads: int) -> None:
    """Compiled: each part once; the second phase reads what the first has written."""
    team, fields = Team(threads), (Field("values"), Field("sums"), Field("parts", dimensions=0))
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
    team, fields = Team(threads), (Field("values"),)
    block = Block(fields)
    block.put("values", np.array([1, 1, 0, 1]))
    with pytest.raises(RuntimeError, match="compiled loop failed"):
        run_jobs(team, [Job(entry_of(fail, fields), block, 4)])
    team.close()


def test_a_block_takes_what_its_fields_say() -> None:
    block = Block((Field("values", "uint32"), Field("n", dimensions=0)))
    assert block.put("values", values := np.arange(3, dtype=np.uint32))
    assert not block.put("values", values)
    with pytest.raises(AssertionError, match="values"):
        block.put("values", np.arange(3))
    assert handover.address_of(values) == values.ctypes.data
    assert handover.address_of(values[:0]) == values.ctypes.data
