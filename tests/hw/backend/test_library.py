# amaranth: UnusedElaboratable=no
"""The Verilog writer against Amaranth's RTLIL: by proof, over all inputs."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import ToolError
from splitjoin_boards.flow.tools import YOSYS
from splitjoin_hw.backend.library import Converted, Library


class Operators(wiring.Component):
    """Every operator that circuits use, on operands of all kinds of widths."""

    a: In(5)
    b: In(3)
    c: In(signed(4))
    d: In(signed(6))
    many: Out(64)
    chosen: Out(6)
    compared: Out(10)
    inverted: Out(16)
    picked: Out(4)

    def elaborate(self, platform) -> Module:
        m = Module()
        a, b, c, d = self.a, self.b, self.c, self.d
        m.d.comb += [
            self.many.eq(Cat(a + b, a - b, (a * b)[:6], -a, ~b, c + d, (c - d)[:3], c >> 1, a >> b, a << b[:2], d >> b,
                             a // 4, a % 4)),
            self.compared.eq(Cat(a < b, a <= b, c < d, c >= d, a == b, c != d, a.any(), a.all(), b.xor(), a.bool())),
            # Of even width, the parity of the inverse is not the inverse of the parity.
            self.inverted.eq(Cat((~d).xor(), (~a).all(), (~a).any(), ~~a, ~(~d[0]), -(~b), ~(a[0] != b[0]))),
            self.chosen.eq(Mux(a[0], Array([a, b, c, Const(9), d[1:4]])[b], d.bit_select(b, 2))),
        ]
        with m.Switch(Cat(a, b[0])):
            with m.Case("1-----"):
                m.d.comb += self.picked[1:3].eq(b)
            with m.Case("-1---0", 3):
                m.d.comb += self.picked.eq(a)
                with m.If(c > d):
                    m.d.comb += self.picked[0].eq(1)
                with m.Elif(b == 2):
                    m.d.comb += self.picked[3].eq(a[3] ^ b[1])
            with m.Default():
                m.d.comb += self.picked.eq(5)
        return m


class Constants(wiring.Component):
    """Operators and choices with constants, as indexes of arrays and parts of fixed sizes make them."""

    a: In(5)
    b: In(3)
    c: In(signed(4))
    many: Out(64)
    compared: Out(12)
    chosen: Out(8)
    kept: Out(6)

    def elaborate(self, platform) -> Module:
        m = Module()
        a, b, c = self.a, self.b, self.c
        zero, one, none = Const(0, 4), Const(1), Signal(0)
        m.d.comb += [
            self.many.eq(Cat(a + zero, zero - a, a - zero, a * 4, a * zero, a // 8, a % 8, a % 1, a // Const(0, 3),
                             a % Const(0, 3), c >> Const(2), c >> Const(7, 3), a << Const(1), a & 31, a & zero,
                             a | 31)),
            self.compared.eq(Cat(a < zero, a >= zero, b[0] > 0, zero < a, zero <= a, a == a, Const(-2, 3) < Const(1, 3),
                                 a ^ zero, a | zero, none.any(), ~one, -one)),
            self.chosen.eq(Cat(Mux(one, a, b)[:3], Mux(b[0], a, a)[:3], Const(5, 3).bool(), Const(6, 3).xor())),
        ]
        with m.If(one):
            m.d.sync += self.kept.eq(a)
        with m.Else():
            m.d.sync += self.kept.eq(b)
        with m.Switch(Cat(b, zero)):
            with m.Case(1, 9):
                m.d.sync += self.kept[0].eq(b[1])
            with m.Case(16):
                m.d.sync += self.kept.eq(1)
            with m.Case("-----1-"):
                pass
            with m.Case("----1--"):
                m.d.sync += self.kept[4:].eq(c)
        with m.If(c == 2):
            pass
        with m.Elif(a[0]):
            m.d.sync += self.kept[1].eq(c[1])
        return m


class Machine(wiring.Component):
    """Registers with and without a reset, and memories with both kinds of read ports and byte enables."""

    i: In(4)
    en: In(2)
    at: In(2)
    o: Out(12)
    total: Out(3)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.rows = rows = Memory(shape=4, depth=4, init=[1, 2, 3, 9])
        write, read = rows.write_port(granularity=2), rows.read_port(domain="comb")
        m.submodules.later = later = Memory(shape=4, depth=4, init=[])
        store, fetch = later.write_port(), later.read_port()
        count, kept, fetched = Signal(3, init=5), Signal(2, reset_less=True), Signal(reset_less=True)
        m.d.sync += fetched.eq(fetched | self.en[0])  # what is read before is undefined
        m.d.comb += [write.addr.eq(self.at), write.data.eq(self.i), write.en.eq(self.en), read.addr.eq(~self.at),
                     store.addr.eq(count), store.data.eq(self.i), store.en.eq(1), fetch.addr.eq(self.at),
                     fetch.en.eq(self.en[0]), self.o.eq(Cat(read.data, Mux(fetched, fetch.data, 0), kept, count)),
                     self.total.eq(count)]
        with m.If(self.en[1]):
            m.d.sync += count.eq(count + self.i)
            with m.Switch(self.i):
                with m.Case(1, 2):
                    m.d.sync += kept.eq(3)
                with m.Case("1--1"):
                    m.d.sync += kept[0].eq(self.en[0])
                with m.Case("11--"):
                    m.d.sync += kept[1].eq(count[2])
        return m


class Deep(wiring.Component):
    """Two hundred levels of logic, and as many registers in a row."""

    a: In(2)
    o: Out(2)
    last: Out(2)

    def elaborate(self, platform) -> Module:
        m = Module()
        value, kept = self.a, self.a
        for n in range(200):
            following, register = Signal(2, name=f"value{n}"), Signal(2, name=f"kept{n}")
            m.d.comb += following.eq(Mux(value[0], value ^ self.a, value + 1))
            m.d.sync += register.eq(kept ^ 1)
            value, kept = following, register
        m.d.comb += [self.o.eq(value), self.last.eq(kept)]
        return m


def proof(folder: Path, component: wiring.Component, cycles: int = 0, wrong: tuple[str, str] = ("", "")) -> str:
    converted = Converted.of(component, "circuit")
    library = Library("circuit")
    library.add(converted)
    text = library.text()
    assert wrong[0] in text
    (folder / "written.v").write_text(text.replace(*wrong, 1).replace("module circuit (", "module written ("))
    (folder / "circuit.il").write_text(converted.text.replace("attribute \\top 1\n", ""))
    # From the power-up values on, all inputs are possible in every cycle.
    steps = f"-set-init-zero -seq {cycles}" if cycles else ""
    return YOSYS.run(["-p", f"""
        read_rtlil circuit.il
        read_verilog written.v
        hierarchy
        proc
        flatten
        memory
        opt_clean
        miter -equiv -flatten circuit written miter
        opt -full miter
        sat -verify {steps} -prove trigger 0 miter
    """], folder)


def test_every_operator_is_written_as_it_is(tmp_path: Path) -> None:
    assert "SUCCESS!" in proof(tmp_path, Operators())


def test_operators_with_constants_are_written_without_them(tmp_path: Path) -> None:
    assert "SUCCESS!" in proof(tmp_path, Constants(), cycles=3)
    text = (tmp_path / "written.v").read_text()
    for left_out in (" % ", " / ", ">>", "<<", "1'b1", "+", "<= a <", "*"):
        assert left_out not in re.sub(r"^//.*", "", text, flags=re.MULTILINE), left_out


def test_logic_of_any_depth_is_written(tmp_path: Path) -> None:
    assert "SUCCESS!" in proof(tmp_path, Deep(), cycles=1)


@pytest.mark.parametrize("wrong", [("- {3'd0, b}", "+ {3'd0, b}"), (">>> b", ">> b"), ("6'd9", "6'd8")])
def test_the_proof_finds_a_wrong_operator(tmp_path: Path, wrong: tuple[str, str]) -> None:
    with pytest.raises(ToolError, match="ended with"):
        proof(tmp_path, Operators(), wrong=wrong)


def test_registers_and_memories_do_the_same_for_seven_cycles(tmp_path: Path) -> None:
    assert "SUCCESS!" in proof(tmp_path, Machine(), cycles=7)


@pytest.mark.parametrize("wrong", [("rows[2] = 4'd3", "rows[2] = 4'd7"), ("total <= 3'd5", "total <= 3'd4"),
                                   ("rows[at][3:2]", "rows[at][2:1]")])
def test_the_proof_finds_a_wrong_register_or_memory(tmp_path: Path, wrong: tuple[str, str]) -> None:
    with pytest.raises(ToolError, match="ended with"):
        proof(tmp_path, Machine(), cycles=7, wrong=wrong)
