"""Batches in one compiled call: golden's items, whatever comes; what it refuses is as if it had not been tried."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.cpu import CpuDevice, fused_batch
from splitjoin.engines.cpu.fused_batch import FusedBatch
from splitjoin.engines.cpu.fused_links import Number
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.tuning import DEFAULTS, Tuning
from splitjoin.lang.query import Query
from tests.support.sampling import at_length

R, S = (pa.schema([("ts", pa.int64()), (key, pa.int32()), (other, pa.float64())])
        for key, other in (("x", "y"), ("a", "b")))
CONDITIONS = ("abs(r.x - s.a) <= 3", "abs(r.x - s.a) <= 2 AND abs(r.y - s.b) <= 9", "r.x = s.a")
WINDOWS = ("ROWS 40", "RANGE 30", "ROWS 25 RANGE 60", ("ROWS 7", "RANGE 45"))


class Counted:
    """What became of the batches that were tried."""

    def __init__(self) -> None:
        self.joined = self.shared = self.refused = self.stopped = self.shared_stopped = 0


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    found, join, resume = Counted(), FusedBatch.join, FusedBatch._resume

    def counting(self: FusedBatch, *arguments: Any) -> Any:
        joined = join(self, *arguments)
        found.joined += joined is not None
        found.shared += joined is not None and self._team.size > 1
        found.refused += joined is None
        return joined

    def resuming(self: FusedBatch, *arguments: Any) -> Any:
        found.stopped += 1
        found.shared_stopped += self._team.size > 1
        return resume(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(FusedBatch, "join", counting)
        patch.setattr(FusedBatch, "_resume", resuming)
        yield found


def tables(chance: np.random.Generator, n: int, wide: int, nulls: bool) -> tuple[pa.Table, pa.Table]:
    """Keys of some values, that rise in one case of three; with NULL in some places of R's."""
    found = []
    for schema in (R, S):
        key = chance.integers(0, wide, n)
        if chance.random() < 0.3:
            key = key // 4 + np.arange(n) * wide // n
        hidden = chance.random(n) < 0.01 if nulls and schema is R else np.zeros(n, np.bool_)
        found.append(pa.table([pa.array(np.zeros(n, np.int64)), pa.array(key.astype(np.int32), mask=hidden),
                               pa.array(chance.integers(0, wide, n) / 4)], schema=schema))
    return found[0], found[1]


def play(seed: int, monkeypatch: pytest.MonkeyPatch, *, small: bool, batches: int = 30) -> Counted:
    """A session of random batches beside golden, or beside nested loops for more tuples."""
    chance, numbers = random.Random(seed), np.random.default_rng(seed)
    with monkeypatch.context() as patch, counted(patch) as found:
        tuning = DEFAULTS
        if small:  # all that is full, or due, is so soon
            tuning = Tuning(choice_arrivals=chance.choice((300, 1 << 20)), check_arrivals=50, slack=4,
                            room=chance.choice((1, 64)), grid_spare=0, share=1e-3, step=1e-3, part_arrivals=1,
                            shared_arrivals=chance.choice((8, 4096)))
        n = 60 * batches
        r, s = tables(numbers, n, chance.choice((20, 400)), chance.random() < 0.3)
        query = splitjoin.query(R, S, on=chance.choice(CONDITIONS), window=chance.choice(WINDOWS), time="ts",
                                order=chance.choice(("total", "none", "outer(3)")))
        share, at_r, at_s, time = chance.choice((0.5, 0.8, 0.05)), 0, 0, 0
        other = (GoldenDevice() if small else CpuDevice(engine="nested", threads=1)).open(query)
        threads = chance.choice((1, 1, 2, 3)) if small else 1
        with CpuDevice(engine="index", threads=threads, tuning=tuning).open(query) as session:
            for _ in range(batches):
                stream = (numbers.random(chance.randint(1, 60)) < share).astype(np.uint8)
                ts = time + np.cumsum(numbers.integers(0, 3, len(stream)))
                time, n_s = int(ts[-1]), int(stream.sum())
                part = Arrivals(stream, ts, r.slice(at_r, len(stream) - n_s), s.slice(at_s, n_s))
                at_r, at_s = at_r + len(stream) - n_s, at_s + n_s
                for one in (session, other):
                    one.push(part)
                assert session.poll().tolist() == other.poll().tolist(), seed
            assert session.flush().tolist() == other.flush().tolist(), seed
            got, wanted = session.counters(), other.counters()
            assert {**got, "candidates": 0} == {**wanted, "candidates": 0}, seed
    return found


