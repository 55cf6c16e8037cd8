"""Names of columns and the text of conditions never become code: nothing of them is in the generated Python, Verilog or
C++, whatever characters they hold; and answers are right.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.cli import main
from splitjoin.engines.compiled import jit
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.tuning import Tuning
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_hw.verilog import part_modules, to_verilog
from splitjoin_sim.source import options, wrapper

#: Ends of strings, comments and lines in Python, C++ and Verilog, each with code behind it.
HOSTILE = (
    "hostile\n    raise SystemExit(1) #", 'hostile"""; raise SystemExit(1)', "hostile'; raise SystemExit(1) #",
    "hostile */ #error here", "hostile\nendmodule\nmodule evil;", "hostile\\", "hostile {0} %s `include \"x\"",
    "hostile\r\x0c\u2028 `define", "$hostile$", "hostile\N{RIGHT-TO-LEFT OVERRIDE}",
)
#: What every name and literal here has, and generated code must not have.
MARK = "hostile"


def tables(name: str) -> tuple[pa.Table, pa.Table]:
    """Two streams that have ``name`` as a column of integers, and ``name`` again as text."""
    return (pa.table({name: [1, 5, 9], f"{name}t": ["a", name, "c"]}),
            pa.table({name: [2, 70, 9], f"{name}t": [name, "b", "c"]}))


def quoted(name: str, quote: str = '"') -> str:
    return quote + name.replace(quote, 2 * quote) + quote


CONDITIONS = {
    "band": "abs(r.{x} - s.{x}) <= 1",
    "text": "r.{t} = s.{t} OR r.{t} = {literal}",
    "expression": "(r.{x} * s.{x}) % 7 < 5 AND abs(r.{x} - s.{x}) <= 1 AND r.{t} <> {literal}",
}


@pytest.mark.parametrize("kind", CONDITIONS)
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_python_has_nothing_of_a_query(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def load(text: str) -> ModuleType:
        loaded.append(text)
        return real(text)

    real = jit.load
    monkeypatch.setattr(jit, "load", load)
    r, s = tables(name)
    on = CONDITIONS[kind].format(x=quoted(name), t=quoted(f"{name}t"), literal=quoted(name, "'"))
    # Slices are for sessions, which compile what C++ has no loop for: expressions over both streams.
    answers = [splitjoin.join(r, s, on=on, window="ROWS 8", order="outer(1)", device=device)
               for device in (CpuDevice(tuning=Tuning(interpreted_pairs=0)), "golden")]
    assert answers[0] == answers[1]
    assert len(answers[0]) > 0
    assert bool(loaded) == (kind == "expression")
    assert [text for text in loaded if MARK in text] == []


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_circuit_s_configuration_has_nothing_of_a_query(name: str) -> None:
    assert MARK not in repr(configuration(name))


def test_verilog_and_cpp_are_those_of_a_plain_query() -> None:
    """Verilog and the model's C++ are functions of the configuration, which has no names."""
    plain, hostile = configuration("x"), configuration(HOSTILE[0])
    assert repr(plain) == repr(hostile)
    source = to_verilog(hostile)
    assert source == to_verilog(plain)
    assert MARK not in source + wrapper(source) + options(source, part_modules(hostile))


@pytest.mark.parametrize("kind", ["cocotb", "verilog"])
def test_files_beside_the_verilog_tell_the_query_as_data(kind: str, tmp_path: Path) -> None:
    """The Verilog has it in one line of comment, the sidecar as JSON, and no other file has anything of it."""
    text = "".join(HOSTILE).replace("'", "''")
    assert main(["verilog", "--schema-r", "x:int32", "--schema-s", "a:int32", "--window", "ROWS 8", "--cores", "1",
                 "--capacity", "8", "--on", f"abs(r.x - s.a) <= 1 AND '{text}' <> 'x'", "--testbench", kind,
                 "--testbench-tuples", "4", "-o", str(tmp_path)]) == 0
    told = {path.name: [line for line in path.read_text(encoding="utf-8").split("\n") if MARK in line]
            for path in tmp_path.iterdir()}
    (line,) = told.pop("splitjoin.v")
    assert line.startswith("// Query: ")
    assert line.isascii()
    assert json.loads((tmp_path / "splitjoin.json").read_text(encoding="utf-8"))
    assert told.pop("splitjoin.json")
    assert not any(told.values())


def test_words_of_other_languages_as_names_of_states() -> None:
    @splitjoin.aggregate
    class module:  # noqa: N801
        np: splitjoin.unsigned(8)
        always: splitjoin.signed(16)
        größe: splitjoin.signed(16)
        state: splitjoin.signed(16)

        def add(self, range: splitjoin.signed(8)):  # noqa: A002
            self.np += 1
            self.always += range
            self.größe -= self.np
            self.state = self.always

        def result(self) -> splitjoin.signed(20):
            return self.np + self.always + self.größe + self.state

    r, s = pa.table({"x": pa.array([1, 2, 3], pa.int32())}), pa.table({"a": pa.array([1, 2, 3], pa.int8())})
    made = [splitjoin.join(r, s, on="r.x >= s.a", window=("ROWS 1", "ROWS 9"), aggregate={"v": module("s.a")},
                           device=device).to_pylist() for device in ("golden", "cpu")]
    assert made[0] == made[1] == [{"x": 1, "v": 2}, {"x": 2, "v": 5}, {"x": 3, "v": 9}]


def test_pages_in_notebooks_escape_names_and_values() -> None:
    name = "<script>hostile</script>\"'&"
    result = splitjoin.join({name: [1], "x": [name]}, {"a": [1]}, on="TRUE", device="golden")
    assert "<script>" not in result._repr_html_()
    assert "&lt;script&gt;" in result._repr_html_()


def configuration(name: str) -> object:
    """The configuration of a circuit whose condition names columns ``name``."""
    r, s = (Schema.from_arrow(side, table.schema) for side, table in zip("rs", tables(name), strict=True))
    on = f"abs(r.{quoted(name)} - s.{quoted(name)}) <= 1"
    query = Query.make(r, s, on=on, window="ROWS 8")
    parameters = CircuitParameters(cores=1, capacity=8)
    return configure(query, plan_for(query, parameters), parameters)
