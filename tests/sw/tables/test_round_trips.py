"""Every type through every format and every export: a stored result is the one in memory, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin import InputError, JoinResult, join
from splitjoin.lang.layouts import decoded, encoded
from splitjoin.tables import TableWriter
from tests.support.sampling import examples

TEXTS = ["", "a", 'q"q', "x\r\ny", "nan", "NULL", " a ", "00501", "1e5", "true", "a,b", "\0", "ü", "2024-02-29", "-"]
FLOATS = [0.0, -0.0, 0.1, 1e22, 5e-324, float("inf"), float("-inf"), float("nan"), 2.0**53 + 2]
NOON = [0, -1, 1709164800, 951782399]

#: Values of every kind of type, plain ones.
PLAIN: dict[pa.DataType, Sequence[Any]] = {
    **{getattr(pa, f"{sign}int{bits}")(): [0, 1, 2**(bits - 1) - 1, *([2**bits - 1] if sign else [-2**(bits - 1)])]
       for bits in (8, 16, 32, 64) for sign in ("", "u")},
    pa.float64(): FLOATS, pa.float32(): [0.0, 0.1, 16777217.0, 1e-45, float("nan"), float("-inf")],
    pa.float16(): [0.0, 1.5, 0.1, float("inf"), float("nan")], pa.bool_(): [True, False], pa.null(): [None],
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), TEXTS),
    **{type_: [b"", b"a", b"\xff\x00", b"nan"] for type_ in (pa.binary(), pa.large_binary(), pa.binary_view())},
    pa.binary(2): [b"ab", b"\x00\xff"],
    **{pa.timestamp(unit): [0, -1, 1709164800, 253402300799] for unit in ("s", "ms", "us", "ns")},
    pa.timestamp("s", "Europe/Vienna"): NOON, pa.timestamp("us", "UTC"): NOON,
    pa.date32(): [0, -719528, 19782, 2932896], pa.date64(): [0, 86400000 * 19782, -86400000],
    pa.time32("s"): [0, 86399], pa.time32("ms"): [1, 86399999], pa.time64("us"): [1], pa.time64("ns"): [1, 10**9 + 1],
    **{pa.duration(unit): [0, -1, 2**62] for unit in ("s", "ns")},
    pa.decimal128(5, 2): [Decimal("1.50"), Decimal("-999.99"), Decimal(0)], pa.decimal128(38, 37): [Decimal("1e-37")],
    pa.decimal128(5, -2): [Decimal(150000)], pa.decimal32(5, 2): [Decimal("1.5")], pa.decimal64(15, 2): [Decimal(7)],
    pa.decimal256(70, 2): [Decimal("9" * 60 + ".5"), Decimal("-0.01")],
    pa.list_(pa.int8()): [[], [1, None]], pa.list_(pa.timestamp("s")): [[0], [None, 5]],
    pa.large_list(pa.string()): [["", None]], pa.list_(pa.int8(), 2): [[1, 2]], pa.list_view(pa.int8()): [[1]],
    pa.struct([("a", pa.timestamp("s")), ("b", pa.string())]): [{"a": 5, "b": ""}, {"a": None, "b": None}],
    pa.map_(pa.string(), pa.date64()): [[("k", 86400000)], []],
    pa.month_day_nano_interval(): [(1, 2, 3), (1, -2, 3000)],
}
#: Types with a dictionary or runs, of values of a plain one.
ENCODED = [
    *(pa.dictionary(index, value, ordered) for index, value, ordered in (
        (pa.int8(), pa.string(), False), (pa.int32(), pa.large_string(), True), (pa.uint16(), pa.string_view(), False),
        (pa.int32(), pa.int64(), False), (pa.int8(), pa.timestamp("s"), True), (pa.int32(), pa.float64(), False),
        (pa.int32(), pa.decimal128(5, 2), False), (pa.int16(), pa.date64(), False), (pa.int8(), pa.binary(), True),
        (pa.int8(), pa.list_(pa.int8()), False), (pa.int8(), pa.decimal32(5, 2), False))),
    *(pa.run_end_encoded(ends, value) for ends, value in (
        (pa.int16(), pa.int32()), (pa.int32(), pa.string()), (pa.int64(), pa.string_view()),
        (pa.int32(), pa.timestamp("s")), (pa.int32(), pa.list_(pa.int8())))),
]
#: What a format does not hold, by its suffix.
REFUSED = {
    ".parquet": lambda type_: pa.types.is_interval(type_),
    ".csv": lambda type_: (pa.types.is_nested(type_) or pa.types.is_interval(type_) or any(
        getattr(pa.types, f"is_{kind}")(type_) for kind in ("binary", "large_binary", "binary_view",
                                                            "fixed_size_binary"))),
    ".arrow": lambda type_: False,
}


#: Types of which Polars or DuckDB do not hold all values.
SOME = [pa.float16(), pa.month_day_nano_interval(), pa.list_view(pa.int8()), pa.decimal256(70, 2), pa.duration("s"),
        pa.duration("ns")]


def values_of(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if type_ in ENCODED else type_


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The values of ``column`` for comparisons, times as numbers, as Python does not have all of them."""
    column = decoded(column)
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return [repr(value) for value in column.to_pylist()]


