"""Carry chains of ECP5's cells ``CCU2C``, described as a sequence of half cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Const, Instance, Module, Signal, Value

#: The INIT of half a cell, and its inputs A, B, C, D. It propagates the carry if its LUT4 of them is 1, and else
#: replaces it by the LUT2 of A and B that is the first four bits of the same INIT.
Half = tuple[int, tuple[Value, Value, Value, Value]]


def carry_chain(m: Module, name: str, halves: Sequence[Half]) -> Value:
    """The output S, LUT4 ^ carry, of the last of ``halves`` (one or more); the first gets no carry.

    ``name`` begins the names of all signals and cells, which are added to ``m``.
    """
    one = Const(1)
    result, carry = Signal(name=name), None
    for n in range(0, len(halves), 2):
        cell: dict[str, Any] = {f"p_INJECT1_{h}": "NO" for h in (0, 1)}
        for h in (0, 1):
            init, inputs = halves[n + h] if n + h < len(halves) else (0x0000, (one,) * 4)
            cell[f"p_INIT{h}"] = Const(init, 16)
            cell |= {f"i_{port}{h}": value for port, value in zip("ABCD", inputs, strict=True)}
        if carry is not None:
            cell["i_CIN"] = carry
        # No constant CIN and no unused COUT is connected: the placer would add a cell for each.
        if n + 2 < len(halves):
            carry = Signal(name=f"{name}_carry{n // 2}")
            cell["o_COUT"] = carry
        else:
            cell[f"o_S{len(halves) - 1 - n}"] = result
        m.submodules[f"{name}_cell{n // 2}"] = Instance("CCU2C", **cell)
    return result
