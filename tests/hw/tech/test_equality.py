# amaranth: UnusedElaboratable=no
"""Equality on carry chains against the operator: by proof, over all numbers."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import ToolError
from splitjoin_hw.tech.equality import equality_of
from splitjoin_hw.tech.target import Target, family

from .test_order import prove


class Equal(wiring.Component):
    """Compares a key with a bound for equality."""

    def __init__(self, width: int):
        super().__init__({"key": In(width), "bound": In(width), "equal": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        equality = equality_of(family(platform))
        m.d.comb += self.equal.eq(equality.equal(m, "e", self.key, equality.bound(self.bound)))
        return m


def test_carry_chains_compare_as_the_operator_does(tmp_path):
    widths = *range(1, 9), 33, 64
    assert prove(tmp_path, "ecp5", widths, part=Equal).count("no model found: SUCCESS!") == len(widths)


def test_the_equivalence_proof_finds_a_wrong_comparator(tmp_path):
    with pytest.raises(ToolError, match="ended with"):
        prove(tmp_path, "ecp5", (5,), "setparam -set INIT1 16'h0980 ecp55/e_cell0", Equal)


@pytest.mark.parametrize(("width", "cells"), [(1, 1), (8, 3), (33, 9), (64, 17)])
def test_a_comparator_takes_as_few_carry_cells_as_it_can(width, cells):
    assert rtlil.convert(Equal(width), name="equal", platform=Target("ecp5")).count("cell \\CCU2C") == cells
