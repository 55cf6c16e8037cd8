"""Folded states in circuits: lifting of partners, and merging, for all parts of a configuration's state at once."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.fold_parts import FoldPart, StateSlot
from splitjoin.circuit.wire import Configuration

from ..layouts import struct
from .delays import Delays
from .graph import combinational, outside_width, pipelined


def initial_state(config: Configuration) -> int:
    """The bits of the state before the first partner."""
    bits = 0
    for name, (at, width) in config.state.offsets().items():
        if name.startswith("slot"):
            part, slot = map(int, name.removeprefix("slot").split("_"))
            bits |= (config.folds[part].slots[slot].init & (1 << width) - 1) << at
    return bits


def lift_cycles(config: Configuration) -> int:
    """Cycles from a stored tuple's values to the state that it makes alone, 1 at least."""
    return max(part.lift.ahead for part in config.folds)


def lift(m: Module, config: Configuration, name: str, values: Any) -> Signal:
    """The state that a partner with ``values`` makes alone, `lift_cycles` later. ``values``: a view of
    `Configuration.payload`, None if it has no fields.
    """
    out = Signal(struct(config.state), name=f"{name}_lifted")
    cycles = lift_cycles(config)
    m.d.comb += out.any.eq(1)
    for n, part in enumerate(config.folds):
        def argument(node: Any, part: FoldPart = part) -> Value:
            number = part.values[int(node.name.removeprefix("argument"))]
            value = values[f"value{number}"]
            return value.as_signed() if config.values[number].signed else value

        outputs = pipelined(m, f"{name}_lift{n}_", part.lift, argument)
        flags = [values[f"present{v}"] for v in part.values if config.values[v].nullable]
        present = delayed(m, reduce(and_, flags, Const(1)), f"{name}_present{n}", cycles) if flags else Const(1)
        if flags:
            m.d.comb += out[f"added{n}"].eq(present)
        wrong = []
        for i, (slot, output, node) in enumerate(zip(part.slots, outputs, part.lift.graph.outputs, strict=True)):
            of = part.lift.graph.nodes[node]
            wrong.append(outside_width(output, of.low, of.high, slot.bits, slot.signed))
            value = delayed(m, Cat(_fitted(output, slot)), f"{name}_slot{n}_{i}", cycles - part.lift.ahead)
            m.d.comb += out[f"slot{n}_{i}"].eq(Mux(present, value, _init(slot)) if flags else value)
        if config.may_exceed(part):
            over = delayed(m, reduce(or_, wrong, Const(0)), f"{name}_over{n}", cycles - part.lift.ahead)
            outside = [values[f"wrong{v}"] for v in part.values if config.values[v].ranged]
            if outside:
                over |= delayed(m, reduce(or_, outside), f"{name}_wrong{n}", cycles)
            m.d.comb += out[f"over{n}"].eq(over & present)
    return out


def masked(m: Module, config: Configuration, name: str, state: Any, present: Value) -> data.View:
    """``state`` if ``present``, else the state before the first partner."""
    out = Signal(struct(config.state), name=name)
    m.d.comb += Cat(out).eq(Mux(present, Cat(state), initial_state(config)))
    return out


def merged(m: Module, config: Configuration, name: str, a: Any, b: Any) -> data.View:
    """The state of the partners of ``a`` and of ``b``, without registers."""
    out = Signal(struct(config.state), name=name)
    m.d.comb += out.any.eq(a.any | b.any)
    for n, part in enumerate(config.folds):
        sides = {"r": a, "s": b}

        def column(node: Any, part: FoldPart = part, n: int = n, sides: dict[str, Any] = sides) -> Value:
            number = int(node.name.removeprefix("slot"))
            value = sides[node.side][f"slot{n}_{number}"]
            return value.as_signed() if part.slots[number].signed else value

        outputs = combinational(m, f"{name}_{n}_", part.merge, column)
        wrong = []
        for i, (slot, output, node) in enumerate(zip(part.slots, outputs, part.merge.outputs, strict=True)):
            of = part.merge.nodes[node]
            wrong.append(outside_width(output, of.low, of.high, slot.bits, slot.signed))
            m.d.comb += out[f"slot{n}_{i}"].eq(output)
        for flag in ("added", "over"):
            if f"{flag}{n}" in out.shape().members:
                also = wrong if flag == "over" else []
                m.d.comb += out[f"{flag}{n}"].eq(reduce(or_, also, a[f"{flag}{n}"] | b[f"{flag}{n}"]))
    return out


def _init(slot: StateSlot) -> int:
    return slot.init & (1 << slot.bits) - 1


def _fitted(value: Value, slot: StateSlot) -> Value:
    """``value`` in the bits of ``slot``, sign-extended if it is shorter."""
    if len(value) >= slot.bits:
        return value[:slot.bits]
    return Cat(value, (value[-1] if value.shape().signed else Const(0, 1)).replicate(slot.bits - len(value)))


def delayed(m: Module, value: Value, name: str, cycles: int) -> Value:
    """``value`` of ``cycles`` cycles ago."""
    return Delays(m, value, name).at(cycles)
