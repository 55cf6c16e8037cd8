"""Files: what CSV holds is read exactly or refused by name, and a file is written whole, where its name leads."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from splitjoin import InputError
from splitjoin.base.parquet import parquet_batches
from splitjoin.tables import TableFiles, check_output, read_schema, read_table, write_table
from splitjoin.tables.reading import read_piped
from splitjoin.tables.schema_text import parse_schema
from splitjoin.tables.type_names import named_type

TABLE = pa.table({"x": [1, 2]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def csv(*cells: str) -> Path:
    path = Path("t.csv")
    path.write_text("id,n\n" + "".join(f"{cell},0\n" for cell in cells))
    return path


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(("cells", "type_", "values"), [
    (("1", str(2**63), "18446744073709551615"), pa.uint64(), [1, 2**63, 2**64 - 1]),
    (("", '"9223372036854775809"', " 7 ", "NULL"), pa.uint64(), [None, 2**63 + 1, 7, None]),
    (("01234", "1234", "", "NULL"), pa.string(), ["01234", "1234", None, "NULL"]),
    (("0x10", "16"), pa.string(), ["0x10", "16"]), (("1", "-01"), pa.string(), ["1", "-01"]),
    (("1.5", " 00.5", '""'), pa.string(), ["1.5", " 00.5", ""]), (("0", "0.5", "-0"), pa.float64(), [0.0, 0.5, -0.0]),
    (("007", "5" * 30), pa.string(), ["007", "5" * 30]), (("0", "10", "100"), pa.int64(), [0, 10, 100]),
    (("0.1000000000000000055511151231257827", "1.000000000000000056e-01", "0.30000000000000004"), pa.float64(),
     [0.1, 0.1, 0.30000000000000004]), (("0.100000000000000000000000", "1.5"), pa.float64(), [0.1, 1.5]),
    (("+9007199254740993", "-3"), pa.int64(), [2**53 + 1, -3]),
    (("1.5", str(2**63), "1e30"), pa.float64(), [1.5, 2.0**63, 1e30]),
    (("nan", "7", "", "-nan"), pa.float64(), [math.nan, 7.0, None, math.nan]),
    (("NaN", str(2**60)), pa.float64(), [math.nan, 2.0**60]),
    (("x", "", '""', "NA", "nan"), pa.string(), ["x", None, "", "NA", "nan"]),
    (('"1"', '""', "n/a"), pa.int64(), [1, None, None]),
    (("1e30", "4"), pa.float64(), [1e30, 4.0]),
    (("inf", "4"), pa.float64(), [float("inf"), 4.0]),
    (("+1", "2"), pa.float64(), [1.0, 2.0]),
    ((str(2**70), "text"), pa.string(), [str(2**70), "text"]),
], ids=str)
def test_integers_keep_their_digits(folder: Path, cells: tuple[str, ...], type_: pa.DataType,
                                    values: list[object]) -> None:
    found = read_table(csv(*cells))
    assert found.schema.types == [type_, pa.int64()]
    assert repr(found.column("id").to_pylist()) == repr(values)


@pytest.mark.parametrize(("cells", "value"), [
    (("1", "18446744073709551616"), "18446744073709551616"), (("5", "-9223372036854775809"), "-9223372036854775809"),
    (("-1", "9223372036854775808"), "9223372036854775808"), (("9" * 5000,), "9" * 37 + "…"),
])
def test_integers_beyond_64_bits_are_refused(folder: Path, cells: tuple[str, ...], value: str) -> None:
    path = csv(*cells)
    for call in (lambda: read_table(path), lambda: read_schema(path)):
        said = refused(call)
        assert said.startswith(f"the whole numbers in column 'id' of t.csv must fit int64 or uint64, but it holds "
                               f"{value}; ")
        assert "decimal" in said


def test_equal_only_as_floats(folder: Path) -> None:
    import splitjoin

    r, s = csv(str(2**63)), Path("s.parquet")
    pyarrow.parquet.write_table(pa.table({"a": pa.array([2**63 + 1, 2**63], pa.uint64())}), s)
    found = splitjoin.join(read_table(r), read_table(s), on="r.id = s.a", window="ROWS 9")
    assert found.column("a").to_pylist() == [2**63]


def test_cells_not_in_utf_8(folder: Path) -> None:
    Path("l.csv").write_bytes("x,town\n1,Graz\n2,\n3,Köln\n".encode("latin-1"))
    for call in (lambda: read_table("l.csv"), lambda: read_schema("l.csv")):
        assert refused(call) == ("the text in column 'town' of l.csv must be in UTF-8, but row 2 holds b'K\\xf6ln'; "
                                 "save the file as UTF-8")


@pytest.mark.parametrize("values", [
    pa.array([b"a", b"\xff"]), pa.array([b"a"], pa.binary(1)), pa.array([b"a"], pa.binary_view()),
    pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"a"]).dictionary_encode(),
], ids=lambda a: str(a.type))
def test_columns_that_csv_cannot_hold(folder: Path, values: pa.Array) -> None:
    Path("o.csv").write_text("old")
    said = refused(lambda: write_table(pa.table({"x": values.is_null(), "odd": values}), "o.csv"))
    assert said == (f"a CSV file holds numbers, text and times, but column 'odd' of the result has type {values.type}; "
                    f"write a .parquet file, or select other columns")
    assert Path("o.csv").read_text() == "old"
    assert os.listdir() == ["o.csv"]
    write_table(pa.table({"odd": values}), "o.parquet")
    assert read_table("o.parquet").column("odd").to_pylist() == values.to_pylist()


@pytest.mark.parametrize("values", [
    pa.array(["a", None], pa.string_view()), pa.array(["a", "b"]).dictionary_encode(), pa.array([None, None]),
    pa.array(["a", "b"], pa.large_string()), pa.array([1, 2], pa.duration("s")), pa.array([1, 2], pa.date32()),
    pa.array([True, None]), pa.array([1, 2], pa.decimal128(5, 2)), pa.array([1, 2], pa.timestamp("us", "UTC")),
    pa.RunEndEncodedArray.from_arrays([2], [7]),
], ids=lambda a: str(a.type))
def test_columns_that_csv_can_hold(folder: Path, values: pa.Array) -> None:
    write_table(pa.table({"v": values}), "o.csv")
    assert len(pyarrow.csv.read_csv("o.csv", parse_options=pyarrow.csv.ParseOptions(ignore_empty_lines=False))) == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_link_stays_and_its_target_is_written(folder: Path, suffix: str) -> None:
    Path("elsewhere").mkdir()
    link, target = Path(f"o.{suffix}"), Path("elsewhere/data")
    Path("half").symlink_to("elsewhere/data")
    link.symlink_to("half")
    for table in (TABLE, TABLE.slice(1)):  # the target is made, and then replaced
        write_table(table, link)
        assert link.is_symlink() and not target.is_symlink()
        assert read_table(link).equals(table)
    assert sorted(os.listdir()) == sorted(["elsewhere", "half", link.name])
    assert os.listdir("elsewhere") == ["data"]


def test_the_mode_is_that_of_a_new_file(folder: Path) -> None:
    before = os.umask(0o027)
    try:
        write_table(TABLE, "o.csv")
    finally:
        os.umask(before)
    assert Path("o.csv").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_a_disk_without_room_leaves_the_file_that_was_there(folder: Path, suffix: str) -> None:
    resource = pytest.importorskip("resource", reason="limits of the size of files are Unix's")
    path = folder / f"out{suffix}"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(InputError, match=f"out{suffix} cannot be written: .*too large"):
            write_table(pa.table({"x": np.random.default_rng(0).random(20_000)}), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [(one.name, one.read_text()) for one in folder.iterdir()] == [(path.name, "old")]


def test_links_that_lead_nowhere(folder: Path) -> None:
    Path("o.csv").symlink_to("none/data.csv")
    assert refused(lambda: check_output("o.csv")) == (
        f"the folder of the output must exist, but {folder / 'none'} does not; create it first")
    Path("a.csv").symlink_to("b.csv")
    Path("b.csv").symlink_to("a.csv")
    assert "a.csv cannot be written: Too many levels of symbolic links" in refused(lambda: check_output("a.csv"))


def test_only_files_are_replaced(folder: Path) -> None:
    os.mkfifo("p.csv")
    Path("n.csv").symlink_to("/dev/null")
    for name in ("p.csv", "n.csv"):
        assert refused(lambda name=name: write_table(TABLE, name)) == (  # type: ignore[misc]  # of a default
            f"the output must be a file, but {name} is a device or a pipe; give another name")


@pytest.mark.parametrize("read", [read_table, read_schema])
def test_folders_and_addresses_are_no_files(folder: Path, read: Callable[[str], object]) -> None:
    for name in ("parts", "parts.parquet"):
        Path(name).mkdir()
        assert refused(lambda name=name: read(name)) == (  # type: ignore[misc]  # of a default
            f"the input must be one file, but {name} is a folder; give a pattern for the files in it, such as "
            f"'{name}/*.parquet'")
    for name in ("https://example.org/r.csv", "s3://bucket/r.parquet", "https://example.org/r"):
        assert refused(lambda name=name: read(name)) == (  # type: ignore[misc]  # of a default
            f"the input must be a file of this machine, but {name} is a URL; download it first")


def test_schemas_of_folders_and_addresses(folder: Path) -> None:
    Path("parts").mkdir()
    assert "parts is a folder" in refused(lambda: parse_schema("parts"))
    assert "https://example.org/r is a URL" in refused(lambda: parse_schema("https://example.org/r"))


def test_an_address_as_output(folder: Path) -> None:
    assert refused(lambda: check_output("s3://bucket/o.csv")) == (
        "the output must be a file of this machine, but s3://bucket/o.csv is a URL; give a file")


@pytest.mark.parametrize("other", ["1.5", "nan", "1e3"])
def test_whole_numbers_beside_fractions_are_not_rounded(folder: Path, other: str) -> None:
    path = csv(str(2**53 + 1), other)
    for call in (lambda: read_table(path), lambda: read_schema(path)):
        assert refused(call) == (
            "the numbers in column 'id' of t.csv are floats, as not all of them are whole, but float64 does not hold "
            "9007199254740993 exactly; say types={'id': 'decimal(38, 0)'}, or 'double' to round them")


@pytest.mark.parametrize("cell", ["12345678901234567.89", "0.1000000000000000055512", "-3.14159265358979323846"])
def test_fractions_are_not_rounded(folder: Path, cell: str) -> None:
    """Two that differ would meet."""
    path = csv("1.5", cell)
    said = refused(lambda: read_table(path))
    assert f"float64 does not hold {cell} exactly; say types={{'id': 'decimal(38, " in said
    kind = said.partition("'id': '")[2].partition("'")[0]
    assert read_table(path, types={"id": named_type(kind, "id")}).column("id").to_pylist() == [
        Decimal("1.5"), Decimal(cell)]
    assert read_table(path, types={"id": pa.float64()}).column("id").to_pylist() == [1.5, float(cell)]


@pytest.mark.parametrize("before", [0, 300_000])
def test_text_with_line_ends_in_large_files(folder: Path, before: int) -> None:
    """Arrow parses a mebibyte at once, by default without a look at quotes; a row may also be longer than that."""
    lines = "a\r\nb\n" * 1_000_000
    Path("t.csv").write_bytes(("x,t\n" + "1,a\n" * before + f'2,"{lines}"\n3,"c""\n"\n').encode())
    found = read_table("t.csv").slice(before)
    assert found.to_pydict() == {"x": [2, 3], "t": [lines, 'c"\n']}


def test_empty_lines_of_one_column_are_rows(folder: Path) -> None:
    """As Polars and DuckDB read them; but not before the header, nor beside other columns."""
    Path("o.csv").write_text("\n\nx\n1\n\n2\n")
    assert read_table("o.csv").to_pydict() == {"x": [1, None, 2]}
    Path("o.csv").write_text("\nx,y\n1,2\n\n3,4\n")
    assert read_table("o.csv").to_pydict() == {"x": [1, 3], "y": [2, 4]}


@pytest.mark.parametrize("group", [1 << 16, 1 << 21], ids=["many groups", "one group"])
def test_memory_holds_a_batch_of_a_parquet_file(folder: Path, group: int) -> None:
    rows = 1 << 21
    table = pa.table({"x": np.random.default_rng(1).integers(0, 2**62, rows)})
    pyarrow.parquet.write_table(table, "t.parquet", row_group_size=group, use_dictionary=False)
    before, held, at = pa.total_allocated_bytes(), [], 0
    for batch in parquet_batches(Path("t.parquet"), 1 << 16):
        held.append(pa.total_allocated_bytes() - before)
        assert batch.column(0).equals(table.column(0).slice(at, len(batch)).combine_chunks())
        at += len(batch)
    assert at == rows
    assert max(held) < table.nbytes // 4


def test_parts_of_arrow_files_have_the_columns_that_are_asked_for(folder: Path) -> None:
    table = pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"], "z": [4, 5, 6]})
    write_table(table, "t.arrow")
    parts = list(TableFiles.find("t.arrow").batches(["z", "x"], 2))
    assert pa.concat_tables(parts).equals(table.select(["z", "x"]))
    assert list(map(len, parts)) == [2, 1]


@pytest.mark.parametrize(("data", "cure"), [
    (b"a;b\n1;2,5\n", r"separated by ';', not by commas; give pandas.read_csv(FILE, sep=';'), with decimal=','"),
    (b"a\tb,c\td\n1\t2,5\t3,4,5\n", r"separated by '\t', not by commas; give pandas.read_csv(FILE, sep='\t')"),
    ("a,b\n1,2\n".encode("utf-16"), "it is in UTF-16, not in UTF-8; save it as UTF-8, or give pandas.read_csv(FILE"),
    ("a,b\n1,2\n".encode("utf-16-le"), "it is in UTF-16, not in UTF-8"),
    (b"# made by x, y, z\na,b\n1,2\n", "it has comments, which CSV does not have; drop the lines that begin with '#'"),
    (b"a,b\n1,2\n# end\n", "pandas.read_csv(FILE, comment='#')"),
    (b"a,b\n1,2\n3\n", "a table in CSV has a header and rows of equally many values, separated by commas, in UTF-8"),
    (b"", "a table without rows has its header"),
])
def test_what_is_no_csv_says_what_to_do(folder: Path, data: bytes, cure: str) -> None:
    Path("odd.csv").write_bytes(data)
    for call in (lambda: read_table("odd.csv"), lambda: read_schema("odd.csv")):
        said = refused(call)
        assert said.startswith("odd.csv cannot be read as CSV: ")
        assert cure in said
    if data:
        assert cure.replace("FILE", "stdin") in refused(lambda: read_piped(pa.py_buffer(data), "stdin"))


@pytest.mark.parametrize(("suffix", "cure"), [
    (".xlsx", "pandas.read_excel"), (".orc", "pyarrow.orc.read_table"), (".avro", "polars.read_avro"),
    (".sqlite", "sqlite3.connect"), (".duckdb", "duckdb.connect(FILE, read_only=True).table('NAME')"),
    (".h5", "pandas.read_hdf"), (".csv.bz2", "bunzip2 -c FILE | splitjoin"), (".csv.gz", "gunzip -c FILE | splitjoin"),
    (".parq", "name it .parquet")])
def test_other_formats_say_what_reads_them(folder: Path, suffix: str, cure: str) -> None:
    Path(f"t{suffix}").write_bytes(b"x")
    assert cure in refused(lambda: read_table(f"t{suffix}"))
