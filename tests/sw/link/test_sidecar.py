"""A design is refused for another query, in words that say what differs."""

import re

import pytest

from splitjoin.base.errors import DeviceError, InputError
from splitjoin.cli import main
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.sidecar import Sidecar
from splitjoin.tables.schema_text import parse_schema

CIRCUIT = {"cores": 1, "capacity": 16}


def query(r, s, on="r.x = s.a"):
    sides = (Schema.from_arrow(side, parse_schema(text)) for side, text in (("r", r), ("s", s)))
    return Query.make(*sides, on=on, window="ROWS 8")


def built(path, r, s, **options):
    parameters = device("uart:none", **CIRCUIT)
    Sidecar.of(parameters, parameters.configuration(query(r, s)), board="ulx3s_85f", clock_hz=25_000_000,
               baud=3_000_000, query={"schema_r": r, "schema_s": s}, **options).write(path)


@pytest.mark.parametrize(("r", "s", "said"), [
    ("x:int64", "a:int32", "; it was built for stream r with t:timestamp[us, UTC], x:int32, not with x:int64: give"),
    ("x:int64", "a:int32?", "not with x:int64, it was built for stream s with a:int32, not with a:int32?: give tables"),
    ("x:int32 0..9", "a:int32", "x:int32, not with x:int32 0..9: give tables with these types, or build the circuit"),
    ("t:timestamp[us], x:int32 0..9", "a:int32", "not with t:timestamp[us], it was built for"),
    ("t:timestamp[us, UTC], x:int8", "a:int32", "ABI 0; it was built for stream r with t:timestamp[us, UTC], x:int32, "
                                                "not with x:int8: give"),
])
def test_columns_of_other_types_are_named(tmp_path, r, s, said):
    path = tmp_path / "design.json"
    built(path, "t:timestamp[us, UTC], x:int32", "a:int32")
    with pytest.raises(DeviceError) as error:
        device("uart:none", design=str(path)).open(query(r, s))
    assert said in re.sub(r"\b[0-9a-f]{16};", "0;", str(error.value))


def test_another_condition_is_refused_without_naming_columns(tmp_path):
    path = tmp_path / "design.json"
    built(path, "x:int32", "a:int32")
    with pytest.raises(DeviceError, match=r"has ABI [0-9a-f]{16}; build the circuit for this query$"):
        device("uart:none", design=str(path)).open(query("x:int32, y:int8", "a:int32", "r.x = s.a AND r.x > r.y"))


def test_whole_numbers_of_a_csv_file_are_int64(tmp_path, capsys):
    """The mistake that is made soonest."""
    for name, column in (("R", "x"), ("S", "a")):
        (tmp_path / f"{name}.csv").write_text(f"{column}\n1\n2\n")
    built(tmp_path / "design.json", "x:int32", "a:int32")
    assert main(["join", str(tmp_path / "R.csv"), str(tmp_path / "S.csv"), "--on", "r.x = s.a", "--window", "ROWS 8",
                 "--device", "uart:none", "--design", str(tmp_path / "design.json"), "-o",
                 str(tmp_path / "out.csv")]) == 1
    assert "stream r with x:int32, not with x:int64" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [("[" * 100_000, "lists and objects are nested too deep"),
                                            ('{"baud": ' + "9" * 5000 + "}", "a number has more than [0-9]+ digits")])
def test_json_that_python_does_not_read_is_no_sidecar(tmp_path, text, said):
    (tmp_path / "design.json").write_text(text)
    with pytest.raises(InputError, match=f"a design must be a readable JSON file .* is not: {said}"):
        Sidecar.read(tmp_path / "design.json")
