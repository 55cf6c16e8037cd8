"""Files of a pattern whose columns differ in type: read by a type that holds the values of all, or refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from splitjoin import InputError
from splitjoin.tables import TableFiles
from splitjoin.tables.inputs import as_table

WIDER: list[tuple[pa.Array, pa.Array, pa.DataType]] = [
    (pa.array([1, 2**53]), pa.array([0.5]), pa.float64()), (pa.array([0.5], pa.float32()), pa.array([7]), pa.float64()),
    (pa.array([1], pa.int8()), pa.array([300], pa.int16()), pa.int16()),
    (pa.array([1]), pa.array([2**63], pa.uint64()), pa.uint64()),
    (pa.array([1], pa.uint8()), pa.array([-1], pa.int8()), pa.int16()),
    (pa.array([1], pa.timestamp("s")), pa.array([2], pa.timestamp("ns")), pa.timestamp("ns")),
    (pa.array([1], pa.timestamp("ms", "UTC")), pa.array([2], pa.timestamp("s", "Asia/Tokyo")),
     pa.timestamp("ms", "UTC")),
    (pa.array([1], pa.date32()), pa.array([2], pa.timestamp("s")), pa.timestamp("s")),
    (pa.array([1], pa.time32("s")), pa.array([2], pa.time64("us")), pa.time64("us")),
    (pa.array(["a"]).dictionary_encode(), pa.array(["b"]), pa.string()),
    (pa.array(["a"]).dictionary_encode(), pa.array(["b"], pa.large_string()), pa.large_string()),
    (pa.array(["a"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
     pa.array(["b"]).dictionary_encode(), pa.dictionary(pa.int32(), pa.string())),
    (pa.array([Decimal("1.5")]), pa.array([Decimal("2.25")]), pa.decimal128(3, 2)),
    (pa.array([Decimal("1.5")]), pa.array([2**63 - 1]), pa.decimal128(21, 1)),
    (pa.nulls(1), pa.array(["b"]), pa.string()),
    (pa.array([b"a"], pa.binary(1)), pa.array([b""]), pa.large_binary()),
]
NOT_EXACT: list[tuple[pa.Array, pa.Array, str]] = [
    (pa.array([2**53 + 1]), pa.array([0.5]), "which must hold all values of f-0.arrow, where it is int64"),
    (pa.array([-1]), pa.array([2**63], pa.uint64()), "must hold all values of f-0.arrow"),
    (pa.array([2**62], pa.timestamp("s")), pa.array([1], pa.timestamp("ns")), "must hold all values of f-0.arrow"),
    *((a, b, "must have columns whose types have one in common, but 'v' is") for a, b in (
        (pa.array([1]), pa.array(["1"])), (pa.array([True]), pa.array([1])), (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("s", "UTC"))),
        (pa.array([Decimal(1)]), pa.array([0.5])),
        (pa.array([[1]]), pa.array([[1]], pa.list_(pa.int8()))))),
]


def written(values: pa.Array, n: int) -> None:
    table = pa.table({"v": values})
    with pa.ipc.new_file(f"f-{n}.arrow", table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(("a", "b", "type_"), WIDER, ids=str)
def test_files_get_the_type_that_holds_the_values_of_all(a: pa.Array, b: pa.Array, type_: pa.DataType, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for first, second in ((a, b), (b, a)):
        for n, values in enumerate((first, second)):
            written(values, n)
        files = TableFiles.find("f-*.arrow")
        found = files.read()
        assert found.schema == files.schema()
        assert found.column("v").type == type_ or (pa.types.is_timestamp(type_) and type_.tz is not None)
        want = [*first.to_pylist(), *second.to_pylist()]
        if pa.types.is_date(a.type):  # beside a timestamp
            want = [datetime(v.year, v.month, v.day) if type(v) is date else v for v in want]
        assert found.column("v").to_pylist() == want


@pytest.mark.parametrize(("a", "b", "said"), NOT_EXACT, ids=str)
def test_files_whose_values_no_type_holds(a: pa.Array, b: pa.Array, said: str, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for n, values in enumerate((a, b)):
        written(values, n)
    with pytest.raises(InputError, match=said):
        as_table("f-*.arrow", "r")
