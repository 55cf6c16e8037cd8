import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError, SchemaError
from splitjoin.lang.field import range_of
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from tests.support.sampling import examples
from tests.support.strategies import Scenario, scenario
from tests.sw.circuit.test_encode import check

DAY = dt.datetime(2013, 1, 1)


@pytest.mark.parametrize(("type_", "low", "high", "range_"), [
    ("int32", 0, 999, (0, 999)), (pa.int64(), None, 5, (-(2**63), 5)), ("uint8", 3, None, (3, 255)),
    (pa.decimal128(9, 2), Decimal("-1.25"), 3, (-125, 300)), (pa.decimal128(38, 0), 0, 10**30, (0, 10**30)),
    ("date32", dt.date(1970, 1, 2), dt.date(1970, 1, 3), (1, 2)),
    (pa.timestamp("ms"), DAY, None, (1356998400000, 2**63 - 1)),
    (pa.duration("s"), dt.timedelta(0), dt.timedelta(hours=1), (0, 3600)),
    (pa.dictionary(pa.int8(), pa.int16()), 1, 2, (1, 2)),
])
def test_declared_ranges(type_: Any, low: Any, high: Any, range_: tuple[int, int]) -> None:
    f = splitjoin.field("x", type_, min=low, max=high)
    assert range_of(f) == range_
    assert Schema.from_arrow("r", pa.schema([f]))["x"].range == range_
    assert range_of(splitjoin.field("x", type_)) is None


@pytest.mark.parametrize(("type_", "ends", "message"), [
    ("int32", {"min": "a"}, "min of field 'x' must be a value of int32, not 'a'"),
    ("int32", {"max": 2**31}, "max of field 'x' must be a value of int32, not 2147483648"),
    ("int32", {"min": 1.5}, "min of field 'x' must be a value of int32, not 1.5"),
    ("int32", {"min": True}, "min of field 'x' must be a value of int32, not True"),
    ("int32", {"min": 2, "max": 1}, "min of field 'x' must not be greater than its max, but 2 is greater than 1"),
    (pa.decimal128(3, 1), {"max": Decimal("0.05")}, r"max of field 'x' must be a value of decimal128\(3, 1\)"),
    ("float", {"min": 1}, "field 'x' of type float32 must not have min or max; integers, decimals, dates"),
    ("wat", {"max": 1}, "field 'x' must have an Arrow type, or the name of one such as 'int32' .*, not 'wat'"),
    ("string", {"max": "z"}, "field 'x' of type string must not have min or max"),
])
def test_wrong_ranges(type_: Any, ends: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        splitjoin.field("x", type_, **ends)


def widths(on: str, **columns: pa.Field) -> list[int]:
    r, s = (Schema.from_arrow(side, pa.schema([f for n, f in columns.items() if n[0] == side])) for side in "rs")
    plan = make_plan(Query.make(r, s, on=on, window="ROWS 1").predicate)
    assert plan.residual is None
    return [slot.key.width for slot in plan.slots_r + plan.slots_s]


def test_ranges_narrow_keys() -> None:
    x, a = (splitjoin.field(n, "int64", min=0, max=999, nullable=False) for n in "xa")
    assert widths("abs(r.x - s.a) <= 10", r=x, s=a) == [10, 10]
    assert widths("abs(r.x - s.a) + abs(r.x) <= 10", r=x, s=a) == [11, 11, 10]
    assert widths("r.x - s.a <= 1000", r=x, s=a) == [1, 1]  # always
    wide = [splitjoin.field(n, pa.decimal128(38, 2), min=0, max=100) for n in "xa"]
    assert widths("abs(r.x - s.a) < 1.5", r=wide[0], s=wide[1]) == [14, 14]


def test_values_outside_are_refused() -> None:
    schema = pa.schema([splitjoin.field("x", "int64", min=0, max=9)])
    r = pa.table({"x": [1, None, 10]}, schema=schema)
    with pytest.raises(InputError, match=r"the values of r\.x must be within the range that its field declares, "
                                         r"but row 2 has 10; declare a wider one"):
        splitjoin.join(r, pa.table({"a": [1]}), on="r.x = s.a", window="ROWS 1")
    with splitjoin.open(splitjoin.query(schema, pa.schema([("a", pa.int64())]), on="r.x = s.a", window="ROWS 1"),
                        device="golden") as session, pytest.raises(InputError, match="row 2 has 10"):
        session.push_r(r)


@settings(max_examples=examples(100))
@given(scenario(max_rows=6))
def test_measured_ranges_change_no_answer(case: Scenario) -> None:
    check(splitjoin.measured(case.r), splitjoin.measured(case.s), case.on.sql)


def test_parquet_statistics(tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    table = pa.table({"x": [3, 9, None], "n": ["a", "b", "c"], "t": pa.array([1, 2, 3], pa.timestamp("ms")),
                      "d": pa.array([Decimal("1.5"), None, None], pa.decimal128(9, 2)), "e": pa.nulls(3, pa.int32())})
    pq.write_table(table, path, row_group_size=2)
    schema = splitjoin.parquet_schema(path)
    assert [range_of(f) for f in schema] == [(3, 9), None, (1, 3), (150, 150), None]
    assert [f.nullable for f in schema] == [True, False, False, True, True]
    assert pq.read_table(path).cast(schema).schema.field("x").metadata == schema.field("x").metadata
    pq.write_table(table, path, write_statistics=False)
    assert [range_of(f) for f in splitjoin.parquet_schema(path)] == [None] * 5
    with pytest.raises(InputError, match=r"none.parquet cannot be read as Parquet"):
        splitjoin.parquet_schema(tmp_path / "none.parquet")


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=5))
def test_measured(values: list[int | None]) -> None:
    f = splitjoin.measured(pa.table({"x": pa.array(values, pa.int64())})).schema.field("x")
    known = [v for v in values if v is not None]
    assert range_of(f) == ((min(known), max(known)) if known else (0, 0))
    assert f.nullable == (None in values)
