"""Aggregates: the reference against DuckDB, and what runs against the reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings, strategies as st

import splitjoin
from splitjoin import InputError
from splitjoin.lang.aggregate_functions import rounded_sum

from ....support.aggregates import FUNCTIONS, aggregate_oracle
from ....support.oracle import integers
from ....support.sampling import examples
from ....support.statements import exactly
from ....support.strategies import TIME_TYPES, RandomWindows, tables, windows

TYPES = (pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.date32(), pa.string(), pa.timestamp("ms"),
         pa.decimal128(9, 2), pa.decimal128(38, 2), pa.duration("ms"), pa.binary())


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def fitting(type_: pa.DataType) -> dict[str, str]:
    """The functions that take values of ``type_``."""
    numeric = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    return {text: oracle for text, oracle in FUNCTIONS.items() if not text.startswith(("sum", "avg")) or numeric
            or (text.startswith("sum") and pa.types.is_duration(type_))}


def found(device: str, r: pa.Table, s: pa.Table, aggregates: dict[str, str], **how: Any) -> Any:
    """The columns of the aggregates, or the error."""
    try:
        return splitjoin.join(r, s, by="r", aggregate=aggregates, device=device, select=[], **how).to_arrow()
    except InputError as error:
        return str(error)


def plain(table: pa.Table) -> list[list[Any]]:
    return [[exactly(v) for v in column.to_pylist()] for column in integers(table).columns]


@settings(max_examples=examples(30))
@given(data=st.data())
def test_random_aggregates_equal_the_oracle(db: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(TYPES))
    times = data.draw(st.one_of(st.none(), st.sampled_from(TIME_TYPES)))
    r = data.draw(tables({"x0": pa.int32()}, time=times and ("ts", times[0]), max_rows=8))
    s = data.draw(tables({"a0": type_, "b0": pa.float32()}, time=times and ("ts", times[1]), max_rows=12))
    window: RandomWindows = data.draw(windows(times and times[0]))
    left = data.draw(st.booleans())
    how: dict[str, Any] = {"on": "s.b0 > 0 OR s.b0 IS NULL OR r.x0 > 0", "window": window.spec,
                           "time": times and "ts", "how": "left" if left else "inner"}
    functions = fitting(type_)
    aggregates = {f"v{n}": text for n, text in enumerate(functions)}
    golden, fast = (found(device, r, s, aggregates, **how) for device in ("golden", "cpu"))
    if isinstance(golden, str) or isinstance(fast, str):
        assert golden == fast  # a sum that does not fit
        assert " must fit " in golden
        return
    assert golden.schema == fast.schema
    assert plain(golden) == plain(fast)
    # Sums and averages of floats, and averages of large numbers, are rounded otherwise in DuckDB; those of decimals may
    # not fit.
    compared = [n for n, text in enumerate(functions) if not text.startswith("avg") and not (
        text.startswith("sum") and (pa.types.is_floating(type_) or type_ == pa.decimal128(38, 2)))]
    expected = aggregate_oracle(db, r, s, [list(functions.values())[n] for n in compared], left=left, on=how["on"],
                                window_r=window.r, window_s=window.s, time=how["time"])
    columns = list(zip(*expected, strict=True))[1:] if expected else [()] * len(compared)
    ours = plain(fast)
    for n, column in zip(compared, columns, strict=True):
        assert ours[n] == [exactly(v) for v in column], list(functions)[n]


@settings(max_examples=examples(60))
@given(values=st.lists(st.one_of(st.none(), st.floats(), st.floats(width=32)), max_size=12),
       width=st.sampled_from([32, 64]))
def test_sums_and_averages_of_floats_are_rounded_once(values: list[float | None], width: int) -> None:
    type_ = pa.float32() if width == 32 else pa.float64()
    try:
        s = pa.table({"a": pa.array(values, type_)})
    except OverflowError:
        assume(False)
    r = pa.table({"x": [1]})
    made = splitjoin.join(r, s, on="TRUE", window="ROWS 50", how="left", by="r",
                          aggregate={"total": "sum(s.a)", "mean": "avg(s.a)"}).to_pylist()[0]
    present = [v for v in s["a"].to_pylist() if v is not None]
    expected = rounded_sum(present) if present else None
    assert exactly(made["total"]) == exactly(expected)
    assert exactly(made["mean"]) == exactly(None if expected is None else expected / len(present))


@pytest.mark.parametrize("type_", [pa.int64(), pa.decimal128(38, 3)])
def test_averages_of_exact_numbers_are_rounded_once(type_: pa.DataType) -> None:
    numbers = [2**62 - 1, 2**62 - 3, 7]
    s = pa.table({"a": pa.array(numbers, type_)})
    made = splitjoin.join(pa.table({"x": [1]}), s, on="TRUE", window="ROWS 50", by="r", aggregate={"m": "avg(s.a)"})
    exact = Fraction(sum(numbers), 3)
    mean = made.column("m").to_pylist()
    assert mean == [exact.numerator / exact.denominator]
    assert mean != [float(sum(numbers)) / 3] or math.isclose(float(exact), float(sum(numbers)) / 3)


@pytest.mark.parametrize(("type_", "value", "result"), [
    (pa.int64(), 2**62, "int64"), (pa.uint64(), 2**63, "uint64"),
    (pa.decimal128(38, 2), 10**35, "decimal128(38, 2)"), (pa.duration("s"), 2**62, "duration[s]"),
])
@pytest.mark.parametrize("device", ["cpu", "golden"])
def test_a_sum_that_does_not_fit_names_the_row(device: str, type_: pa.DataType, value: int, result: str) -> None:
    values = [value] * 10 if pa.types.is_decimal(type_) else [value] * 2
    s = pa.table({"a": pa.array(values).cast(type_) if pa.types.is_duration(type_) else pa.array(values, type_)})
    r = pa.table({"x": [5, 6]})
    how: dict[str, Any] = {"window": "ROWS 50", "by": "r", "aggregate": {"total": "sum(s.a)"}, "device": device}
    with pytest.raises(InputError, match=r"'sum\(s\.a\)' of row 1 of r must fit ") as raised:
        splitjoin.join(r, s, on="r.x = 6", **how)
    assert f"must fit {result}, but is {sum(values)}" in str(raised.value)


def test_many_partners_are_folded_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from splitjoin.rows.aggregates import fold

    r, s = pa.table({"x": range(50)}), pa.table({"a": range(50)})
    how: dict[str, Any] = {"on": "s.a % 3 <> 0", "window": "ROWS 9", "how": "left", "by": "r",
                           "aggregate": {"n": "count(*)", "t": "sum(s.a)", "m": "min(s.a)"}}
    whole = splitjoin.join(r, s, **how)
    monkeypatch.setattr(fold, "_BLOCK", 7)
    assert splitjoin.join(r, s, **how) == whole
