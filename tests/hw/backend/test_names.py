"""Identifiers of Verilog: none that a language reserves, and none that hides another one."""

import re

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from splitjoin_hw.backend.library import Converted, Library
from splitjoin_hw.backend.names import stem


@pytest.mark.parametrize(("name", "identifier"), [
    ("\\reg", "reg_"), ("\\logic", "logic_"), ("\\long", "long_"), ("\\private", "private_"), ("\\longer", "longer")])
def test_reserved_words_of_verilog_and_cpp_are_avoided(name: str, identifier: str) -> None:
    assert stem(name) == identifier


class Inner(wiring.Component):
    """A part with a memory and a register whose names an outer part may give to it."""

    at: In(2)
    o: Out(4)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.rows = rows = Memory(shape=4, depth=4, init=[1, 2, 3, 9])
        read = rows.read_port()
        kept = Signal(4)
        m.d.sync += kept.eq(read.data)
        m.d.comb += [read.addr.eq(self.at), self.o.eq(kept)]
        return m


class Outer(wiring.Component):
    """A part with instances of `Inner`."""

    at: In(2)
    o: Out(12)

    def elaborate(self, platform) -> Module:
        m = Module()
        for n, name in enumerate(("rows", "at", "other")):
            part = Inner()
            m.submodules[name] = part
            m.d.comb += [part.at.eq(self.at), self.o.word_select(n, 4).eq(part.o)]
        return m


def test_an_instance_has_another_name_than_the_variables_in_it() -> None:
    """Verilator's rule VARHIDDEN."""
    library = Library("top")
    library.add(Converted.of(Outer(), "top"))
    names = re.findall(r"^  top_inner (\w+) \($", library.text(), re.MULTILINE)
    assert len(names) == 3 and "other" in names
    assert not {"rows", "at"} & set(names), names
