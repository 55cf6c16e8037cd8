# amaranth: UnusedElaboratable=no
"""Comparators of every family against the generic one: by proof, over all keys, bounds and codes."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import ToolError
from splitjoin_boards.flow.tools import YOSYS
from splitjoin_hw.tech.order import order_of
from splitjoin_hw.tech.target import FAMILIES, Target, family

from ...support.sampling import at_length


class Compare(wiring.Component):
    """Both comparisons of a key with one bound."""

    def __init__(self, width: int):
        self._width = width
        super().__init__({"key": In(width), "bound": In(width), "above": Out(1), "below": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        order = order_of(family(platform), self._width)
        key, bound = order.key(self.key), order.bound(self.bound)
        assert len(key) == len(bound) == order.bits
        m.d.comb += [self.above.eq(order.above(m, "a", key, bound)), self.below.eq(order.below(m, "b", key, bound))]
        return m


MODELS = {"ecp5": "-D NO_INCLUDES +/lattice/cells_sim_ecp5.v", "ultrascale": "+/xilinx/cells_sim.v"}


#: RegionWidths of keys: all remainders of the groups of bits that share a cell, and one over several cells.
WIDTHS = (*range(1, 9), 33)
FURTHER = (*range(9, 13), 31, 32, 64)


def prove(folder: Path, form: str, widths: Sequence[int], wrong: str = "", part: type[Elaboratable] = Compare) -> str:
    """Yosys's proofs that ``form`` of ``part`` does what the generic form does, for any value of what is not connected.

    One run for all ``widths``: to start it and to read the cells takes longer than a proof.
    """
    for width in widths:
        for name in ("generic", form):
            text = rtlil.convert(part(width), name=f"{name}{width}", platform=Target(name), emit_src=False)
            (folder / f"{name}{width}.il").write_text(text.replace("attribute \\top 1\n", ""))
    return YOSYS.run(["-p", "\n".join([
        *(f"read_rtlil {name}{width}.il" for width in widths for name in ("generic", form)),
        f"read_verilog {MODELS[form]}", wrong, "hierarchy", "proc", "flatten", "opt_clean",
        *(f"miter -equiv -flatten generic{width} {form}{width} miter{width}\n"
          f"sat -verify -prove trigger 0 miter{width}" for width in widths)])], folder)


@pytest.mark.parametrize(("form", "widths"), [*((form, WIDTHS) for form in MODELS),
                                              *(at_length(form, FURTHER) for form in MODELS)])
def test_carry_chains_compare_as_the_operators_do(tmp_path, form, widths):
    assert prove(tmp_path, form, widths).count("SAT proof finished - no model found: SUCCESS!") == len(widths)


def test_the_equivalence_proof_finds_a_wrong_comparator(tmp_path):
    with pytest.raises(ToolError, match="ended with"):
        prove(tmp_path, "ecp5", (4, 5), "setparam -set INIT0 16'h8422 ecp55/a_cell0 ecp55/a_cell1 ecp55/a_cell2")


@pytest.mark.parametrize(("width", "cells"), [(1, 1), (8, 4), (16, 6), (32, 12), at_length(64, 22)])
def test_a_comparator_takes_as_few_carry_cells_as_it_can(width, cells):
    text = rtlil.convert(Compare(width), name="compare", platform=Target("ecp5"))
    assert text.count("cell \\CCU2C") == 2 * cells


def test_the_family_follows_from_the_platform():
    class Lattice:
        device = "LFE5U-85F"

    class Xilinx:
        device, family = "xcku040", "ultrascale"

    class Other:
        device, family = "xc7k325t", "series7"

    assert [family(board) for board in (None, Lattice(), Xilinx(), Other())] == ["generic", "ecp5", "ultrascale",
                                                                                "generic"]
    assert [family(Target(name)) for name in FAMILIES] == list(FAMILIES)


def test_target_wrong_family():
    with pytest.raises(ValueError, match="Family must be one of generic, ecp5, ultrascale, not 'ice40'"):
        Target("ice40")
