import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin import DeviceError, InputError, Query, Schema
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import PAIR, STAR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin.lang.eval.scalar import evaluate
from splitjoin.lang.ir import Cast, Expr
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.types import BOOL, FLOAT32, STRING, Exact
from tests.support.conformance import run

# The letters of a result: R's or S's probe, a star of either.
Item = tuple[str, int, int]


def items(r: dict[str, Any], s: dict[str, Any], on: str, window: Any, order: str, *, time: str | None = None,
          cores: int = 1) -> list[Item]:
    """The golden answer: ("r", i, j) is a pair whose probe is r#i, ("r*", i, -1) a star of R after r#i."""
    left, right = pa.table(r), pa.table(s)
    query = Query.make(Schema.from_table("r", left), Schema.from_table("s", right), on=on, window=window, time=time,
                       order=order)
    found = run(GoldenDevice(cores=cores), query, left, right)
    return [("rs"[i["side"]] + ("*" if i["kind"] == STAR else ""), int(i["r"]), int(i["s"])) for i in found]


def test_total_has_a_star_after_every_probe() -> None:
    found = items({"x": [1, 2]}, {"a": [1, 2]}, "r.x = s.a", "ROWS 5", "total")
    assert found == [("r*", 0, -1), ("s", 0, 0), ("s*", -1, 0), ("r*", 1, -1), ("s", 1, 1), ("s*", -1, 1)]
    assert items({"x": [1, 2]}, {"a": [1, 2]}, "r.x = s.a", "ROWS 5", "outer") == found


def test_outer_has_a_star_after_every_n_probes_and_a_last_one() -> None:
    five = {"x": [1] * 5}
    found = items(five, {"a": [0] * 4}, "r.x = s.a", "ROWS 5", "outer(2)")
    assert found == [("r*", 1, -1), ("s*", -1, 1), ("r*", 3, -1), ("s*", -1, 3), ("r*", 4, -1)]
    assert items(five, {"a": [0]}, "r.x = s.a", "ROWS 5", "outer(9)") == [("r*", 4, -1), ("s*", -1, 0)]
    assert items({"x": pa.array([], pa.int32())}, {"a": [0]}, "r.x = s.a", "ROWS 5", "outer(9)") == [("s*", -1, 0)]


@pytest.mark.parametrize(("n", "cores", "slices"), [
    (1, 1, ["0", "1", "2", "3", "4"]), (2, 1, ["01", "23", "4"]), (1, 2, ["01", "23", "4"]), (5, 1, ["01234"]),
    (2, 2, ["0123", "4"]), (1, 5, ["01234"]), (9, 1, ["01234"]),
])
def test_inner_has_a_star_after_every_n_comparisons_of_a_sub_window(n: int, cores: int, slices: list[str]) -> None:
    # Five R tuples at time 0, then one S tuple that meets them all.
    found = items({"ts": [0] * 5}, {"ts": [1]}, "TRUE", "RANGE 9", f"inner({n})", time="ts", cores=cores)
    expected: list[Item] = [("r*", i, -1) for i in range(5)]  # a probe that sees nothing has its one star too
    for part in slices:
        expected += [("s", int(i), 0) for i in part]
        expected.append(("s*", -1, 0))
    assert found == expected


def test_no_input_gives_no_items() -> None:
    empty = pa.array([], pa.int32())
    for order in ("none", "outer(2)", "inner(1)", "total"):
        assert items({"x": empty}, {"a": empty}, "r.x = s.a", "ROWS 5", order) == []


R_TYPES = pa.schema([("i", pa.int64()), ("f", pa.float32()), ("d", pa.float64()), ("b", pa.bool_()), ("t", pa.string()),
                     ("day", pa.date32()), ("at", pa.timestamp("ms"))])
S_TYPES = pa.schema([("j", pa.int64()), ("g", pa.float32()), ("e", pa.float64()), ("c", pa.bool_()), ("u", pa.string()),
                     ("on", pa.date32()), ("when", pa.timestamp("ns"))])


