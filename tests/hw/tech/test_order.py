# amaranth: UnusedElaboratable=no
"""Comparators of every family against the generic one: by proof, over all keys, bounds and codes."""

from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from splitjoin.boards.flow.tools import YOSYS
from splitjoin.errors import ToolError
from splitjoin.hw.tech.order import order_of
from splitjoin.hw.tech.target import FAMILIES, Target, family

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


def prove(folder: Path, form: str, width: int, wrong: str = "") -> str:
    """Yosys's proof that ``form`` does what the generic form does, for any value of what is not connected."""
    texts = {name: rtlil.convert(Compare(width), name=name, platform=Target(name), emit_src=False)
             for name in ("generic", form)}
    for name, text in texts.items():
        (folder / f"{name}.il").write_text(text.replace("attribute \\top 1\n", ""))
    return YOSYS.run(["-p", f"""
        read_rtlil generic.il
        read_rtlil {form}.il
        read_verilog {MODELS[form]}
        {wrong}
        hierarchy
        proc
        flatten
        opt_clean
        miter -equiv -flatten generic {form} miter
        sat -verify -prove trigger 0 miter
    """], folder)


@pytest.mark.parametrize("form", MODELS)
@pytest.mark.parametrize("width", [*range(1, 9), 33, 64, *map(at_length, (*range(9, 13), 31, 32))])
def test_carry_chains_compare_as_the_operators_do(tmp_path, form, width):
    assert "SAT proof finished - no model found: SUCCESS!" in prove(tmp_path, form, width)


def test_the_equivalence_proof_finds_a_wrong_comparator(tmp_path):
    with pytest.raises(ToolError, match="ended with"):
        prove(tmp_path, "ecp5", 5, "setparam -set INIT0 16'h8422 ecp5/a_cell0 ecp5/a_cell1 ecp5/a_cell2")


@pytest.mark.parametrize(("width", "cells"), [(1, 1), (8, 4), (16, 6), (32, 12), (64, 22)])
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