@pytest.mark.parametrize("seeds", [range(8), at_length(range(8, 2000))], ids=["few", "many"])
def test_random_batches(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    of = [play(seed, monkeypatch, small=True) for seed in seeds]
    joined, shared, refused, stopped, shared_stopped = (sum(getattr(one, name) for one in of) for name in (
        "joined", "shared", "refused", "stopped", "shared_stopped"))
    assert joined > 10 * len(of)
    assert shared > 2 * len(of)
    assert refused > len(of)
    assert stopped > len(of) // 4
    assert shared_stopped


def shift_starts(find: Callable[..., Any]) -> Callable[..., Any]:
    """What is refused has moved the windows."""
    def found(*arguments: Any) -> Any:
        moving = arguments[1].moving
        before = moving.copy()
        answer = find(*arguments)
        if answer == fused_batch._REFUSED:
            moving[:] = before + 3
        return answer
    return found


def forget_rows(find: Callable[..., Any]) -> Callable[..., Any]:
    """Row ids are one too low from the second batch on."""
    def found(*arguments: Any) -> Any:
        numbers = arguments[0].numbers
        numbers[Number.ROW_R] -= numbers[Number.ROW_R] > 60
        return find(*arguments)
    return found


@pytest.mark.parametrize("fault", [shift_starts, forget_rows])
def test_planted_faults_are_found(fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_batch, "find_matches", fault(fused_batch.find_matches))

    def all_seeds() -> None:
        for seed in range(25):
            play(seed, monkeypatch, small=True)

    with pytest.raises(AssertionError):
        all_seeds()


def joined_by(query: Query, parts: list[Arrivals], monkeypatch: pytest.MonkeyPatch, *, whole: bool) -> tuple[Any, int]:
    """The items of ``parts``, by one call where that can be if ``whole``, and how many batches were joined so."""
    with monkeypatch.context() as patch, counted(patch) as found, CpuDevice(
            engine="index", threads=1).open(query) as session:
        if not whole:
            patch.setattr(FusedBatch, "join", lambda *_: None)
        for part in parts:
            session.push(part)
        return session.flush().tolist(), found.joined


def part_of(keys: npt.NDArray[Any], first: int, **types: pa.DataType) -> Arrivals:
    """Both streams in turn, with these keys, from time ``first`` on."""
    times = np.arange(first, first + len(keys))
    r, s = (pa.table({"ts": times, schema.names[1]: pa.array(keys, types.get("key", pa.int32())),
                      schema.names[2]: times / 2}) for schema in (R, S))
    return Arrivals(np.tile(np.array([0, 1], np.uint8), len(keys)), np.repeat(times, 2), r, s)


def test_columns_of_other_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other orders of columns: by parts. NULL, several chunks and arrays that cannot be written to: all the same."""
    query = splitjoin.query(R, S, on=CONDITIONS[0], window="RANGE 50", time="ts")
    parts = [part_of(np.arange(40) % 11, 40 * k) for k in range(12)]
    one = parts[3]
    parts[3] = Arrivals(one.stream, one.ts, one.r.set_column(1, "x", pa.array([None, *range(39)], pa.int32())), one.s)
    one = parts[5]
    parts[5] = Arrivals(one.stream, one.ts, pa.concat_tables([one.r.slice(0, 9), one.r.slice(9)]), one.s)
    one = parts[7]
    parts[7] = Arrivals(one.stream, one.ts, one.r.select(["x", "y", "ts"]), one.s)
    one = parts[9]
    assert one.ts is not None
    one.stream.flags.writeable = one.ts.flags.writeable = False
    whole, joined = joined_by(query, parts, monkeypatch, whole=True)
    assert whole == joined_by(query, parts, monkeypatch, whole=False)[0]
    assert 7 <= joined <= 10


def test_chunks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate leaves tuples for the next batch, so that streams come in chunks all the time."""
    query = splitjoin.query(R, S, on=CONDITIONS[0], window="RANGE 50", time="ts")
    parts = [part_of(np.arange(40) % 11, 40 * k) for k in range(12)]
    chunks = [Arrivals(one.stream, one.ts, *(
        pa.concat_tables([t.slice(0, cut), t.slice(cut, 0), t.slice(cut)])
        for t, cut in ((one.r, 39 - k), (one.s, 3 * k)))) for k, one in enumerate(parts)]
    whole, joined = joined_by(query, parts, monkeypatch, whole=True)
    assert (whole, joined) == joined_by(query, chunks, monkeypatch, whole=True)
    assert whole == joined_by(query, chunks, monkeypatch, whole=False)[0]
    assert joined >= 8


def test_tables_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code learns from Arrow where columns lie, and keeps no table alive."""
    query, before = splitjoin.query(R, S, on=CONDITIONS[0], window="RANGE 50", time="ts"), pa.total_allocated_bytes()
    with counted(monkeypatch) as found, CpuDevice(engine="index", threads=1).open(query) as session:
        for k in range(12):
            session.push(part_of(np.arange(4000), 4000 * k))
        assert pa.total_allocated_bytes() - before < 4 * 32_000  # of 12 parts' keys
    assert found.joined >= 8