def value(on: str, r: dict[str, Any] | None = None, s: dict[str, Any] | None = None) -> Any:
    expr = parse_sql(on, Schema.from_arrow("r", R_TYPES), Schema.from_arrow("s", S_TYPES))
    return evaluate(expr, r or {}, s or {})


@pytest.mark.parametrize(("on", "truth"), [
    ("TRUE AND NULL", None), ("FALSE AND NULL", False), ("NULL AND FALSE", False), ("NULL AND NULL", None),
    ("TRUE OR NULL", True), ("NULL OR TRUE", True), ("FALSE OR NULL", None), ("NOT NULL", None), ("NOT TRUE", False),
    ("NULL = 1", None), ("NULL IS NULL", True), ("1 IS NULL", False), ("NULL IS NOT NULL", False),
    ("1 + NULL = 1", None),
    ("abs(NULL) > 1", None), ("NULL IS TRUE", False), ("TRUE IS TRUE", True), ("NULL IS NOT TRUE", True),
    ("FALSE IS FALSE", True), ("NULL IS FALSE", False), ("1 BETWEEN NULL AND 0", False), ("1 BETWEEN NULL AND 2", None),
    ("1 NOT BETWEEN NULL AND 0", True), ("FALSE < TRUE", True), ("0.1 + 0.2 = 0.3", True), ("'a' = 'A'", False),
])
def test_three_valued_logic(on: str, truth: bool | None) -> None:
    assert value(on) is truth


def test_integers_never_wrap() -> None:
    low, high = -(2**63), 2**63 - 1
    assert value("r.i - s.j = 18446744073709551615", {"i": high}, {"j": low}) is True
    assert value("abs(r.i) > s.j", {"i": low}, {"j": high}) is True
    assert value("-r.i * 3 + 1 > 0", {"i": low}) is True
    assert value("r.i * 0.1 = 922337203685477580.7", {"i": high}) is True


@pytest.mark.parametrize(("a", "b", "less", "equal"), [
    (math.nan, math.nan, False, True), (math.nan, math.inf, False, False), (math.inf, math.nan, True, False),
    (1.0, math.nan, True, False), (-0.0, 0.0, False, True), (-math.inf, math.inf, True, False), (1.0, 2.0, True, False),
])
@pytest.mark.parametrize(("x", "y"), [("f", "g"), ("d", "e"), ("f", "e")])
def test_order_of_floats(x: str, y: str, a: float, b: float, less: bool, equal: bool) -> None:
    row = {x: a}, {y: b}
    assert value(f"r.{x} < s.{y}", *row) is less
    assert value(f"r.{x} <= s.{y}", *row) is (less or equal)
    assert value(f"r.{x} = s.{y}", *row) is equal
    assert value(f"r.{x} <> s.{y}", *row) is not equal
    assert value(f"r.{x} > s.{y}", *row) is (not less and not equal)
    assert value(f"r.{x} >= s.{y}", *row) is not less


def test_float32_arithmetic_is_rounded_to_float32() -> None:
    assert value("r.f + 1 = 16777216", {"f": 16777216.0}) is True
    assert value("r.d + 1 = 16777216", {"d": 16777216.0}) is False
    assert value("r.f * 10 > 1e38", {"f": 3e38}) is True  # infinite
    assert value("r.f - s.g = s.g", {"f": math.inf}, {"g": math.inf}) is False  # NaN
    # 10.1 is the float64 in a comparison: the float32 nearest to 10.1 is larger.
    assert value("r.f <= 10.1", {"f": np.float32(10.1)}) is (float(np.float32(10.1)) <= 10.1)
    below = np.nextafter(np.float32(10.1), np.float32(0))
    assert value("r.f <= 10.1", {"f": below}) is True


def test_the_boundary_of_a_float32_band_to_the_last_bit() -> None:
    rng = np.random.default_rng(7)
    for b in rng.uniform(-1000, 1000, 300).astype(np.float32):
        for y in (b + np.float32(10), b - np.float32(10)):
            for near in (np.nextafter(y, np.float32(-np.inf)), y, np.nextafter(y, np.float32(np.inf))):
                assert value("abs(r.f - s.g) <= 10", {"f": near}, {"g": b}) is bool(np.abs(near - b) <= np.float32(10))


