"""Names of columns and the text of conditions never become code: nothing of them is in the generated Python, Verilog or
C++, whatever characters they hold; and answers are right.
"""

from __future__ import annotations

from types import ModuleType

import pyarrow as pa
import pytest
import splitjoin
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.cpu import expression_kernel, jit
from splitjoin.hw.verilog import part_modules, to_verilog
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.sim.source import options, wrapper

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
    for module in [m for m in vars(splitjoin.cpu).values() if getattr(m, "load", None) is real]:
        monkeypatch.setattr(module, "load", load)
    monkeypatch.setattr(expression_kernel, "load", load)
    r, s = tables(name)
    on = CONDITIONS[kind].format(x=quoted(name), t=quoted(f"{name}t"), literal=quoted(name, "'"))
    answers = [splitjoin.join(r, s, on=on, window="ROWS 8", device=device) for device in ("cpu", "golden")]
    assert answers[0] == answers[1]
    assert len(answers[0]) > 0
    assert loaded or kind == "text"
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


def configuration(name: str) -> object:
    """The configuration of a circuit whose condition names columns ``name``."""
    r, s = (Schema.from_arrow(side, table.schema) for side, table in zip("rs", tables(name), strict=True))
    on = f"abs(r.{quoted(name)} - s.{quoted(name)}) <= 1"
    query = Query.make(r, s, on=on, window="ROWS 8")
    parameters = CircuitParameters(cores=1, capacity=8)
    return configure(query, plan_for(query, parameters), parameters)
