"""User-defined aggregates on engines that make no pairs: the reference's rows and errors, whatever the class."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import splitjoin
from splitjoin import InputError, UnsupportedError, signed, unsigned
from splitjoin.engines.cpu import CpuDevice
from splitjoin.joins.explain import explain
from splitjoin.rows.interval_joins import state
from splitjoin.rows.interval_joins.user_form import user_way
from splitjoin.rows.interval_joins.user_source import _source

from ....support.random_aggregates import random_aggregates
from ....support.random_merges import random_merges
from ....support.sampling import at_length, examples
from ....support.user_aggregates import EXAMPLES, Histogram, Variance

ENGINES: list[tuple[Any, int]] = [("sliding", 1), ("sliding", 3), ("key-oij", 2), ("scale-oij", 1), ("scale-oij", 3)]


@cache
def interpreted(fold: Any, kind: str) -> Any:
    """The kernel's source, which Python runs: random classes would compile for seconds each."""
    names: dict[str, Any] = {"compiled_as_numpy": lambda function: function}
    exec(_source(fold, kind).replace("from splitjoin.engines.compiled.jit import compiled_as_numpy\n", ""), names)
    return SimpleNamespace(run=names["run"])


def found(device: Any, r: pa.Table, s: pa.Table, how: dict[str, Any]) -> Any:
    try:
        return splitjoin.join(r, s, device=device, **how).table
    except InputError as error:
        return str(error)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(cls=st.one_of(random_merges(), random_merges(), random_aggregates().map(lambda a: a.compiled)), data=st.data())
def test_random_classes(monkeypatch: pytest.MonkeyPatch, cls: Any, data: st.DataObject) -> None:
    monkeypatch.setattr(state, "user_kernel", interpreted)
    n = len(cls.fold.arguments)
    small = data.draw(st.booleans())
    value = st.one_of(st.none(), st.integers(0, 7), st.integers(-2, 7) if small else st.integers(-8, 15))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2), *[value] * n), max_size=24))
    rows.sort(key=lambda row: row[0])
    bases = data.draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), max_size=10).map(sorted))
    s = pa.table({**{name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(("ts", "k"))},
                  **{f"a{i}": pa.array([row[2 + i] for row in rows], pa.int8()) for i in range(n)}})
    r = pa.table({"ts": pa.array([b[0] for b in bases], pa.int64()), "x": pa.array([b[1] for b in bases], pa.int64())})
    length = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 30)))
    how: dict[str, Any] = {"on": "r.x = s.k", "window": tuple(f"RANGE {n}" for n in length), "time": "ts",
                           "how": data.draw(st.sampled_from(["left", "inner"])),
                           "aggregate": {"v": cls(*(f"s.a{i}" for i in range(n))), "n": "count(*)"}}
    expected = found("golden", r, s, how)
    for engine, threads in ENGINES:
        ours = found(CpuDevice(engine=engine, threads=threads), r, s, how)
        assert ours == expected if isinstance(expected, str) or isinstance(ours, str) else ours.equals(expected)


def test_ways_of_examples() -> None:
    ways = {c.__name__: user_way(c.fold) for c, *_ in EXAMPLES}
    assert {name: way and (way.kind, way.limit) for name, way in ways.items()} == {
        "Variance": ("remove", 65535), "Histogram": ("remove", 65535), "SecondBest": ("merge", 2**62),
        "Smoothed": ("recompute", 0), "Vwap": ("merge", 65537), "Extent": ("merge", 2**62), "Rises": ("merge", 65535),
        "Checksum": ("remove", 2**62), "Saturated": ("recompute", 0), "MeanDeviation": ("merge", 65535),
        "BestVolume": ("recompute", 0)}


@pytest.mark.parametrize("number", [n if c is Variance else at_length(n) for n, (c, *_) in enumerate(EXAMPLES)])
def test_compiled_kernels_over_long_streams(number: int) -> None:
    cls, ranges, _ = EXAMPLES[number]
    made, n = np.random.default_rng(number), 2000
    values = {f"a{i}": pa.array(made.integers(low, high, n, endpoint=True), pa.int64(), mask=made.random(n) < 0.2)
              for i, (low, high) in enumerate(ranges)}
    r = pa.table({"ts": np.sort(made.integers(0, n, n)), "x": made.integers(0, 4, n)})
    s = pa.table({"ts": np.sort(made.integers(0, n, n)), "k": made.integers(0, 4, n), **values})
    times = " * 0.0625" * any(a.width.fraction for a in cls.fold.arguments)
    how: dict[str, Any] = {"on": "r.x = s.k", "window": ("RANGE 5", "RANGE 60"), "time": "ts", "how": "left",
                           "aggregate": {"v": cls(*(f"s.{name}{times}" for name in values))}}
    expected = splitjoin.join(r, s, device=CpuDevice(engine="index", threads=1), **how).table
    for engine, threads in ENGINES[1:]:
        assert splitjoin.join(r, s, device=CpuDevice(engine=engine, threads=threads), **how).table.equals(expected)


