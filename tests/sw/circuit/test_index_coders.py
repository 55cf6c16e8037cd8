"""The cells of core kind ordered: a probe reaches those of all its partners in the window, and few others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.encode import Encoder, unpack
from splitjoin.circuit.lowering import configure, unlowered
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.wire import Record
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from tests.support.conformance import run, slices
from tests.support.sampling import examples

#: Tuples of a window, of two cores; buckets are half as many.
WINDOW = 32
ON = ("r.x < s.a", "r.x >= s.a", "r.x BETWEEN s.a AND s.b", "s.a BETWEEN r.x AND r.y", "r.x < s.a AND s.a < r.x + 1000",
      "r.f > s.g", "abs(r.f - s.g) <= 3", "r.x < 7 AND r.x < s.a", "3 * r.x - s.a <= 100 AND r.y <> s.b")


def query_of(on: str, r: pa.Table, s: pa.Table) -> Query:
    return Query.make(Schema.from_arrow("r", r.schema), Schema.from_arrow("s", s.schema), on=on,
                      window=f"ROWS {WINDOW}")


def encoded(query: Query, batches: list[Arrivals], capacity: int = WINDOW // 2) -> Iterator[dict[str, int]]:
    """The stream and the index fields of each tuple of each batch."""
    parameters = CircuitParameters(cores=2, capacity=capacity, core="ordered")
    plan = unlowered(make_plan(query.predicate), parameters)
    encoder = Encoder(plan, configure(query, plan, parameters), None)
    head = Record(tuple(f for f in encoder.config.input_record.fields if f[0] != "body"))
    for batch in batches:
        words = encoder.encode(batch)
        found = [unpack(Record(head.fields + encoder.config.body(side).fields), words) for side in "rs"]
        for n, stream in enumerate(batch.stream):
            yield {name: int(found[stream][name][n]) for name in ("stream", "cell0", "first0", "cells0")}


def table(keys: dict[str, npt.NDArray[np.int64]], null: npt.NDArray[np.bool_]) -> pa.Table:
    return pa.table({name: pa.array(v.astype(np.float32 if name in "fg" else np.int32), mask=null)
                     for name, v in keys.items()})


@given(st.sampled_from(ON), st.integers(0, 2**32), st.sampled_from([3, 60, 10**6]), st.sampled_from([0, 1, 200]),
       st.lists(st.integers(0, 60), max_size=12))
@settings(max_examples=examples(60))
def test_a_probe_reaches_its_partners(on: str, seed: int, top: int, drift: int, cuts: list[int]) -> None:
    """Batches of any size, keys that drift further than all cells, and NULLs."""
    rng, n = np.random.default_rng(seed), 120
    sides = [table({name: rng.integers(0, top, n) + np.arange(n) * drift for name in names}, rng.random(n) < 0.1)
             for names in ("xyf", "abg")]
    query = query_of(on, *sides)
    found = list(encoded(query, slices(arrivals(query, *sides), np.cumsum(cuts).tolist())))
    of = [[f for f in found if f["stream"] == k] for k in (0, 1)]
    items = run(GoldenDevice(cores=2), query, *sides)
    for item in items[items["kind"] == PAIR]:
        r, s = of[0][item["r"]], of[1][item["s"]]
        # The side of a pair is the stream of its probe.
        probe, stored = (r, s) if item["side"] == 0 else (s, r)
        assert (stored["cell0"] - probe["first0"]) % (WINDOW // 2) < probe["cells0"], (item, probe, stored)


def reached(on: str, r: pa.Table, s: pa.Table, cuts: list[int]) -> dict[str, float]:
    """Mean share of all cells that the last tuples of each stream reach, as probes, where a window is 512 tuples."""
    query = query_of(on, r, s)
    found = list(encoded(query, slices(arrivals(query, r, s), cuts), capacity=256))[-200:]
    return {"rs"[k]: float(np.mean([f["cells0"] for f in found if f["stream"] == k])) / 256 for k in (0, 1)}


@pytest.mark.parametrize(("drift", "cuts"), [(0, []), (0, [1, 2, 3, 5]), (300, list(range(0, 3000, 20)))])
def test_it_reaches_little_more(drift: int, cuts: list[int]) -> None:
    """Of keys that are spread evenly, whether they drift or not, and whether the first batch tells their spread or not:
    half of all cells for an inequality, more for one stream the less for the other, and for short intervals of columns
    few cells for probes of both.
    """
    rng, n = np.random.default_rng(1), 1500
    keys = [rng.integers(0, 100_000, n) + np.arange(n) * drift for _ in "rs"]
    r, s = pa.table({"x": keys[0]}), pa.table({"a": keys[1], "b": keys[1] + rng.integers(0, 1000, n)})
    found = reached("r.x < s.a", r, s, cuts).values()
    assert 0.8 < sum(found) < 1.2
    assert max(found) < 0.95
    assert all(share < 0.1 for share in reached("r.x BETWEEN s.a AND s.b", r, s, cuts).values())
