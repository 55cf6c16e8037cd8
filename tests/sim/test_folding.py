"""Circuits that fold aggregates give the golden model's rows, under random stalls, and one state a base tuple."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, UnsupportedError
from splitjoin.circuit.architectures.splitjoin.predictions import parts
from splitjoin.circuit.driver import CircuitSession
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR, STAR
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.sampling import at_length
from ..support.user_aggregates import BestVolume, Extent, Rises, Travelled, Variance

STALLS = {"stall_in": 0.3, "stall_out": 0.3}
#: Every aggregate that circuits fold: of values that may be NULL, of 64 bits, of times, of decimals, of an expression.
AGGREGATES: dict[str, Any] = {
    "n": "count(*)", "prices": "count(s.p)", "total": "sum(s.p)", "mean": "avg(s.p)", "low": "min(s.p)",
    "high": "max(s.big)", "all": "avg(s.big)", "last": "max(s.ts)", "scaled": "sum(s.d * 2 - 1)", "v": Variance("s.p"),
    "e": Extent("s.a"),
}
WINDOWS: list[Any] = [{"r": "RANGE 0", "s": "RANGE 10"}, "RANGE 6", "ROWS 17 RANGE 9"]


def tables(n: int, seed: int) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(seed)
    times = [np.sort(rng.integers(0, n // 2, n)) for _ in range(2)]
    r = pa.table({"ts": times[0], "x": pa.array(rng.integers(-20, 20, n), pa.int16())})
    price = pa.array(rng.integers(-(2**15), 2**15, n).tolist(), pa.int16(), mask=rng.random(n) < 0.2)
    cents = [None if x % 5 == 0 else x for x in rng.integers(-9999, 9999, n).tolist()]
    return r, pa.table({
        "ts": times[1], "a": pa.array(rng.integers(-20, 20, n), pa.int16()),
        "p": pa.array(price.to_pylist(), pa.int16()),
        "big": pa.array(rng.integers(-(2**63), 2**63 - 1, n), pa.int64()),
        "d": pa.array(cents, pa.decimal128(4)).cast(pa.decimal128(6, 2))})


def same(device: Any, r: pa.Table, s: pa.Table, **how: Any) -> Any:
    """The result of ``device``, which is that of the golden model."""
    of = {"on": "abs(r.x - s.a) <= 6", "time": "ts", "select": ["ts", "x"], "aggregate": AGGREGATES, **how}
    golden = splitjoin.join(r, s, device="golden", device_options=None, **of)
    found = splitjoin.join(r, s, device=device, **of)
    assert found.table.equals(golden.table)
    assert np.array_equal(found.items["r"], golden.items["r"])
    return found


@pytest.mark.parametrize(("how", "window"), [
    ("left", WINDOWS[0]), ("left", WINDOWS[2]), at_length("left", WINDOWS[1]),  # sessions fold in that one
    *(at_length("inner", window) for window in WINDOWS)], ids=str)
def test_every_window_and_kind_on_sim(how: str, window: Any) -> None:
    seed = WINDOWS.index(window)
    r, s = tables(220, seed)
    device = SimDevice(cores=3, capacity=64, lanes=2, probes=2, seed=seed, fold="always", **STALLS)
    assert device.states_circuit(query(r, s, AGGREGATES))
    same(device, r, s, window=window, how=how)
    r, s = tables(40, 7)
    same(device, r, s.slice(0, 0), window=window, how=how)
    same(device, r.slice(0, 0), s, window=window, how=how)


def query(r: pa.Table, s: pa.Table, aggregates: dict[str, Any], **other: Any) -> Any:
    given = {"on": "abs(r.x - s.a) <= 6", "window": "RANGE 6", "time": "ts", "how": "left", **other}
    return splitjoin.query(r.schema, s.schema, aggregate=aggregates, **given)


@pytest.mark.parametrize(("cores", "lanes", "probes"), [
    (1, 2, 3), at_length(1, 1, 1), at_length(1, 4, 2), at_length(2, 2, 3), at_length(5, 1, 4)])
def test_shapes_on_pysim(cores: int, lanes: int, probes: int, tmp_path: Any) -> None:
    r, s = tables(16, cores)
    device = PysimDevice(cores=cores, capacity=32, lanes=lanes, probes=probes, seed=cores, fold="always", **STALLS)
    some = {name: AGGREGATES[name] for name in ("n", "mean", "low", "v")} | {"sd": "stddev_samp(s.p)"}
    made = same(device, r, s, window="ROWS 9", how="left", aggregate=some)
    if cores == 2:
        file = tmp_path / "rows.parquet"
        splitjoin.join(r, s, on="abs(r.x - s.a) <= 6", time="ts", select=["ts", "x"], aggregate=some, device=device,
                       window="ROWS 9", how="left", to=file)
        assert pa.parquet.read_table(file).equals(made.table)


def test_a_fold_that_adds_or_replaces_by_choice() -> None:
    r, s = tables(24, 6)
    device = PysimDevice(cores=2, capacity=32, lanes=2, probes=2, seed=3, fold="always", **STALLS)
    best = BestVolume("s.a & 3", "abs(s.p)")
    asked = query(r, s, {"best": best})
    assert device.states_circuit(asked)
    found = same(device, r, s, window="RANGE 6", how="left", aggregate={"best": best})
    assert len(set(found.table["best"].to_pylist())) > 5


def test_one_record_a_base_tuple_leaves() -> None:
    """Whatever the selectivity, a session gives a star and a state for each tuple of R, and no pairs of its probes."""
    r, s = tables(40, 1)
    aggregates = {"n": "count(*)", "t": "sum(s.p)"}
    device = PysimDevice(cores=2, capacity=32, lanes=2, probes=2, fold="always")
    asked = query(r, s, aggregates, on="TRUE", window={"r": "RANGE 0", "s": "RANGE 100"})
    with device.open(asked) as session:
        session.push(arrivals(asked, r, s))
        assert isinstance(session, CircuitSession)
        items, states = session.flush(), session.states()
        assert session.config.beats == 0
    mine = items[items["side"] == 0]
    assert (mine["kind"] == STAR).all()
    assert mine["r"].tolist() == list(range(40))
    assert len(states) == 40
    ties = items[(items["side"] == 1) & (items["kind"] == PAIR)]
    before = [sum(t < u for t in s["ts"].to_pylist()) for u in r["ts"].to_pylist()]
    assert states.fields["slot0_0"].tolist() == before
    assert len(ties) == sum(t == u for t in s["ts"].to_pylist() for u in r["ts"].to_pylist())


def test_one_record_a_base_tuple_leaves_with_its_later_partners() -> None:
    """When it expires: at a barrier those that have expired, at the end all of them, and no pairs."""
    r, s = tables(40, 1)
    device = PysimDevice(cores=2, capacity=64, lanes=2, probes=2, fold="always", seed=1, **STALLS)
    asked = query(r, s, {"n": "count(*)", "t": "sum(s.p)"}, on="TRUE", window={"r": "ROWS 7", "s": "RANGE 100"})
    expected = splitjoin.join(r, s, on="TRUE", window={"r": "ROWS 7", "s": "RANGE 100"}, time="ts",
                              aggregate={"n": "count(*)"}, how="left").table["n"].to_pylist()
    with device.open(asked) as session:
        assert isinstance(session, CircuitSession)
        assert session.config.whole_states
        session.push(arrivals(asked, r, s))
        assert not len(session.settle())
        states = session.states()
        assert len(states) == 33
        assert not len(session.flush())
        rest = session.states()
    assert [*states.fields["slot0_0"].tolist(), *rest.fields["slot0_0"].tolist()] == expected


@pytest.mark.parametrize(("lanes", "probes", "capacity", "window"), [
    (2, 5, 4, {"r": "ROWS 1", "s": "ROWS 2"}), at_length(1, 16, 4, {"r": "ROWS 1", "s": "ROWS 4"}),
    at_length(8, 3, 16, {"r": "ROWS 16 RANGE 2", "s": "ROWS 1"})])
def test_tuples_that_expire_unread_leave_nothing_to_those_behind_them(lanes: int, probes: int, capacity: int,
                                                                      window: Any) -> None:
    for seed in (418518, 3):
        r, s = tables(40, seed)
        device = PysimDevice(cores=1, capacity=capacity, lanes=lanes, probes=probes, seed=seed, fold="always", **STALLS)
        same(device, r, s, window=window, how="left", on="r.x < s.a", aggregate={"n": "count(*)"})


def test_which_states_leave_whole() -> None:
    r, s = tables(8, 1)
    aggregates = {"n": "count(*)", "v": Variance("s.p")}
    device = SimDevice(capacity=64)
    for window, whole in (("RANGE 6", True), ({"r": "RANGE 0", "s": "RANGE 6"}, False), ("ROWS 6", False)):
        asked = query(r, s, aggregates, window=window)
        assert device.circuit(asked).folding.whole == whole
    assert device.circuit(query(r, s, {"n": "count(*)"}, window="ROWS 6")).folding.whole


@pytest.mark.parametrize(("aggregate", "options", "reason"), [
    ("sum(r.x - s.p)", {}, r"sum\(r.x - s.p\): a circuit folds values of stored tuples, and r.x is not one"),
    ("first(s.p)", {}, r"first\(s.p\): first is not folded in circuits"),
    ("sum(s.f)", {}, r"circuits fold whole numbers, decimals and times, and s.f is float64"),
    (Rises("r.x"), {"core": "bucket"}, "a circuit folds values of stored tuples, and r.x is not one"),
    (Variance("s.p"), {"clock": 200.0}, "an operation .* so the clock must be at most 145 MHz, not 200"),
])
def test_what_circuits_do_not_fold_is_refused_and_shipped_as_pairs(aggregate: Any, options: dict[str, Any],
                                                                   reason: str) -> None:
    r, s = tables(8, 1)
    s = s.append_column("f", pa.array(np.ones(8)))
    asked = query(r, s, {"a": aggregate})
    with pytest.raises(UnsupportedError, match=rf"fold='always' needs a circuit that folds .*{reason}"):
        SimDevice(capacity=64, fold="always", **options).states_circuit(asked)
    assert not SimDevice(capacity=64, **options).states_circuit(asked)


@pytest.mark.parametrize(("aggregate", "why"), [
    (Rises("s.p"), "Rises has no merge that does not depend on the order"),
    (lambda: Balance("s.p"), r"total may leave signed\(16\) in one order of up to 256 partners and not in another"),
])
def test_what_regions_do_not_fold_one_unit_folds_in_order(aggregate: Any, why: str) -> None:
    r, s = tables(8, 1)
    asked = query(r, s, {"a": aggregate() if callable(aggregate) else aggregate, "n": "count(*)"})
    circuit = SimDevice(capacity=64).states_circuit(asked)
    assert circuit is not None and circuit.folding is not None
    assert re.search(why, circuit.folding.in_order)
    assert circuit.config.whole_states
    assert re.search(rf"folded .* in order of arrival, by one unit behind the gather trees, a partner a cycle, .*{why}",
                     str(splitjoin.explain(asked, capacity=64)))
    assert "unit that folds in order" in parts(circuit.config, "ecp5")
    with_index = SimDevice(capacity=64, core="bucket")
    assert with_index.states_circuit(asked) is None  # unless it is demanded
    assert replace(with_index, fold="always").circuit(asked).config.in_order


@pytest.mark.parametrize(("cores", "options", "window"), [
    (2, {"lanes": 2, "probes": 2, "queue": 16, "clock": 160.0}, "ROWS 7 RANGE 9"),
    at_length(1, {}, "RANGE 6"), at_length(2, {"lanes": 2}, {"r": "RANGE 0", "s": "RANGE 10"}),
    at_length(2, {"probes": 4}, "ROWS 9"), at_length(3, {"core": "bucket"}, "RANGE 6")])
def test_one_unit_folds_in_order(cores: int, options: dict[str, Any], window: Any) -> None:
    r, s = tables(24, cores)
    given = {"fold": "always", "stall_in": 0.3, "stall_out": 0.3, "capacity": 32, "seed": cores}
    device = PysimDevice(cores=cores, **given, **options)
    some = {name: AGGREGATES[name] for name in ("n", "mean", "low")} | {"rises": Rises("s.p"), "e": Extent("s.a")}
    assert device.circuit(query(r, s, some, window=window)).config.in_order
    same(device, r, s, window=window, how="left", aggregate=some)


def test_equirectangular_distances_by_the_unit_that_folds_in_order() -> None:
    """Products in the loop of no state: two stages of multipliers, and a partner a cycle."""
    r, s = tables(14, 5)
    device = PysimDevice(cores=1, capacity=16, seed=5, clock=80.0, fold="always", **STALLS)
    some = {"path": Travelled("s.a * 90", "coalesce(s.p // 32, 5)", "abs(s.p) % 4096")}
    found = same(device, r, s, window="RANGE 6", how="left", aggregate=some)
    assert len(set(found.table["path"].to_pylist())) > 3
    asked = query(r, s, some)
    add = device.circuit(asked).folding.parts[0].add
    assert (add.interval, sum(node.kind == "*" for node in add.graph.nodes)) == (1, 3)


def test_sessions_tell_where_a_state_leaves_its_width() -> None:
    r, s = tables(12, 3)
    s = s.set_column(s.schema.get_field_index("p"), "p", pa.array([2**15 - 1] * 12, pa.int16()))
    asked = query(r, s, {"t": Narrow("s.p")}, on="TRUE", window="ROWS 9")
    said = []

    def feed(device: Any) -> None:
        with splitjoin.open(asked, device=device, select=["ts"]) as session:
            session.push_r(r)
            session.push_s(s)
            session.flush()

    for device in ("cpu", PysimDevice(cores=1, capacity=32, lanes=2, fold="always")):
        with pytest.raises(InputError, match=r"total of 'Narrow.*' of row .* of r must fit unsigned") as caught:
            feed(device)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_never_ships_pairs_and_always_refuses_what_does() -> None:
    r, s = tables(8, 1)
    asked = query(r, s, {"n": "count(*)"})
    assert SimDevice(capacity=64).states_circuit(asked)
    assert not SimDevice(capacity=64, fold="never").states_circuit(asked)
    with pytest.raises(UnsupportedError, match="fold='always' needs a circuit that folds"):
        splitjoin.open(query(r, s, {"n": "first(s.p)"}), device="sim", capacity=64, fold="always")
    with pytest.raises(UnsupportedError, match="fold must be one of auto, always, never, not 'maybe'"):
        SimDevice(fold="maybe")


# The compiler reads these annotations; to mypy they are calls.
@splitjoin.aggregate
class Narrow:
    """A sum that does not fit, and only rises."""

    total: splitjoin.unsigned(16)  # type: ignore[valid-type]

    def add(self, x: splitjoin.signed(16)):  # type: ignore[no-untyped-def, valid-type]
        self.total += abs(x)

    def merge(self, other):  # type: ignore[no-untyped-def]
        self.total += other.total

    def result(self) -> splitjoin.unsigned(16):  # type: ignore[valid-type]
        return self.total


@splitjoin.aggregate
class Balance:
    """A sum that may not fit on the way."""

    total: splitjoin.signed(16)  # type: ignore[valid-type]

    def add(self, x: splitjoin.signed(16)):  # type: ignore[no-untyped-def, valid-type]
        self.total += x

    def merge(self, other):  # type: ignore[no-untyped-def]
        self.total += other.total

    def result(self) -> splitjoin.signed(16):  # type: ignore[valid-type]
        return self.total


def test_an_error_in_the_order_of_arrival_alone_is_one_on_circuits() -> None:
    r, s = tables(4, 3)
    s = s.set_column(s.schema.get_field_index("p"), "p", pa.array([2**15 - 1, 2**15 - 1, -(2**15), 5], pa.int16()))
    of = {"on": "TRUE", "window": "ROWS 9", "aggregate": {"t": Balance("s.p")}, "select": ["ts"]}
    said = []
    for device in ("golden", PysimDevice(cores=1, capacity=32)):
        with pytest.raises(InputError, match=r"total of 'Balance.*' of row .* of r must fit signed") as caught:
            splitjoin.join(r, s, device=device, **of)
        said.append(str(caught.value))
    assert said[0] == said[1]
