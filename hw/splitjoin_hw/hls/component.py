"""Typed functions and kernels as components with a stream of operands and a stream of results."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory, WritePort
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import InputError
from splitjoin.hls.design import Design
from splitjoin.hls.graph import Node
from splitjoin.hls.kernels import Port
from splitjoin.hls.reports import Report, report_of
from splitjoin.lang.fold import Width

from ..backend.library import Converted, Library
from ..backend.names import is_keyword
from ..backend.source_names import source_names
from .graph import Datapath


class KernelComponent(wiring.Component):
    """The circuit of a typed function, or of a kernel with a state. All ports are in clock domain ``sync``.

    Ports:
        i: Stream of operands: a struct with a field for each parameter, an array for a tuple, a struct for a named one.
        o: Stream of results: a number, or for a tuple a struct with the fields ``value0``, ``value1``, …, or those of
            a named one.

    While ``o.valid`` is high and ``o.ready`` low, all of the pipeline stands still; ``i.ready`` depends on both in the
    same cycle. Numbers in fixed point are whole numbers without the point.
    """

    def __init__(self, design: Design):
        self._design = design
        super().__init__({"i": In(stream.Signature(_operands(design.kernel.inputs))),
                          "o": Out(stream.Signature(_results(design.kernel.outputs)))})

    @property
    def latency(self) -> int:
        """Cycles from the transfer of operands to the offer of their result."""
        return self._design.pipeline.ahead

    @property
    def interval(self) -> int:
        """Cycles from one transfer of operands to the next, at least."""
        return self._design.pipeline.interval

    @property
    def report(self) -> Report:
        """The schedule, the resources and the critical path by lines of the source."""
        return report_of(self._design)

    def elaborate(self, platform: object) -> Module:
        m, kernel, pipeline = Module(), self._design.kernel, self._design.pipeline
        nodes, interval, latency = pipeline.graph.nodes, pipeline.interval, pipeline.ahead
        go, accepted = Signal(), Signal()
        phase = Signal(range(max(2, interval)))
        valid = [Signal(name=f"valid_{n}") for n in range(-(-latency // interval) + 1)]

        def turn(cycle: int) -> Value:
            return phase == cycle if interval > 1 else Const(1)

        def is_valid(cycle: int) -> Value:
            """There are operands in ``cycle``, which is the present one."""
            return valid[-(-cycle // interval)] & turn(cycle % interval)

        memories, ports, idle = self._memories(m)
        m.d.comb += [self.i.ready.eq(go & turn(0) & idle), accepted.eq(self.i.valid & self.i.ready),
                     valid[0].eq(self.i.valid & idle)]
        with m.If(go & turn(0)):
            m.d.sync += [later.eq(now) for now, later in pairwise(valid)]
        if interval > 1:
            with m.If(go & ((phase != 0) | accepted | Cat(valid[1:]).any())):
                m.d.sync += phase.eq(Mux(phase == interval - 1, 0, phase + 1))
        state = {slot.name: Signal(_shape(slot.width), init=slot.init, name=_name(slot.name)) for slot in kernel.slots}
        fields = {name: value for port in kernel.inputs for name, value in _numbers(port, self.i.payload)}

        def column(node: Node) -> Value:
            return state[node.name] if node.side == "r" else fields[node.name]

        def read(node: Node, address: Value, cycle: int) -> Value:
            port = memories[node.name].read_port(domain="comb")
            m.d.comb += port.addr.eq(address)
            number = port.data
            if node.kind == "fetch":
                # A register that synthesis takes into the block: of a port with a clock it would keep what is written
                # in the cycle of a read, by registers and multiplexers of its own, whatever the attribute says.
                number = Signal.like(port.data, reset_less=True)
                with m.If(go & turn((cycle - 1) % interval)):
                    m.d.sync += number.eq(port.data)
            return number.as_signed() if node.low < 0 else number

        datapath = Datapath(m, "v", pipeline, column, loads=lambda cycle: go & turn(cycle % interval), turn=turn,
                            read=read)
        for name, number in kernel.writes.items():
            cycle, port = pipeline.cycles[number], ports[name]
            new, enable, address = (datapath.at(a, cycle) for a in nodes[number].args[:3])
            with m.If(idle):
                m.d.comb += [port.en.eq(go & is_valid(cycle) & enable), port.addr.eq(address), port.data.eq(new)]
        for slot, number in zip(kernel.slots, pipeline.graph.outputs, strict=False):
            if nodes[number].kind == "input" and (nodes[number].side, nodes[number].name) == ("r", slot.name):
                continue
            cycle = pipeline.cycles[number]
            loads, new = is_valid(cycle), number
            # A choice between the state and another value is the register's enable.
            while nodes[new].kind == "choose" and self._is_slot(own := nodes[new].args, slot.name):
                condition = datapath.at(own[0], cycle)
                loads &= ~condition if self._reads(own[1], slot.name) else condition
                new = own[2] if self._reads(own[1], slot.name) else own[1]
            with m.If(go & loads):
                m.d.sync += state[slot.name].eq(datapath.at(new, cycle))
        results = [datapath.at(n, latency) for n in kernel.results]
        if len(kernel.outputs) == 1:
            m.d.comb += self.o.payload.eq(results[0])
        else:
            for port, value in zip(kernel.outputs, results, strict=True):
                m.d.comb += self.o.payload[port.name].eq(value)
        offered: Value = is_valid(latency)
        if kernel.present is not None:
            offered &= datapath.at(kernel.present, latency)
        m.d.comb += [self.o.valid.eq(offered), go.eq(~self.o.valid | self.o.ready)]
        return m

    def _memories(self, m: Module) -> tuple[dict[str, Memory], dict[str, WritePort], Value]:
        """The memories, the write ports of those that are written, and 1 once each of their rows has its initial value,
        which a reset begins to write.
        """
        memories: dict[str, Memory] = {}
        ports: dict[str, WritePort] = {}
        written = [memory.address_bits for memory in self._design.kernel.memories if memory.written]
        row = Signal(1 + max(written, default=0))
        if written:
            with m.If(~row[-1]):
                m.d.sync += row.eq(row + 1)
        for memory in self._design.kernel.memories:
            bits, init = memory.width.bits, [n & (1 << memory.width.bits) - 1 for n in memory.init]
            # No row is read in the cycle in which it is written, unless what is read is not used.
            m.submodules[memory.name] = memories[memory.name] = rows = Memory(
                shape=bits, depth=1 << memory.address_bits, init=[] if memory.written else init,
                attrs={"no_rw_check": True} if memory.block else {})
            if memory.written:
                ports[memory.name] = port = rows.write_port()
                m.d.comb += [port.en.eq(1), port.addr.eq(row), port.data.eq(Const(init[0], bits))]
        return memories, ports, row[-1] if written else Const(1)

    def _reads(self, number: int, name: str) -> bool:
        node = self._design.pipeline.graph.nodes[number]
        return node.kind == "input" and (node.side, node.name) == ("r", name)

    def _is_slot(self, args: tuple[int, ...], name: str) -> bool:
        return self._reads(args[1], name) or self._reads(args[2], name)


def kernel_verilog(design: Design, name: str) -> str:
    """The component of ``design`` as Verilog-2001, with the top module ``name``. Raises `InputError` for a name that
    Verilog does not have.
    """
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) or is_keyword(name):
        raise InputError(f"a module's name must consist of letters, digits and _, begin with no digit, and be no "
                         f"reserved word, unlike {name!r}; give another one by name=")
    with source_names():
        library = Library(name)
        library.add(Converted.of(KernelComponent(design), name))
        return library.text()


def _shape(width: Width) -> Shape:
    return signed(width.bits) if width.signed else unsigned(width.bits)


def _name(slot: str) -> str:
    return slot.replace("[", "_").replace(".", "_").replace("]", "")


def _operands(ports: tuple[Port, ...]) -> data.StructLayout:
    return data.StructLayout({p.name: _operand(p) for p in ports})


def _operand(port: Port) -> Any:
    shapes = [_shape(width) for width in port.field.widths]
    if port.field.struct is not None:
        return data.StructLayout(dict(zip(port.field.struct._fields, shapes, strict=True)))
    return data.ArrayLayout(shapes[0], len(shapes)) if port.field.names else shapes[0]


def _results(ports: tuple[Port, ...]) -> Any:
    if len(ports) == 1:
        return _shape(ports[0].field.widths[0])
    return data.StructLayout({p.name: _shape(p.field.widths[0]) for p in ports})


def _numbers(port: Port, payload: Any) -> list[tuple[str, Value]]:
    """The numbers of a parameter, by their names."""
    field, names = payload[port.name], [name for name, _ in port.numbers]
    keys = port.field.struct._fields if port.field.struct is not None else range(len(names))
    if not port.field.names:
        return [(names[0], field)]
    return [(name, field[key]) for name, key in zip(names, keys, strict=True)]
