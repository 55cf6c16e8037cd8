"""Designs in files: `splitjoin verilog --design` makes the circuit that `splitjoin tune -o` proposed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from splitjoin import SchemaError, field
from splitjoin.cli import DONE, FAILURE, USAGE, main
from splitjoin.cli.design import FORMAT
from splitjoin.tables.schema_text import parse_schema, schema_text

QUERY = ("--schema-r", "x:int32", "--schema-s", "a:int32? 0..999", "--on", "abs(r.x - s.a) <= 10")
TUNE = ("tune", "--board", "orangecrab_25f", *QUERY, "--window", "ROWS 2048")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_verilog_takes_what_tune_proposes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TUNE, "--core", "scan", "--cores", "2", "-o", "design.json"]) == DONE
    design = json.loads(Path("design.json").read_text())
    assert design["format"] == FORMAT
    assert design["parameters"]["cores"] == 2
    assert main(["verilog", "--design", "design.json", "-o", "by-design"]) == DONE
    options = [word for name, value in design["parameters"].items()
               for word in (f"--{name.replace('_', '-')}", str(value))]
    assert main(["verilog", *QUERY, "--window", "ROWS 2048", *options, "-o", "by-hand"]) == DONE
    for made in Path("by-hand").iterdir():
        assert made.read_bytes() == (Path("by-design") / made.name).read_bytes(), made.name
    assert capsys.readouterr().err == ""


UNREADABLE = "a design must be a readable JSON file that `splitjoin tune -o` wrote, but design.json is not"
WRONG: list[tuple[Any, tuple[str, ...], int, str]] = [
    ("missing", (), FAILURE, UNREADABLE),
    ("no JSON", (), FAILURE, "a design must be a readable JSON file"),
    ("[" * 100_000, (), FAILURE, f"{UNREADABLE}: lists and objects are nested too deep"),
    ('{"parameters": {"cores": ' + "9" * 5000, (), FAILURE, f"{UNREADABLE}: a number has more than "),
    ([], (), FAILURE, "the design design.json must have the format 'splitjoin proposal 1'"),
    ({"format": "splitjoin design 1"}, (), FAILURE, "the design design.json must have the format"),
    ({"query": {}}, (), FAILURE, "the design design.json must have a query with schema_r, schema_s, on"),
    ({"parameters": {"speed": 1}}, (), FAILURE, "the design design.json must have a query with"),
    ({"parameters": {"cores": 0}}, (), FAILURE, "cores must be 1 to 1024, not 0"),
    ({"parameters": {"architecture": "kang"}}, (), FAILURE, "Kang's circuit is a baseline"),
    ({"parameters": {"architecture": ["small"]}}, (), FAILURE, "architecture must be "),
    ({}, ("--on", "r.x = s.a", "--cores", "2"), USAGE, "the design has the query and the circuit's parameters; leave "
                                                       "out --on, --cores, or --design"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: str(case[0])[:30])
def test_a_wrong_design(case: tuple[Any, tuple[str, ...], int, str], folder: Path,
                        capsys: pytest.CaptureFixture[str]) -> None:
    change, more, code, said = case
    if isinstance(change, dict):
        query = {"schema_r": "x:int32", "schema_s": "a:int32", "on": "r.x = s.a", "window": "ROWS 64", "order": "total"}
        change = {"format": FORMAT, "query": query, "parameters": {"cores": 1}} | change
    if change != "missing":
        Path("design.json").write_text(change if isinstance(change, str) else json.dumps(change))
    assert main(["verilog", "--design", "design.json", "-o", "v", *more]) == code
    assert capsys.readouterr().err.startswith(f"splitjoin: {said}")
    assert not Path("v").exists()


def test_without_a_design_the_query_is_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verilog", "--schema-r", "x:int32", "-o", "v"]) == USAGE
    assert "a circuit needs --schema-s, --on, or --design FILE" in capsys.readouterr().err


@pytest.mark.parametrize(("output", "said"), [("design.txt", "a design is written as a .json file, not 'design.txt'"),
                                              ("no/design.json", "the folder of the design must exist, but no does")])
def test_where_a_design_cannot_be_written(output: str, said: str, folder: Path,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TUNE, "-o", output]) == FAILURE
    assert said in capsys.readouterr().err


def test_a_schema_s_text_says_the_same() -> None:
    schema = pa.schema([
        field("small", pa.int64(), min=-5, max=999, nullable=False), pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("plain", pa.timestamp("us"), False), pa.field("d", pa.decimal128(9, 2)), pa.field("b", pa.binary(16)),
        pa.field("a name", pa.string()), pa.field("f", pa.float64(), False), pa.field("u", pa.uint8()),
        pa.field("i", pa.duration("ms"))])
    assert parse_schema(schema_text(schema)).equals(schema, check_metadata=True)


@pytest.mark.parametrize("wrong", [pa.field("x:y", pa.int8()), pa.field("x, y", pa.int8()), pa.field(" x", pa.int8()),
                                   pa.field("", pa.int8()), pa.field("l", pa.list_(pa.int8()))], ids=str)
def test_a_column_that_no_text_describes(wrong: pa.Field) -> None:
    with pytest.raises(SchemaError, match="cannot be written as a text"):
        schema_text(pa.schema([wrong]))
