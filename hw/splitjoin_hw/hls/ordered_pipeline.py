"""The pipeline that adds partners to states one by one, for all parts of a configuration's state at once."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.fold_parts import FoldPart
from splitjoin.circuit.wire import Configuration
from splitjoin.hls.graph import Node
from splitjoin.hls.pipeline import ScheduledGraph

from ..layouts import struct
from ..tech.ram import Ram
from .graph import Datapath, outside_width
from .state import delayed

#: Cycles from a partner to the first cycle of its operations: its values are read from a memory, and registered.
_AHEAD = Ram.latency + 1


class PartnerPipeline(wiring.Component):
    """Adds a partner to a state in every ``interval`` cycles, each part of it by its own ``add``.

    Each number of the state is in a register in those cycles in which operations read it. Partners of one tuple follow
    each other there; for a partner ``from_memory`` the number is loaded just before.

    Ports: ``valid``: a partner, in a cycle with ``ready``; ``from_memory``: its state is not that of the partner
    before. ``values``: its values, after `Ram.latency` cycles; none where there are none. ``state``: the state that was
    read, `state_read` cycles later than these. ``begin``: the next partner's state is the initial one; only while not
    ``busy``, as partners are on their way. ``made``: the state with the partner, when ``made_valid``, `latency` cycles
    after it.
    """

    def __init__(self, config: Configuration):
        self._config = config
        self._adds = [_add(part) for part in config.folds]
        outputs = [(add, n) for add in self._adds for n in add.graph.outputs]
        self._last = max((add.cycles[n] for add, n in outputs), default=0)
        reads = [self._read(n, i) for n, part in enumerate(config.folds) for i in range(len(part.slots))]
        #: Cycles by which the state is read later than the values.
        self.state_read = min(reads, default=0)
        payload = config.payload("s")
        super().__init__({
            "valid": In(1), "ready": Out(1), "from_memory": In(1), "begin": In(1), "busy": Out(1),
            **({"values": In(struct(payload))} if payload.fields else {}),
            "state": In(config.state.width), "made": Out(struct(config.state)), "made_valid": Out(1),
        })

    @property
    def latency(self) -> int:
        """Cycles from a partner to its state."""
        return _AHEAD + self._last

    def _read(self, part: int, slot: int) -> int:
        """The cycle in which the operations of a part first read a slot."""
        add = self._adds[part]
        for n, node in enumerate(add.graph.nodes):
            if (node.kind, node.side, node.name) == ("input", "r", f"slot{slot}"):
                return add.cycles[n]
        return add.cycles[add.graph.outputs[slot]]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, interval = self._config, self._config.in_order or 1
        phase = Signal(range(max(2, interval)))
        if interval > 1:
            m.d.sync += phase.eq(Mux(phase == interval - 1, 0, phase + 1))
        # A partner in each cycle of its way, and whether its state comes from the memory.
        self._way = [Cat(self.valid, self.valid & self.from_memory)]
        for n in range(self.latency):
            later = Signal(2, name=f"way{n}")
            m.d.sync += later.eq(self._way[-1])
            self._way.append(later)
        m.d.comb += [self.ready.eq(phase == -_AHEAD % interval if interval > 1 else 1),
                     self.busy.eq(Cat(w[0] for w in self._way[1:]).any()), self.made_valid.eq(self._way[-1][0])]
        values: Any = None
        if config.payload("s").fields:
            values = Signal(struct(config.payload("s")), reset_less=True)
            m.d.sync += Cat(values).eq(Cat(self.values))
        m.d.comb += self.made.any.eq(1)
        for n, part in enumerate(config.folds):
            self._part(m, n, part, values, phase)
        return m

    def _part(self, m: Module, n: int, part: FoldPart, values: Any, phase: Signal) -> None:
        """The operations of part ``n``, whose ``values`` are there in cycle 0."""
        config, add = self._config, self._adds[n]
        turn = None if add.interval == 1 else lambda cycle: phase == cycle % add.interval
        slots = [Signal(signed(slot.bits) if slot.signed else slot.bits, name=f"slot{n}_{i}", reset_less=True)
                 for i, slot in enumerate(part.slots)]

        def column(node: Node) -> Value:
            if node.side == "r":
                return slots[int(node.name.removeprefix("slot"))]
            number = part.values[int(node.name.removeprefix("argument"))]
            value: Value = values[f"value{number}"]
            return value.as_signed() if config.values[number].signed else value

        datapath = Datapath(m, f"add{n}_", add, column, loads=turn, turn=turn)
        flags = [values[f"present{v}"] for v in part.values if config.values[v].nullable]
        wrong: list[Value] = [delayed(m, values[f"wrong{v}"], f"wrong{n}_{v}", self._last)
                              for v in part.values if config.values[v].ranged]
        for i, (slot, number) in enumerate(zip(part.slots, add.graph.outputs, strict=True)):
            node, cycle, name = add.graph.nodes[number], add.cycles[number], f"slot{n}_{i}"
            value = datapath.at(number, cycle)
            there = delayed(m, reduce(and_, flags), f"{name}_there", cycle) if flags else Const(1)
            made = Signal.like(slots[i], name=f"{name}_made")
            m.d.comb += [made.eq(Mux(there, value, slots[i]) if flags else value),
                         self.made[name].eq(delayed(m, made, f"{name}_made", self._last - cycle))]
            self._follow(m, name, slots[i], self._read(n, i), cycle, made, slot.init)
            if slot.checked:
                outside = outside_width(value, node.low, node.high, slot.bits, slot.signed)
                wrong.append(delayed(m, outside, f"{name}_outside", self._last - cycle))
        there = delayed(m, reduce(and_, flags), f"there{n}", self._last) if flags else Const(1)
        if flags:
            self._flag(m, f"added{n}", there)
        if config.may_exceed(part):
            self._flag(m, f"over{n}", reduce(or_, wrong, Const(0)) & there)

    def _flag(self, m: Module, name: str, sets: Value) -> None:
        """A bit of the state that stays 1 once it was."""
        register, made = Signal(name=name, reset_less=True), Signal(name=f"{name}_made")
        m.d.comb += [made.eq(register | sets), self.made[name].eq(made)]
        self._follow(m, name, register, self._last, self._last, made, 0)

    def _follow(self, m: Module, name: str, register: Signal, read: int, write: int, made: Value,
                init: int) -> None:
        """Let the ``register`` of a field follow what is ``made`` in cycle ``write``, or the memory before ``read``."""
        at, width = self._config.state.offsets()[name]
        found = delayed(m, self.state[at:at + width], f"{name}_read", read - self.state_read)
        with m.If(self.begin):
            m.d.sync += register.eq(init)
        with m.Elif(self._way[_AHEAD + read - 1][1]):
            m.d.sync += register.eq(found)
        with m.Elif(self._way[_AHEAD + write][0]):
            m.d.sync += register.eq(made)


def _add(part: FoldPart) -> ScheduledGraph:
    assert part.add is not None
    return part.add