@st.composite
def columns(draw: st.DrawFn) -> pa.ChunkedArray:
    type_ = draw(st.sampled_from([*PLAIN, *ENCODED]))
    value = values_of(type_)
    chunks = draw(st.lists(st.lists(st.sampled_from([None, *PLAIN[value]]), max_size=5), max_size=3))
    if type_ in (pa.string(), pa.dictionary(pa.int8(), pa.string())):
        chunks.append(draw(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=3)))
    made = pa.chunked_array([pa.array(chunk, value) for chunk in chunks], value)
    return made if type_ == value else encoded(made, type_)


def stored(table: pa.Table, path: Path) -> JoinResult:
    with TableWriter(path, table.schema) as writer:
        for at in range(0, len(table), 3):  # in parts, as a join gives them
            writer.write(table.slice(at, 3))
    return JoinResult(writer.stored(), None, {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stored")


@settings(max_examples=examples(200), deadline=None)
@given(columns(), st.sampled_from([".parquet", ".csv", ".arrow"]), st.booleans(), st.integers(1, 4))
def test_a_stored_result_is_the_one_in_memory(folder: Path, column: pa.ChunkedArray, suffix: str, alone: bool,
                                              rows: int) -> None:
    field = pa.field("v", column.type, metadata={"k": "v"})
    table = pa.Table.from_arrays([column], schema=pa.schema([field]))
    if not alone:
        table = table.append_column("n", pa.array(range(len(table)), pa.int32()))
    path = folder / f"o{suffix}"
    path.unlink(missing_ok=True)
    if REFUSED[suffix](values_of(column.type)):
        with pytest.raises(InputError, match=r"column .v. of the result has type .*; write an? .*, or select other"):
            stored(table, path)
        assert not path.exists()
        return
    result = stored(table, path)
    found = result.to_arrow()
    found.validate(full=True)
    assert result.schema.equals(found.schema, check_metadata=True)
    assert found.schema.equals(table.schema, check_metadata=True)
    assert plain(found.column(0)) == plain(column)
    batches = list(result.batches(rows))
    assert all(len(batch) <= rows and batch.schema == table.schema for batch in batches)
    for other in (pa.Table.from_batches(batches, table.schema), pa.table(result)):
        other.validate(full=True)
        assert other.schema == table.schema
        assert [plain(c) for c in other.columns] == [plain(c) for c in table.columns]


@settings(max_examples=examples(60), deadline=None)
@given(columns())
def test_exports_hold_the_values(folder: Path, column: pa.ChunkedArray) -> None:
    """Or refuse the column."""
    result = stored(pa.table({"v": column}), folder / "e.arrow")
    for export in (lambda: result.to_polars().to_arrow(), lambda: result.to_duckdb().to_arrow_table()):
        try:
            found = decoded(export().column("v"))
        except (InputError, duckdb.NotImplementedException):
            assert values_of(column.type) in SOME
            continue
        if pa.types.is_interval(found.type) and not pa.types.is_interval(column.type):  # as DuckDB has durations
            assert all(value is None or value[:2] == (0, 0) for value in found.to_pylist())
            found = pa.chunked_array([[None if value is None else value.nanoseconds for value in found.to_pylist()]],
                                     pa.duration("ns"))
        if found.type not in (pa.list_(pa.int8()), values_of(column.type)):  # of a list view, to which Arrow casts not
            found = found.cast(values_of(column.type))
        assert plain(found) == plain(column)


@pytest.mark.parametrize("type_", [pa.int64(), pa.uint64()])
def test_pandas_gets_whole_numbers_with_null_unrounded(type_: pa.DataType) -> None:
    """Of which it makes floats, as long as these hold the numbers, and no option says otherwise."""
    result = JoinResult(pa.table({"v": pa.array([2**53 + 1, None], type_), "w": pa.array([1, None], type_)}), None, {})
    frame = result.to_pandas()
    assert (str(frame.v.dtype).lower(), str(frame.w.dtype)) == (str(type_), "float64")
    assert pa.Table.from_pandas(frame).column("v").to_pylist() == [2**53 + 1, None]
    assert result.to_pandas(integer_object_nulls=True).v[0] == 2**53 + 1


def test_a_result_whose_file_holds_another_one(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    first = stored(pa.table({"x": [1, 2]}), path)
    second = stored(pa.table({"x": [3, 4]}), path)
    assert second.to_pydict() == {"x": [3, 4]}
    reads: list[Callable[[], Any]] = [first.to_arrow, lambda: list(first), lambda: pa.table(first), first.head]
    for read in reads:
        with pytest.raises((InputError, pa.ArrowException), match="that file has been replaced or changed since; run"):
            read()
    path.unlink()
    with pytest.raises(InputError, match=r"o\.csv, which holds the rows of this result, cannot be read"):
        second.to_arrow()


@pytest.mark.parametrize(("column", "suffix"), [
    *((pa.array([86400001], pa.date64()), suffix) for suffix in (".parquet", ".csv", ".arrow")),
    (pa.array([2**62], pa.timestamp("s")), ".parquet"),
    (pa.array([2932897], pa.date32()), ".csv"), (pa.array([-719529], pa.date32()), ".csv"),
    (pa.array([253402300800], pa.timestamp("s", "UTC")), ".csv"), (pa.array([-2**63 + 1], pa.timestamp("ns")), ".csv"),
], ids=str)
def test_values_that_a_format_does_not_hold(column: pa.Array, suffix: str, tmp_path: Path) -> None:
    table = pa.table({"k": [1], "v": column})
    for write in (lambda to: stored(table, to), lambda to: join(table, {"a": [1]}, on="r.k = s.a", device="golden",
                                                                to=to)):
        with pytest.raises(InputError, match=r"cannot hold all values of column 'v' of type .*; .*cast the column "
                                             r"before the join"):
            write(tmp_path / f"o{suffix}")
        assert not list(tmp_path.iterdir())
    if column.type != pa.date64():  # it counts milliseconds, but Arrow allows no parts of days
        assert stored(table, tmp_path / "o.arrow").to_arrow() == table


def test_categories_keep_their_order_and_those_without_rows(tmp_path: Path) -> None:
    """As pandas' and Polars' categories have them; the second part brings further ones."""
    type_ = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    sizes = pa.array(["small", "large", "huge"])
    parts = [pa.DictionaryArray.from_arrays(pa.array(at, pa.int8()), sizes, ordered=True) for at in ([1, None], [0])]
    table = pa.table({"v": pa.chunked_array(parts, type_)})
    for suffix in (".parquet", ".arrow", ".csv"):
        found = stored(table, tmp_path / f"o{suffix}").to_arrow()
        assert found.schema == table.schema and found.to_pydict() == table.to_pydict()
        assert all(chunk.dictionary.equals(sizes) for chunk in found.column("v").chunks)
    many = pa.chunked_array([pa.array(list(map(str, range(at, at + 100)))).dictionary_encode().cast(
        pa.dictionary(pa.int8(), pa.string())) for at in (0, 100)])  # no dictionary of int8 holds all
    for suffix in (".parquet", ".arrow", ".csv"):
        result = stored(pa.table({"v": many}), tmp_path / f"o{suffix}")
        assert result.to_arrow().to_pydict() == {"v": list(map(str, range(200)))} == pa.table(result).to_pydict()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_the_issue_of_a_narrow_type(suffix: str, tmp_path: Path) -> None:
    """int32 by way of CSV came as 1, 0, 2, and numbers in text as numbers."""
    r = pa.table({"x": pa.array([1, 2, 3], pa.int32()), "zip": ["00501", "1e5", None]})
    s = {"a": pa.array([1, 2, 3], pa.int16())}
    result = join(r, s, on="r.x = s.a", device="golden", to=tmp_path / f"o{suffix}")
    assert pa.table(result).column("x").to_pylist() == [1, 2, 3]
    assert pl.DataFrame(result)["zip"].to_list() == duckdb.sql("SELECT zip FROM result").to_arrow_table().column(
        0).to_pylist() == ["00501", "1e5", None]
    assert join(result, r, on="r.x = s.x", device="golden").num_rows == 3
    assert result.column("x").type == pa.int32()
