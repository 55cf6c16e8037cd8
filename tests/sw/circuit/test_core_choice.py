"""The choice of the core kind for a condition, its reason, and the width of buckets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.core_kinds import BucketGrid, Span
from splitjoin.circuit.encode import Encoder, unpack
from splitjoin.circuit.lowering import configure, sized, unlowered
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.wire import Record
from splitjoin.engines.arrival import arrivals
from splitjoin.joins.explain import explain
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan

COLUMNS = {"r": pa.schema([("x", pa.int32()), ("y", pa.int32()), ("f", pa.float32()), ("t", pa.string())]),
           "s": pa.schema([("a", pa.int32()), ("b", pa.int32()), ("g", pa.float32()), ("u", pa.string())])}


def query_of(on: str, r: pa.Table | None = None, s: pa.Table | None = None) -> Query:
    schemas = [Schema.from_arrow(side, COLUMNS[side] if table is None else table.schema)
               for side, table in (("r", r), ("s", s))]
    return Query.make(*schemas, on=on, window="ROWS 4000")


def chosen(on: str, **options: object) -> tuple[str, int]:
    """The core kind, and the number of tests that its index uses."""
    query = query_of(on)
    parameters = CircuitParameters(**options)  # type: ignore[arg-type]  # of any type
    config = configure(query, unlowered(make_plan(query.predicate), sized(query, parameters)), parameters)
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
    ("bucket", "r.x = s.a AND abs(r.y - s.b) <= 1", ("bucket", 2)), ("ordered", "r.x < s.a", ("ordered", 1))])
def test_the_kind_that_is_asked_for(core: str, on: str, kind: tuple[str, int]) -> None:
    assert chosen(on, core=core, cores=64) == kind


@pytest.mark.parametrize(("core", "on", "said"), [
    ("hash", "abs(r.x - s.a) <= 10", "core hash needs an equality .* use core='bucket'"),
    ("hash", "r.x < s.a", "core hash needs an equality .* use core='scan'"),
    ("bucket", "r.x < s.a", "core bucket needs a test that holds for every result .* use core='scan'"),
    ("bucket", "r.x = s.a OR abs(r.y - s.b) <= 1", "core bucket needs a test"),
    ("ordered", "r.x < s.a OR r.y < s.b", "core ordered needs a comparison .* use core='scan'")])
def test_what_the_condition_has_nothing_for(core: str, on: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^{said}"):
        chosen(on, core=core)


@pytest.mark.parametrize(("options", "said"), [
    ({"core": "tree"}, "core must be one of auto, scan, hash, bucket, ordered, not 'tree'"),
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
    assert said in explain(query_of(on), **options).splitlines()  # type: ignore[arg-type]  # of any type


def encoder_of(on: str, r: pa.Table, s: pa.Table) -> tuple[Encoder, Query]:
    query = query_of(on, r, s)
    parameters = CircuitParameters(cores=1, capacity=4096, core="bucket")
    plan = unlowered(make_plan(query.predicate), parameters)
    return Encoder(plan, configure(query, plan, parameters), None), query


def learnt(on: str, r: pa.Table, s: pa.Table) -> dict[str, list[float]] | None:
    encoder, query = encoder_of(on, r, s)
    encoder.encode(arrivals(query, r, s))
    assert isinstance(encoder.index_coder, BucketGrid)
    return encoder.index_coder.widths


def table(side: str, n: int, **columns: object) -> pa.Table:
    filled = {name: columns.get(name, pa.nulls(n, kind)) for name, kind in zip(COLUMNS[side].names, COLUMNS[side].types,
                                                                              strict=True)}
    return pa.table(filled, schema=COLUMNS[side])


@pytest.mark.parametrize("reach", [0, 1, 10])
def test_cells_as_wide_as_the_bands(reach: int) -> None:
    """An interval from x − reach to x + reach lies in two cells of 2·reach keys at most."""
    r, s = table("r", 9, x=range(100, 109)), table("s", 9, a=range(100, 109))
    on, wanted = f"abs(r.x - s.a) <= {reach}", {side: [max(1, 2 * reach)] for side in "rs"}
    assert learnt(on, r, s) == wanted
    # From one stream's tuples alone; from none with bounds; from none at all.
    assert learnt(on, r, s.slice(0, 0)) == wanted
    assert learnt(on, table("r", 9), table("s", 9)) == {"r": [1], "s": [1]}
    assert learnt(on, r.slice(0, 0), s.slice(0, 0)) is None


def test_cells_of_floats_are_as_long_everywhere() -> None:
    """Floats near zero have many codes within reach, and lie in no more cells for it."""
    values = np.array([0, 1e-30, -1e-30, 5, 1000, -1000, np.inf, -np.inf, np.nan], np.float32)
    r, s = table("r", len(values), f=values), table("s", len(values), g=values)
    found = learnt("abs(r.f - s.g) <= 10", r, s)
    assert found is not None
    assert all(20 <= width < 20.5 for widths in found.values() for width in widths)


@pytest.mark.parametrize(("keys", "wider"), [(4096 * 20, 1), (4096 * 40, 2), (4096 * 20000, 4)])
def test_cells_are_wider_where_buckets_would_be_shared(keys: int, wider: float) -> None:
    """There are 4096 buckets, and bands of 20 keys."""
    spread = np.linspace(0, keys, 1000).astype(np.int32)
    found = learnt("abs(r.x - s.a) <= 10", table("r", 1000, x=spread), table("s", 1000, a=spread))
    assert found == {side: [pytest.approx(20 * wider, rel=0.02)] for side in "rs"}


@pytest.mark.parametrize("on", [
    "abs(r.f - s.g) <= 10", "abs(r.x - s.a) <= 7", "r.x = s.a", "abs(2 * r.x - 3 * s.a) <= 50", "r.t = s.u",
    "r.f = s.g",
    "abs(r.f - s.g) <= 10 AND abs(r.x - s.a) <= 2000000000"])
def test_every_key_in_an_interval_is_in_a_cell_that_is_reached(on: str) -> None:
    """For all pairs of extreme values: equal cells, or neighbours where the probe says so; or the probe reads all."""
    floats = np.array([0, -0.0, 1e-45, -1e-45, 10, 10.000001, -10, 19.99, 20, 3e38, -3e38, np.inf, -np.inf, np.nan, 5],
                      np.float32)
    whole = [0, 1, -1, 7, 8, -8, 50, 2**31 - 1, -2**31, 2**31 - 8, None, 33, 34, 66, 67]
    texts = ["", "a", "b", None, "z"] * 3
    r, s = table("r", 15, f=floats, x=whole, t=texts), table("s", 15, g=floats, a=whole, u=texts)
    encoder, query = encoder_of(on, r, s)
    records = encoder.encode(arrivals(query, r, s))
    config = encoder.config
    head = Record(tuple(f for f in config.input_record.fields if f[0] != "body"))
    stream = unpack(head, records)["stream"]
    sides = {side: unpack(Record(head.fields + config.body(side).fields), records[stream == n])
             for n, side in enumerate("rs")}
    for mine, theirs in (("r", "s"), ("s", "r")):
        probes, stored = sides[mine], sides[theirs]
        for n, (j, bits) in enumerate(zip(config.index, config.kind.index_widths(config, theirs), strict=True)):
            key = stored[f"key{config.tests[j]['rs'.index(theirs)]}"][None, :]
            inside = (probes[f"lo{j}"][:, None] <= key) & (key <= probes[f"hi{j}"][:, None])
            above = (stored[f"cell{n}"][None, :] - probes[f"first{n}"][:, None]) & np.uint64(2**bits - 1)
            span = probes[f"span{n}"][:, None]
            assert not (inside & ~((span == Span.MANY) | ((span <= Span.TWO) & (above <= span)))).any()


@pytest.mark.parametrize("architecture", ["celljoin", "handshake", "low-latency-handshake", "cascade"])
def test_cores_between_which_tuples_move_scan(architecture: str) -> None:
    """Also where SplitJoin's own cores of this size have an index."""
    on = "abs(r.x - s.a) <= 10"
    assert chosen(on, cores=2, capacity=4096)[0] == "bucket"
    assert chosen(on, cores=2, capacity=4096, architecture=architecture)[0] == "scan"