def test_integers_meet_floats_as_float64() -> None:
    assert value("r.i = s.e", {"i": 2**53 + 1}, {"e": 2.0**53}) is True
    assert value("r.i = s.e", {"i": 2**63 - 1}, {"e": 2.0**63}) is True
    assert value("r.i + s.g = 16777217", {"i": 16777216}, {"g": 1.0}) is True
    assert value("r.i * 1e900 > s.e", {"i": 1}, {"e": 1e308}) is True  # beyond float64: infinite
    assert value("r.i * 1e900 > s.e", {"i": -1}, {"e": -math.inf}) is False


def test_times() -> None:
    noon = int(dt.datetime(2013, 1, 1, 12, tzinfo=dt.UTC).timestamp())
    row = {"at": noon * 1000}, {"when": noon * 10**9 + 1}
    assert value("r.at < s.when", *row) is True
    assert value("s.when - r.at = INTERVAL 1 NANOSECOND", *row) is True
    assert value("r.at = TIMESTAMP '2013-01-01 12:00'", *row) is True
    assert value("r.at + INTERVAL 1 NANOSECOND = s.when", *row) is True
    assert value("abs(r.at - s.when) <= INTERVAL 0 DAYS", *row) is False
    assert value("r.day - s.on = -1 AND r.day + 1 = s.on", {"day": 3}, {"on": 4}) is True


def test_counters_and_a_session_in_stretches() -> None:
    r, s = pa.table({"x": [1, 2, 3]}), pa.table({"a": [1, 2, 3]})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 9")
    whole = arrivals(query, r, s)
    with GoldenDevice().open(query) as session:
        assert len(session.poll()) == 0
        session.push(whole)
        first = session.poll()
        assert (first["kind"] == PAIR).sum() == 3
        assert len(session.poll()) == 0
        assert session.counters() == {"tuples_r": 3, "tuples_s": 3, "comparisons": 9, "matches": 3}
        assert session.latencies() is None
        session.push(whole)
        assert session.counters()["tuples_r"] == 6
        # The last R tuple is r#5: row ids go on over stretches.
        rest = session.flush()
        assert rest["r"].max() == 5
        assert len(session.flush()) == 0
        with pytest.raises(DeviceError, match="nothing can be pushed after flush; open a new session"):
            session.push(whole)


def test_time_must_not_fall_between_stretches() -> None:
    r, s = pa.table({"ts": [5]}), pa.table({"ts": [9]})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="TRUE", window="RANGE 9", time="ts")
    session = GoldenDevice().open(query)
    session.push(arrivals(query, r, s))
    with pytest.raises(InputError, match="event time must not decrease in arrival order, but 5 came after 9"):
        session.push(arrivals(query, r, s))


def test_a_range_needs_times() -> None:
    r, s = pa.table({"ts": [5]}), pa.table({"ts": [9]})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="TRUE", window="RANGE 9", time="ts")
    with pytest.raises(InputError, match="a RANGE window needs event times, but these arrivals have none"):
        GoldenDevice().open(query).push(Arrivals(np.array([0, 1], np.uint8), None, r, s))


@pytest.mark.parametrize("cores", [0, -1, 1.5, True, "2"])
def test_wrong_cores(cores: Any) -> None:
    with pytest.raises(DeviceError, match=f"cores must be a positive integer, not {cores!r}"):
        GoldenDevice(cores=cores)


def test_the_device_has_a_name() -> None:
    found = device("golden", cores=3)
    assert isinstance(found, GoldenDevice)
    assert found.cores == 3
    assert device(found) is found


def test_what_is_not_ir_is_refused() -> None:
    with pytest.raises(TypeError, match="not an IR node"):
        evaluate(Expr(BOOL), {}, {})
    with pytest.raises(TypeError, match="no cast from exact number to string"):
        evaluate(Cast(STRING, parse_sql("1 = 1", Schema("r", ()), Schema("s", ())).children[0]), {}, {})
    one = parse_sql("1 = 1", Schema("r", ()), Schema("s", ())).children[0]
    assert isinstance(one.type, Exact)
    assert evaluate(Cast(FLOAT32, one), {}, {}) == np.float32(1)
