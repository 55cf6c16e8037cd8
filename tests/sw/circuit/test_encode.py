"""Plan, keys, bounds and records together: what a circuit would compute from the records is what the condition says."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.encode import Encoder, decode, pack, unpack
from splitjoin.circuit.lowering import configure, unlowered
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.wire import Configuration, Record, item_record
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import ITEM, pairs
from splitjoin.engines.golden import GoldenDevice, tuples_of
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.keys import UnitKey
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import Plan

from ...support.conformance import run
from ...support.sampling import examples
from ...support.strategies import Scenario, scenario

PARAMETERS = CircuitParameters(capacity=64)


def matches(plan: Plan, config: Configuration, words: Any, stream: Any) -> dict[tuple[int, int], tuple[bool, bool]]:
    """For every pair of rows: whether an R probe finds the stored S tuple, and whether an S probe finds the R tuple."""
    head = Record(tuple(f for f in config.input_record.fields if f[0] != "body"))
    bodies = {side: unpack(Record(head.fields + config.body(side).fields), words[stream == n])
              for n, side in enumerate("rs")}

    def found(probe: str, i: int, j: int) -> bool:
        stored = "s" if probe == "r" else "r"

        def value(tree: Any) -> bool:
            if isinstance(tree, int):
                test = plan.tests[tree]
                key = bodies[stored][f"key{test.s if probe == 'r' else test.r}"][j]
                return bool(bodies[probe][f"lo{tree}"][i] <= key <= bodies[probe][f"hi{tree}"][i])
            op, *args = tree
            return (all if op == "and" else any)(value(a) for a in args)

        return value(config.tree)

    counts = {side: int((stream == n).sum()) for n, side in enumerate("rs")}
    return {(i, j): (found("r", i, j), found("s", j, i)) for i in range(counts["r"]) for j in range(counts["s"])}


def check(r: pa.Table, s: pa.Table, on: str) -> Plan:
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 64")
    plan = unlowered(make_plan(query.predicate), PARAMETERS)
    config = configure(query, plan, PARAMETERS)
    order = arrivals(query, r, s)
    words = Encoder(plan, config, None).encode(order)
    # ROWS 64 holds every tuple, so that each pair meets once.
    wanted = set(zip(*(x.tolist() for x in pairs(run(GoldenDevice(), query, r, s))), strict=True))
    left = None if plan.residual is None else compile_condition(plan.residual)
    rows = {side: tuples_of(t, side, columns(query.predicate)) for side, t in (("r", r), ("s", s))}
    for pair, answers in matches(plan, config, words, order.stream).items():
        if left is not None:  # candidates, of which the residual chooses
            with np.errstate(all="ignore"):
                true = left(rows["r"][pair[0]], rows["s"][pair[1]]) is True
            answers = (answers[0] and true, answers[1] and true)
        assert answers == (pair in wanted, pair in wanted), (on, r.slice(pair[0], 1), s.slice(pair[1], 1))
    return plan


@settings(max_examples=examples(150))
@given(scenario(max_rows=8))
def test_random_conditions(case: Scenario) -> None:
    check(case.r, case.s, case.on.sql)


F32 = np.float32
AROUND = [F32(v) for v in (0.0, -0.0, 1, 5, 10, 10.1, 15, 15.1, 1e-45, -1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan)]
AROUND += [np.nextafter(v, F32(d)) for v in AROUND[3:8] for d in (np.inf, -np.inf)]


@pytest.mark.parametrize("on", [
    "abs(r.y - s.b) <= 10", "abs(r.y - s.b) <= 10.1", "abs(r.y - s.b) < 10", "abs(r.y - s.b) > 10",
    "abs(r.y - s.b) >= 5",
    "abs(r.y - s.b) = 5", "abs(r.y - s.b) <> 5", "r.y - s.b >= -5", "r.y - s.b > 5.1", "s.b - r.y <= 5",
    "r.y + s.b < 20",
    "2 * (r.y - s.b) + 1 <= 11", "-(r.y + s.b) >= -15.1", "r.y <= s.b", "r.y < s.b", "r.y = s.b", "r.y <> s.b",
    "r.y >= s.b",
    "r.y BETWEEN s.b - 10 AND s.b + 10", "NOT (abs(r.y - s.b) <= 10)", "abs(r.y - s.b) <= 10 OR r.y = s.b",
    "abs(r.y - s.b) < 0", "10 >= abs(s.b - r.y)",
])
@pytest.mark.parametrize("wide", [False, True])
def test_floats_to_the_last_bit(on: str, wide: bool) -> None:
    type_ = pa.float64() if wide else pa.float32()
    some = pa.array([*map(float, AROUND), None], type_)
    check(pa.table({"y": some}), pa.table({"b": some}), on)


@settings(max_examples=examples(100))
@given(st.sampled_from([32, 64]), st.sampled_from(["<=", "<", ">=", ">", "=", "<>"]), st.data())
def test_float_bands_wherever_the_guess_lands(width: int, op: str, data: st.DataObject) -> None:
    type_ = pa.float32() if width == 32 else pa.float64()
    some = st.lists(st.floats(width=width), min_size=1, max_size=6)  # type: ignore[arg-type]  # 32 or 64
    constant = data.draw(st.floats(-1e6, 1e6, width=32).map(lambda v: f"{v:.6f}"))
    left = data.draw(st.sampled_from(["abs(r.y - s.b)", "r.y + s.b", "3 * (s.b - r.y) - 0.5", "-0.1 * r.y - s.b"]))
    r, s = data.draw(some), data.draw(some)
    # Keys exactly at the distance, where a last bit decides.
    s += [float(np.float32(v) - np.float32(constant)) for v in r if abs(v) < 1e30]
    check(pa.table({"y": pa.array(r, type_)}), pa.table({"b": pa.array(s, type_)}), f"{left} {op} {constant}")


INTS = [0, 1, -1, 9, 10, 11, 2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63 - 11]


@pytest.mark.parametrize("on", [
    "abs(r.x - s.a) <= 10", "abs(r.x - s.a) <= 10.5", "abs(r.x - s.a) < 10", "r.x = s.a", "r.x <> s.a", "r.x < s.a",
    "2 * r.x - 3 * s.a <= 1", "r.x * 0.5 >= s.a", "2 * r.x = 2 * s.a + 1", "abs(r.x) = abs(s.a)", "-r.x < s.a",
    "abs(2 * r.x - 4 * s.a) > 6", "r.x + s.a = 0", "abs(r.x - s.a) >= abs(s.a)", "NOT abs(r.x - s.a) <> 1",
    "r.x IS NULL", "(r.x = s.a) IS NULL", "(r.x < s.a) = (r.x > 0)", "r.x > 3 AND s.a < 7", "r.x > 3 OR s.a < 7",
    "r.x > 3 AND abs(r.x - s.a) <= 10", "TRUE", "FALSE", "r.x = s.a OR s.a IS NULL", "NULL", "r.x = NULL",
])
@pytest.mark.parametrize("nulls", [False, True])
def test_integers_do_not_wrap(on: str, nulls: bool) -> None:
    some = pa.array(INTS + [None] * nulls, pa.int64())
    # 64-bit columns times a factor do not always fit a 64-bit key; the same condition on 32 bits must.
    check(pa.table({"x": some}), pa.table({"a": some}), on)
    narrow = pa.array([v for v in INTS if abs(v) < 2**31] + [None] * nulls, pa.int32())
    assert check(pa.table({"x": narrow}), pa.table({"a": narrow}), on).residual is None


D = "(r.y - s.b)"


@pytest.mark.parametrize(("on", "decided"), [
    (f"{D} * {D} <= 25", True), (f"{D} * {D} < 25", True), (f"{D} * {D} > 10.1", True), (f"{D} * {D} >= 0", True),
    (f"{D} * {D} = 25", True), (f"{D} * {D} <> 25", True), (f"{D} * {D} < 0", True), (f"{D} * {D} <= 0", True),
    (f"2 * abs({D}) + 1 <= 11", True), (f"0.5 * ({D} * {D}) - 1 < 10.1", True), (f"{D} * {D} > -1", True),
    (f"{D} * {D} + abs({D}) <= 30", False), (f"abs({D}) + abs(r.y + s.b) < 20.1", False),
    (f"{D} - r.y <= s.b", False), ("r.y * s.b <= 5", False), (f"{D} / s.b > 2", False),
    ("greatest(r.y, s.b) <= 10.1", True), ("least(r.y, s.b) > 10.1", True), ("greatest(r.y, s.b) = s.b", True),
    ("CASE WHEN r.y > s.b THEN r.y ELSE s.b END >= 10.1", True),
])
@pytest.mark.parametrize("wide", [False, True])
def test_shapes_of_floats_to_the_last_bit(on: str, decided: bool, wide: bool) -> None:
    some = pa.array([*map(float, AROUND), None], pa.float64() if wide else pa.float32())
    plan = check(pa.table({"y": some}), pa.table({"b": some}), on)
    assert (plan.residual is None) is decided, plan.reasons


@pytest.mark.parametrize("on", [
    "abs(r.y - s.b) <= s.u", "abs(r.y - s.b) <= r.t", "abs(s.b - r.y) > r.t", "r.y + s.b < s.u", "r.y + s.b >= r.t",
    "r.y - s.b = r.t", "r.y - s.b <> s.u", "s.u <= r.y - s.b", "s.b - r.y >= s.u", "s.b + r.y <= r.t",
    "NOT (s.b - r.y <= r.t)", "s.b - r.y <= s.u",
])
@pytest.mark.parametrize("wide", [False, True])
def test_floats_within_a_tolerance_of_their_own(on: str, wide: bool) -> None:
    type_, random = pa.float64() if wide else pa.float32(), Random(on)
    pool = [*map(float, AROUND), 0.1, 1.5, None, *(v if wide else float(F32(v)) for v in (1e-40, 3.4e38, -3.4e38))]
    columns = {name: pa.array(random.choices(pool, k=25), type_) for name in "ytbu"}
    plan = check(pa.table({n: columns[n] for n in "yt"}), pa.table({n: columns[n] for n in "bu"}), on)
    assert plan.residual is not None
    assert not any(isinstance(slot.key, UnitKey) for slot in plan.slots_r)


def test_a_tolerance_lets_few_candidates_through() -> None:
    random = np.random.default_rng(1)
    r = pa.table({"y": random.random(300).astype(F32)})
    s = pa.table({"b": random.random(300).astype(F32), "u": (random.random(300) / 50).astype(F32)})
    schemas = [Schema.from_table(side, t) for side, t in zip("rs", (r, s), strict=True)]
    query = Query.make(*schemas, on="abs(r.y - s.b) <= s.u", window="ROWS 300")
    plan, order = unlowered(make_plan(query.predicate), PARAMETERS), arrivals(query, r, s)
    config = configure(query, plan, PARAMETERS)
    found = matches(plan, config, Encoder(plan, config, None).encode(order), order.stream)
    near = int((abs(r["y"].to_numpy()[:, None] - s["b"].to_numpy()) <= s["u"].to_numpy()).sum())
    assert 0 < near <= sum(a for a, _ in found.values()) <= near + 2


X = "(r.x - s.a)"


@pytest.mark.parametrize(("on", "decided"), [
    (f"{X} * {X} <= 100", True), (f"{X} * {X} > 100", True), (f"{X} * {X} = 100", True), (f"{X} * {X} <> 100", True),
    (f"2 * {X} * {X} <= 201", True), (f"{X} * (s.a - r.x) >= -100", True), (f"{X} * {X} < r.x", True),
    (f"{X} * {X} >= s.a + 0.5", True),
    (f"{X} * {X} <= r.x + s.a", False), (f"{X} * {X} <= -1", True), (f"{X} * {X} + abs(r.x + s.a) <= 50", False),
    (f"abs({X}) + abs(r.x + s.a) <= 20", True), (f"abs({X}) - abs(r.x + s.a) >= 1", True),
    (f"abs(abs({X}) - 5) = 5", True), (f"abs({X}) + r.x <= 12", True), (f"3 * abs({X}) > abs(s.a) + 1", True),
    ("r.x * s.a <= 20", True), ("(r.x + 1) * s.a = -10", True), ("r.x * s.a <> 99", True), ("-r.x * s.a >= 10.5", True),
    (f"{X} // 10 = 1", True), (f"{X} DIV 3 <= -1", True), (f"{X} % 10 = 0", True), (f"{X} % 10 = -9", True),
    (f"{X} % 10 <> 1", True), (f"{X} % 10 < 3", True), ("((r.x ^ s.a) & 255) = 10", True),
    ("r.x % s.a = 1", False), ("r.x // s.a = 1", False), ("r.x ^ s.a = 10", True),
    ("bit_count(r.x ^ s.a) < 1", True), ("bit_count(r.x ^ s.a) <= 2", False), ("(r.x & s.a) = 9", False),
    ("(r.x & 15) = (s.a & 15)", True), ("r.x << 1 = s.a", True), ("r.x >> 1 < s.a >> 2", True),
    ("greatest(r.x, s.a) - least(r.x, s.a) <= 10", True), ("coalesce(r.x, s.a) = 9", True),
    ("r.x IS NOT DISTINCT FROM s.a", True), ("nullif(r.x, s.a) IS NULL", True), ("r.x / 2 <= s.a", True),
    ("CASE WHEN r.x > s.a THEN r.x WHEN s.a = 9 THEN NULL ELSE s.a END <= 10", True),
    ("r.x IN (s.a, s.a + 1, 9) AND r.x NOT IN (10, 11)", True), ("r.x - r.x + s.a = 9", True),
])
@pytest.mark.parametrize(("type_", "nulls"), [(pa.int32(), False), (pa.int32(), True), (pa.int64(), False),
                                              (pa.uint16(), True)], ids=str)
def test_shapes_of_whole_numbers(on: str, decided: bool, type_: pa.DataType, nulls: bool) -> None:
    low, high = (0, 2**16) if type_ == pa.uint16() else (-(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1))
    some = pa.array([v for v in INTS if low <= v < high] + [None] * nulls, type_)
    plan = check(pa.table({"x": some}), pa.table({"a": some}), on)
    # Sums and products of 64-bit columns are wider than what is compared.
    assert (plan.residual is None) is decided or type_ == pa.int64(), plan.reasons


def test_a_band_is_one_test_on_one_key() -> None:
    t = {"r": pa.table({"x": pa.array([1], pa.int32()), "y": pa.array([1], pa.float32())}),
         "s": pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([1], pa.float32())})}
    plan = check(t["r"], t["s"], "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10")
    assert len(plan.tests) == 2
    assert [k.key.width for k in plan.slots_s] == [32, 32]


@given(st.data())
def test_pack_and_unpack_are_inverse(data: st.DataObject) -> None:
    widths = data.draw(st.lists(st.integers(1, 64), min_size=1, max_size=6))
    record = Record(tuple((f"f{i}", w) for i, w in enumerate(widths)))
    n = data.draw(st.integers(0, 5))
    fields = {f"f{i}": np.array(data.draw(st.lists(st.integers(0, 2**w - 1), min_size=n, max_size=n)), np.uint64)
              for i, w in enumerate(widths)}
    got = unpack(record, pack(record, fields, n))
    assert all((got[name] == fields[name]).all() for name in fields)


def test_packing_is_least_significant_first() -> None:
    record = Record((("a", 4), ("b", 40), ("c", 1)))
    words = pack(record, {"a": np.array([5], np.uint64), "b": np.array([0x123456789A], np.uint64), "c": 1}, 1)
    assert int.from_bytes(words.tobytes(), "little") == 5 | 0x123456789A << 4 | 1 << 44


def test_decode_marks_the_other_field_of_a_star() -> None:
    words = pack(item_record(), {"kind": np.array([0, 1, 1], np.uint64), "side": np.array([0, 0, 1], np.uint64),
                                 "r": np.array([1, 2, 3], np.uint64), "s": np.array([4, 5, 6], np.uint64)}, 3)
    fields = unpack(item_record(), words)
    items = np.zeros(3, ITEM)
    for name in fields:
        items[name] = fields[name]
    items = decode(items)
    assert items.tolist() == [(0, 0, 1, 4), (1, 0, 2, -1), (1, 1, -1, 6)]


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


HIDDEN_NULL = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
NOT_NULL_BY_NAME = pa.table([ints(1, None, 3)], schema=pa.schema([pa.field("x", pa.int64(), False)]))
NULLS: dict[str, tuple[pa.Table, pa.Table, tuple[str, ...]]] = {
    "a column that cancels out still counts": (
        pa.table({"x": ints(1, 2), "y": ints(None, 7)}), pa.table({"a": ints(1, 2)}),
        ("r.x + r.y - r.y = s.a", "r.x + 0 * r.y = s.a", "r.x + r.y - r.y <> s.a")),
    "NULL where the field says there is none": (NOT_NULL_BY_NAME, pa.table({"a": ints(1, 0, 3, 5)}), ("r.x <= s.a",)),
    "NULL among a dictionary's values": (
        pa.table({"n": HIDDEN_NULL}), pa.table({"m": pa.array(["a", "b"], pa.string_view())}),
        ("r.n <> 'b'", "r.n IS NULL AND s.m = 'a'", "r.n = s.m", "r.n <> s.m")),
    "conditions compared": (
        pa.table({"x": ints(1, 1), "p": [False, True], "o": pa.array([None, None], pa.bool_())}),
        pa.table({"q": [True, False, None]}),
        ("((r.x = NULL) IS NULL) = s.q", "(r.p OR NULL IS NULL) = s.q", "((r.p AND r.o) = s.q) IS NOT FALSE",
         "((r.p AND r.o) = s.q) IS NULL", "(r.x > 0.5) = s.q", "r.p <= s.q", "r.p > s.q", "r.p <> s.q")),
    "a column of type null": (
        pa.table({"x": pa.nulls(2)}), pa.table({"a": ints(1, None)}),
        ("r.x IS NULL", "r.x = s.a", "r.x IS NULL AND s.a > 0", "abs(r.x - s.a) <= 1 OR s.a IS NULL")),
    "floats from numbers beyond them": (
        pa.table({"x": ints(1, -1, 0)}), pa.table({"f": pa.array([1.0, float("inf"), float("-inf")])}),
        ("1e308 * r.x * 10 > s.f", "s.f < 1e308 * (r.x + 0.001) * 10")),
    "ends of a key's range beyond int64": (
        pa.table({"x": ints(1, 2**63 - 1)}), pa.table({"a": ints(1, -(2**63))}), ("r.x = abs(s.a)", "r.x <= abs(s.a)")),
    "text views": (
        pa.table({"n": pa.array(["a", None], pa.string_view())}),
        pa.table({"m": pa.array(["a", "b"], pa.large_string())}),
        ("r.n = s.m", "r.n <> s.m", "r.n IS NULL")),
}


@pytest.mark.parametrize(("case", "on"), [(case, on) for case, (*_, conditions) in NULLS.items() for on in conditions])
def test_nulls_and_extremes(case: str, on: str) -> None:
    r, s, _ = NULLS[case]
    check(r, s, on)