def test_unsorted_streams_and_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "user_kernel", interpreted)
    r = pa.table({"ts": [9, 5], "x": [1, 1]})
    s = pa.table({"ts": [8, 4, 6, 3], "k": [1, 1, 1, 2], "a": [1, 2, 40000, 7]})
    query = splitjoin.query(r.schema, s.schema, on="r.x = s.k", window=("RANGE 0", "RANGE 3"), time="ts", how="left",
                            aggregate={"v": Variance("s.a")})
    for engine in ("key-oij", "scale-oij"):
        with splitjoin.open_unsorted(query, lateness=9, engine=engine) as join:
            join.push_s(s.take([0, 1, 3]))
            join.push_r(r)
            assert join.flush().to_pylist() == [{"ts": 5, "x": 1, "v": 0}, {"ts": 9, "x": 1, "v": 0}]
        with splitjoin.open_unsorted(query, lateness=9, engine=engine) as join:
            join.push_s(s)
            join.push_r(r)
            with pytest.raises(InputError, match=r"x of 'Variance\(s.a\)' must fit signed\(16\), but is 40000"):
                join.flush()


@splitjoin.aggregate
class Balance:
    """A sum that its partners may carry beyond its width, or not, by their order."""

    total: signed(3)

    def add(self, x: signed(3)):
        self.total += x

    def remove(self, x: signed(3)):
        self.total -= x

    def result(self) -> signed(3):
        return self.total


def test_what_may_leave_its_width_is_folded_anew_from_its_own_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases without partners stand before, between and behind; the last partner is at the end of its interval."""
    monkeypatch.setattr(state, "user_kernel", interpreted)
    r = pa.table({"ts": [1, 4, 5, 6, 20], "x": [3, 2, 1, 2, 1]})
    s = pa.table({"ts": [2, 3, 5, 6, 7, 7, 8], "k": [1, 2, 1, 2, 1, 1, 1], "a": [3, -2, -3, -1, 3, -3, 2]})
    how: dict[str, Any] = {"on": "r.x = s.k", "window": ("RANGE 3", "RANGE 3"), "time": "ts", "how": "inner",
                           "aggregate": {"v": Balance("s.a"), "n": "count(*)"}}
    expected = splitjoin.join(r, s, device="golden", **how).table
    for engine, threads in ENGINES:
        assert found(CpuDevice(engine=engine, threads=threads), r, s, how).equals(expected)
    for name in ("key-oij", "scale-oij"):
        with splitjoin.open_unsorted(splitjoin.query(r.schema, s.schema, **how), lateness=9, engine=name) as join:
            join.push_s(s)
            join.push_r(r)
            assert join.flush().to_pylist() == expected.to_pylist()


@splitjoin.aggregate
class Wide:
    """A sum of squares in 64 bits, which no kernel of 64 bits has room for."""

    total: unsigned(64)

    def add(self, x: signed(33)):
        self.total += x * x

    def result(self) -> unsigned(64):
        return self.total


def test_the_way_is_told_and_wide_numbers_are_refused() -> None:
    r, s = pa.schema({"ts": pa.int64(), "x": pa.int64()}), pa.schema({"ts": pa.int64(), "k": pa.int64()})
    how: dict[str, Any] = {"on": "r.x = s.k", "window": "RANGE 5", "time": "ts"}
    said = explain(splitjoin.query(r, s, aggregate={"v": Variance("s.k"), "n": "count(*)"}, **how)).split("\n")[1]
    assert "by engine sliding, as it does the same work" in said
    assert "Variance(s.k) is subtracted by remove, up to 65,535 partners" in said
    said = explain(splitjoin.query(r, s, aggregate={"v": Histogram("s.k")}, **how)).split("\n")[1]
    assert "Histogram(s.k) is subtracted by remove, up to 65,535 partners" in said
    wide = splitjoin.query(r, s, aggregate={"v": Wide("s.k")}, **how)
    assert "pairs, which the host folds, as 'Wide(s.k)' needs numbers of more than 64 bits" in explain(wide)
    with pytest.raises(UnsupportedError, match="needs numbers of more than 64 bits; use engine='auto'"):
        splitjoin.join(r.empty_table(), s.empty_table(), engine="sliding", aggregate={"v": Wide("s.k")}, **how)
