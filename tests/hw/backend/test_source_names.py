"""Names of signals come from the source text, and so are the same with every release of Python."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
from amaranth import tracer
from amaranth.hdl import Signal

from splitjoin.base.errors import ToolError
from splitjoin.circuit.wire import Configuration
from splitjoin_hw import verilog
from splitjoin_hw.backend.source_names import source_names

CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=16, time_bits=64, sources=2,
                       lanes=1, probes=1)


class Made:
    """A value whose calls note the names that they are given."""

    other: "Made"

    def __init__(self) -> None:
        self.names: list[str | None] = []
        self.rows: dict[str, Any] = {}

    def __call__(self, *_: object) -> "Made":
        self.names.append(tracer.get_var_name(2, None))
        return self

    def method(self, *_: object) -> "Made":
        self.names.append(tracer.get_var_name(2, None))
        return self


def names(body: str, path: Path) -> list[str | None]:
    """The names of the calls of ``f`` and of its method in ``body``, the source of a function in a file ``path``."""
    path.write_text(f"def run(f):\n{textwrap.indent(body, '    ')}\n", encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    made = Made()
    made.other = made
    with source_names():
        space["run"](made)
    return made.names


@pytest.mark.parametrize(("body", "found"), [
    ("a = f()", ["a"]),
    ("a = f(); b = a; return b", ["a"]),  # one instruction may store and load
    ("a = f(); b = f()", ["a", "b"]),
    ("a = b = f()", ["a"]),
    ("f.other = b = f()", ["other"]),
    ("f.rows['k'] = b = f()", ["b"]),
    ("a, b = f(), f()", ["a", "b"]),
    ("(a, f.other), c = (f(), f()), f()", ["a", "other", "c"]),
    ("a, *b = f(), f()", ["a", None]),
    ("a, b = (f() for _ in 'ab')", [None, None]),
    ("a: object = f('äöü'); b = f()", ["a", "b"]),
    ("if (a := f()): pass", ["a"]),
    ("a = f() if f else None", ["a"]),
    ("a = None if not f else f()", ["a"]),
    ("a = [f() for _ in 'ab']", [None, None]),
    ("a = 1, f()", [None]),
    ("a = f(f())", [None, "a"]),
    ("a = f().other", ["a"]),
    ("a = f.method(2)", ["a"]),
    ("a = (f\n     .method(\n        2)\n     )", ["a"]),
    ("f()", [None]),
])
def test_a_value_has_the_name_that_it_is_assigned_to(body: str, found: list[str | None], tmp_path: Path) -> None:
    assert names(body, tmp_path / "written.py") == found


def test_verilog_does_not_depend_on_what_amaranth_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release of Python has other instructions behind a call, in which Amaranth may find nothing."""
    def nothing(depth: int = 2, default: Any = None) -> Any:
        return default

    texts = []
    for guess in (tracer.get_var_name, nothing):
        monkeypatch.setattr(tracer, "get_var_name", guess)
        texts.append([write(CONFIG, "top") for write in (verilog._written.__wrapped__,
                                                         verilog.to_axi_verilog.__wrapped__)])
    assert texts[0] == texts[1]


def test_amaranth_guesses_again_afterwards() -> None:
    def fail() -> None:
        assert tracer.get_var_name is not guess
        raise KeyError

    guess = tracer.get_var_name
    with pytest.raises(KeyError), source_names():
        fail()
    assert tracer.get_var_name is guess


def test_a_name_that_must_be_is_missed_as_by_amaranth() -> None:
    def required() -> str:
        return str(tracer.get_var_name(2))

    with source_names(), pytest.raises(tracer.NameNotFound):
        required()


def test_without_positions_in_the_source_there_are_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with -X no_debug_ranges: else names would be others with it."""
    code = compile("a = Signal()", "some.py", "exec")
    monkeypatch.setattr("splitjoin_hw.backend.source_names._ends", lambda _: [None] * 99)
    with source_names(), pytest.raises(ToolError, match=r"none of some\.py; run without -X no_debug_ranges"):
        exec(code, {"Signal": Signal})
