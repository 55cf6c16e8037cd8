"""Tasks fold the aggregates of time partitions without pairs: the rows of the golden model, wherever the cuts are."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, UnsupportedError, unsigned
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Device
from splitjoin.joins.join import result_columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.rows.output import ResultNames
from splitjoin.rows.whole import WholeRows
from splitjoin.spark.placement import choose_device, folding
from splitjoin.spark.results import ResultRows
from splitjoin.spark.routes import TimeRoute
from splitjoin.spark.task import Task
from splitjoin_sim.pysim import PysimDevice

from ...support.sampling import at_length
from ...support.spark_streams import answer, stream

R, S = stream(3, 60, 60), stream(4, 80, 60)
FOLDED = {"count": "count(*)", "d": "count(DISTINCT s.day)", "sum": "sum(s.price)", "mean": "avg(s.y)",
          "last": "last(s.n)", "best": "argmax(s.day, s.x)"}


def made(query: dict[str, Any], r: pa.Table, s: pa.Table) -> Query:
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), **query)


def in_partitions(query: dict[str, Any], device: Device, r: pa.Table, s: pa.Table, starts: list[int]) -> pa.Table:
    """The rows of the tasks of all partitions, each of which gets the rows up to both windows before it."""
    join = made(query, r, s)
    made_rows = ResultRows(join, result_columns(join, r.schema, s.schema, ResultNames()), None)
    task = Task(join, device, {}, made_rows, {}, {}, TimeRoute(starts, {}))
    every, found = arrivals(join, r, s), []
    assert every.ts is not None
    length = (join.window_r.length or 0) + (join.window_s.length or 0)
    bounds = [-(2**62), *starts, 2**62]
    for n, (start, end) in enumerate(pairwise(bounds)):
        mine = (every.ts >= start - length) & (every.ts < end)
        stream, ts = every.stream[mine], every.ts[mine]
        part = Arrivals(stream, ts, every.r.filter(pa.array(mine[every.stream == 0])),
                        every.s.filter(pa.array(mine[every.stream == 1])))
        warm = [int(np.count_nonzero(ts[stream == side] < start)) for side in (0, 1)]
        found += task.join(n, part, *warm)
    return pa.Table.from_batches(found, made_rows.schema)


def plain(table: pa.Table) -> list[str]:
    return list(map(repr, table.to_pylist()))


@pytest.mark.parametrize("engine", ["auto", at_length("scale-oij")])
def test_engines_fold_partitions(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    for window in ({"r": "RANGE 3", "s": "RANGE 12"}, "RANGE 0", {"r": "RANGE 9", "s": "RANGE 0"}, "RANGE 500"):
        query: dict[str, Any] = {"on": "r.name = s.name", "window": window, "time": "ts", "order": "total",
                                 "how": chance.choice(["left", "inner"]), "aggregate": FOLDED}
        starts = sorted(chance.sample(range(-3, 70), 4))
        with monkeypatch.context() as patched:
            patched.setattr(WholeRows, "_of_pairs", None)
            got = in_partitions(query, CpuDevice(engine=engine, threads=1), R, S, starts)
        assert plain(got) == plain(answer(R, S, **{k: v for k, v in query.items() if k != "order"}))


def test_sums_over_a_part_of_the_partners_are_not_finished() -> None:
    """Base tuples that another partition decides may have sums here that fit no type."""
    r = pa.table({"ts": [10, 30]})
    s = pa.table({"ts": [1, 2, 8, 9, 29], "v": [-(2**62), -(2**62), 2**62, 2**62, 5]})
    query: dict[str, Any] = {"on": "TRUE", "window": {"r": "RANGE 0", "s": "RANGE 9"}, "time": "ts", "how": "left",
                             "aggregate": {"sum": "sum(s.v)"}}
    for starts in ([12], [17, 30], [5, 18, 40]):
        got = in_partitions({**query, "order": "total"}, CpuDevice(threads=1), r, s, starts)
        assert plain(got) == plain(answer(r, s, **query))
    with pytest.raises(InputError, match="must fit int64"):
        in_partitions({**query, "order": "total"}, CpuDevice(threads=1), r.slice(0, 1), s.slice(2, 2), [5])


@splitjoin.aggregate
class Narrow:
    """A sum that leaves its width for some base tuples, in the circuit."""

    total: unsigned(9)

    def add(self, x: unsigned(8)):
        self.total += x

    def merge(self, other):
        self.total += other.total

    def result(self) -> unsigned(9):
        return self.total


def test_circuits_fold_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    query: dict[str, Any] = {"on": "abs(r.x - s.x) <= 6", "window": {"r": "RANGE 3", "s": "RANGE 12"}, "time": "ts",
                             "aggregate": {"count": "count(*)", "sum": "sum(s.n)", "high": "max(s.x)"}}
    device = PysimDevice(cores=1, capacity=64, lanes=2, fold="always")
    with monkeypatch.context() as patched:
        patched.setattr(WholeRows, "_of_pairs", None)
        got = in_partitions({**query, "order": "total"}, device, R, S, [30])
    assert plain(got) == plain(answer(R, S, **query))


def test_a_state_that_leaves_its_width_is_told_by_the_pairs() -> None:
    query: dict[str, Any] = {"on": "TRUE", "window": {"r": "RANGE 0", "s": "RANGE 50"}, "time": "ts",
                             "aggregate": {"total": Narrow("s.v")}}
    device = PysimDevice(cores=1, capacity=8, lanes=1)
    r, s = pa.table({"ts": [10, 20]}), pa.table({"ts": [1, 2, 15], "v": pa.array([250, 250, 250], pa.uint8())})
    said = []
    for where in (CpuDevice(threads=1), device):
        with pytest.raises(InputError, match="must fit unsigned") as caught:
            in_partitions({**query, "order": "total"}, where, r, s, [])
        said.append(str(caught.value))
    assert said[0] == said[1]
    # The partition that decides the first base tuple alone has no such state.
    join, every = made(query, r, s), arrivals(made(query, r, s), r, s)
    fits = WholeRows(join, device, every, between=(0, None, 15)).batch()
    assert fits.values[0].to_pylist() == [500]


def test_the_driver_refuses_what_tasks_could_not_fold() -> None:
    query = made({"on": "r.x < s.x", "window": "RANGE 3", "time": "ts", "aggregate": {"f": "first(s.n)"}}, R, S)
    with pytest.raises(UnsupportedError, match="engine='sliding' finds partners by equal keys"):
        choose_device(query, "cpu", {"engine": "sliding"}, True)
    with pytest.raises(UnsupportedError, match="fold='always' needs a circuit that folds the aggregates, but: first"):
        choose_device(query, "pysim", {"capacity": 64, "fold": "always"}, True)
    with pytest.warns(UserWarning, match="the join runs on the device 'cpu', since 'pysim' refuses it"):
        assert choose_device(query, "pysim", {"capacity": 64, "fold": "always"}, False, 3)[:2] == (
            "cpu", {"threads": 3})
    assert choose_device(query, "cpu", {}, True)[1] == {"threads": 1}
    assert choose_device(query, "cpu", {}, True, 4)[1] == {"threads": 4}
    assert choose_device(query, "cpu", {"threads": 2}, True, 4)[1] == {"threads": 2}
    assert folding(query, "pysim", {"capacity": 64}) == (False, "folded in the Spark task from the pairs")
    whole = made({"on": "r.x < s.x", "window": "RANGE 3", "time": "ts", "aggregate": {"f": "max(s.n)"}}, R, S)
    assert folding(whole, "pysim", {"capacity": 64})[1].startswith("folded in the circuit: one state leaves for each")
    assert not folding(whole, "golden", {})[0]
