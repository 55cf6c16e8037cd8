"""Which core a condition gets, and why; how wide its buckets are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from splitjoin.arrival import arrivals
from splitjoin.device.cells import learnt_cells
from splitjoin.device.circuit import configure
from splitjoin.device.encode import Encoder
from splitjoin.errors import UnsupportedError
from splitjoin.explain import explain
from splitjoin.lang.plan import make_plan
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

COLUMNS = {"r": pa.schema([("x", pa.int32()), ("y", pa.int32()), ("f", pa.float32()), ("t", pa.string())]),
           "s": pa.schema([("a", pa.int32()), ("b", pa.int32()), ("g", pa.float32()), ("u", pa.string())])}


def query_of(on: str, r: pa.Table | None = None, s: pa.Table | None = None) -> Query:
    schemas = [Schema.from_arrow(side, COLUMNS[side] if table is None else table.schema)
               for side, table in (("r", r), ("s", s))]
    return Query.make(*schemas, on=on, window="ROWS 4000")


def chosen(on: str, **options: object) -> tuple[str, int]:
    """The kind of core, and how many tests its index goes by."""
    query = query_of(on)
    config = configure(query, make_plan(query.predicate), **({"cores": 4} | options))  # type: ignore[arg-type]
    return config.core, len(config.index)


@pytest.mark.parametrize(("on", "kind"), [
    ("r.x = s.a", ("hash", 1)),
    ("r.x = s.a AND r.y = s.b AND abs(r.f - s.g) <= 1", ("hash", 2)),
    ("r.t = s.u AND r.x < s.a", ("hash", 1)),
    ("abs(r.x - s.a) <= 10", ("bucket", 1)),
    ("abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", ("bucket", 2)),
    ("abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10 AND abs(r.f - s.g) <= 1", ("bucket", 2)),
    ("abs(r.x - s.a) <= 10 AND r.y <> s.b", ("bucket", 1)),
    ("abs(r.f - s.g) <= 0.5", ("bucket", 1)),
    ("r.x < s.a", ("scan", 0)),
    ("r.x = s.a OR r.y = s.b", ("scan", 0)),
    ("TRUE", ("scan", 0)),
])
def test_what_suits_the_condition(on: str, kind: tuple[str, int]) -> None:
    assert chosen(on) == kind


@pytest.mark.parametrize("options", [{"lanes": 2}, {"probes": 8}, {"cores": 64}, {"core": "scan"}])
def test_a_scan_where_it_is_asked_for_or_an_index_does_not_pay(options: dict[str, object]) -> None:
    assert chosen("r.x = s.a", **options) == ("scan", 0)


@pytest.mark.parametrize(("core", "on", "kind"), [
    ("bucket", "r.x = s.a", ("bucket", 1)), ("hash", "r.x = s.a AND abs(r.y - s.b) <= 1", ("hash", 1)),
    ("bucket", "r.x = s.a AND abs(r.y - s.b) <= 1", ("bucket", 2))])
def test_the_kind_that_is_asked_for(core: str, on: str, kind: tuple[str, int]) -> None:
    assert chosen(on, core=core, cores=64) == kind


@pytest.mark.parametrize(("core", "on", "said"), [
    ("hash", "abs(r.x - s.a) <= 10", "core hash needs an equality .* use core='bucket'"),
    ("hash", "r.x < s.a", "core hash needs an equality .* use core='scan'"),
    ("bucket", "r.x < s.a", "core bucket needs a test that holds for every result .* use core='scan'"),
    ("bucket", "r.x = s.a OR abs(r.y - s.b) <= 1", "core bucket needs a test")])
def test_what_the_condition_has_nothing_for(core: str, on: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^{said}"):
        chosen(on, core=core)


@pytest.mark.parametrize(("options", "said"), [
    ({"core": "tree"}, "core must be one of auto, scan, hash, bucket, not 'tree'"),
    ({"core": "hash", "lanes": 2}, "lanes of core hash must be 1, as it reads one candidate at a time, not 2"),
    ({"core": "bucket", "probes": 4},
     "probes of core bucket must be 1, as each probe has candidates of its own, not 4")])
def test_wrong_options(options: dict[str, object], said: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^{said}$"):
        chosen("r.x = s.a", **options)


@pytest.mark.parametrize(("on", "options", "said"), [
    ("r.x = s.a", {}, "cores       hash by T0; T0: a probe asks for one key"),
    ("abs(r.x - s.a) <= 10", {"core": "bucket"}, "cores       bucket by T0; it was asked for"),
    ("r.x = s.a", {"lanes": 4},
     "cores       scan; lanes and probes, of which more than one are asked for, are of scans"),
    ("r.x = s.a", {"cores": 64}, "cores       scan; an index does not pay below 256 tuples a core"),
    ("r.x < s.a", {}, "cores       scan; T0: an interval may hold all keys")])
def test_explain_says_which_and_why(on: str, options: dict[str, int], said: str) -> None:
    assert said in explain(query_of(on), **options).splitlines()  # type: ignore[arg-type]


def learnt(on: str, r: pa.Table, s: pa.Table) -> dict[str, tuple[int, ...]]:
    query = query_of(on, r, s)
    plan = make_plan(query.predicate)
    config = configure(query, plan, cores=1, capacity=4096, core="bucket")
    return learnt_cells(config, Encoder(plan, config, None).encode(arrivals(query, r, s)))


def table(side: str, n: int, **columns: object) -> pa.Table:
    filled = {name: columns.get(name, pa.nulls(n, kind)) for name, kind in zip(COLUMNS[side].names, COLUMNS[side].types,
                                                                              strict=True)}
    return pa.table(filled, schema=COLUMNS[side])


@pytest.mark.parametrize(("reach", "bits"), [(0, 0), (1, 1), (10, 5), (16, 5), (17, 6)])
def test_buckets_as_wide_as_the_bands(reach: int, bits: int) -> None:
    """An interval of 2·reach + 1 keys lies in two buckets of 2·reach keys or more."""
    r, s = table("r", 9, x=range(100, 109)), table("s", 9, a=range(100, 109))
    assert learnt(f"abs(r.x - s.a) <= {reach}", r, s) == {"r": (bits,), "s": (bits,)}
    # From one stream's tuples alone, and from none with bounds.
    assert learnt(f"abs(r.x - s.a) <= {reach}", r, s.slice(0, 0)) == {"r": (bits,), "s": (bits,)}
    assert learnt(f"abs(r.x - s.a) <= {reach}", table("r", 9), table("s", 9)) == {"r": (0,), "s": (0,)}


def test_few_wide_intervals_do_not_widen_the_buckets() -> None:
    """Floats near zero have many codes within reach: one probe of a hundred reads the whole sub-window instead."""
    values = np.full(100, 1000, np.float32)
    r, s = table("r", 100, f=values), table("s", 100, g=values)
    (bits,) = learnt("abs(r.f - s.g) <= 10", r, s)["s"]
    few, many = values.copy(), values.copy()
    few[50], many[::2] = 0, 0
    assert learnt("abs(r.f - s.g) <= 10", table("r", 100, f=few), s)["s"] == (bits,)
    assert learnt("abs(r.f - s.g) <= 10", table("r", 100, f=many), s)["s"][0] > bits + 8
