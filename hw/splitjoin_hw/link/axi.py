"""The join behind AXI ports: AXI4-Stream records in, AXI4-Stream items out, AXI4-Lite registers, and an AXI4 master for
windows in external memory.
"""

from __future__ import annotations

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Instance, Module, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.axi import ADDRESS_BITS, IDLE_CYCLES, MEMORY_ADDRESS_BITS, PACKET_BEATS, RESET_CYCLES, AxiShape
from splitjoin.circuit.memory import byte_bits, id_bits, line_bits
from splitjoin.circuit.wire import Configuration, ItemKind

from ..circuit import circuit, circuit_ports
from ..memory.isolation import Isolation
from ..top import padded
from .axil import AxiLiteSlave, axil_ports
from .registers import bus_ports


class Packetizer(wiring.Component):
    """Marks the last item of each packet.

    A packet ends with an END item, with the item that makes it ``beats`` long, and with an item that no other one
    follows within ``idle`` cycles: so the host gets packets as long as results come in a row, and waits for none.
    Ports: ``i``: items of ``width`` bits; ``o``: ``item`` and ``last``. Up to one item a cycle; an item is held until
    the next one comes, for ``idle`` cycles at most. ``o`` keeps an offer until it is taken.
    """

    def __init__(self, width: int, *, idle: int = IDLE_CYCLES, beats: int = PACKET_BEATS):
        self._width, self._idle, self._beats = width, idle, beats
        shape = data.StructLayout({"item": width, "last": 1})
        super().__init__({"i": In(stream.Signature(width)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform) -> Module:
        m = Module()
        held = Signal(self._width, reset_less=True)
        full = Signal()  # an item is held, and it is not known yet whether another one follows in time
        waited = Signal(range(self._idle + 1))
        beat = Signal(range(self._beats))
        # `ends`: the held item is the last one of its packet. `leaves`: the held item moves to the output register.
        ends, leaves, room = Signal(), Signal(), Signal()
        m.d.comb += [
            room.eq(~self.o.valid | self.o.ready),
            ends.eq((held[:2] == ItemKind.END) | (beat == self._beats - 1) | (waited == self._idle)),
            leaves.eq(full & room & (ends | self.i.valid)),
            self.i.ready.eq(~full | leaves),
        ]
        with m.If(room):
            m.d.sync += self.o.valid.eq(leaves)
        with m.If(leaves):
            m.d.sync += [self.o.payload.item.eq(held), self.o.payload.last.eq(ends), waited.eq(0), full.eq(0)]
            with m.If(ends):
                m.d.sync += beat.eq(0)
            with m.Else():
                m.d.sync += beat.eq(beat + 1)
        with m.Elif(full & (waited != self._idle)):
            m.d.sync += waited.eq(waited + 1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [held.eq(self.i.payload), full.eq(1), waited.eq(0)]
        return m


def source_ports(config: Configuration) -> list[str]:
    """The names of the AXI4-Stream ports for records, one for each source."""
    return ["s_axis"] if config.sources == 1 else [f"s_axis_{n}" for n in range(config.sources)]


#: Signals of an AXI4 address channel that never change, with the ``size`` of a line: single beats at rising addresses,
#: to normal memory that is not cached and may buffer.
_CONSTANT = {"len": (8, 0), "size": (3, 0), "burst": (2, 1), "lock": (1, 0), "cache": (4, 0b0011), "prot": (3, 0),
             "qos": (4, 0)}


def _memory_ports(config: Configuration) -> dict[str, wiring.Member]:
    """The ports of the AXI4 master, without their prefix."""
    number, bits = id_bits(config), line_bits(config)
    asks = {"id": Out(number), "addr": Out(MEMORY_ADDRESS_BITS),
            **{name: Out(bits) for name, (bits, _) in _CONSTANT.items()}, "valid": Out(1), "ready": In(1)}
    return {**{f"aw{name}": member for name, member in asks.items()},
            "wdata": Out(bits), "wstrb": Out(bits // 8), "wlast": Out(1), "wvalid": Out(1), "wready": In(1),
            "bid": In(number), "bresp": In(2), "bvalid": In(1), "bready": Out(1),
            **{f"ar{name}": member for name, member in asks.items()},
            "rid": In(number), "rdata": In(bits), "rresp": In(2), "rlast": In(1), "rvalid": In(1),
            "rready": Out(1)}


def axi_ports(config: Configuration) -> dict[str, wiring.Member]:
    """The ports of `AxiJoin`, by the names of AMBA."""
    shape = AxiShape.of(config)
    sources = {f"{name}_t{signal}": member for name in source_ports(config) for signal, member in (
        ("data", In(8 * shape.record_bytes)), ("valid", In(1)), ("ready", Out(1)), ("last", In(1)))}
    return {
        "aclk": In(1), "aresetn": In(1),
        **sources,
        "m_axis_tdata": Out(8 * shape.item_bytes), "m_axis_tvalid": Out(1), "m_axis_tready": In(1),
        "m_axis_tlast": Out(1),
        **{f"s_axil_{name}": member for name, member in axil_ports(ADDRESS_BITS).items()},
        **({} if config.memory == "bram" else
           {f"m_axi_{name}": member for name, member in _memory_ports(config).items()}),
    }


class AxiJoin(wiring.Component):
    """The join of ``config`` with AXI ports, all in one clock domain.

    A beat of ``s_axis``, or with several sources of ``s_axis_0`` and so on, is one input record and a beat of
    ``m_axis`` one item, both in the low bits of ``tdata``; the other bits are ignored, or 0. ``s_axis_tlast`` is
    ignored, as FLUSH is a record. ``m_axis_tlast`` ends packets as `Packetizer` says. The register block is at
    AXI4-Lite byte address 4 × word address; see `AxiLiteSlave`.

    ``aresetn`` low for a cycle resets everything. While it is low no ``valid`` or ``ready`` is high, and the circuit
    keeps ``ready`` low until the join can accept. The register ``control`` resets the join alone: an item that
    is offered on ``m_axis`` then stays until it is taken, as AXI4-Stream demands.

    ``m_axi``, with windows in external memory: reads and writes of single beats, at ``memory_base`` and above. Nothing
    is asked before the low word of this register has been written. The register ``control`` resets the join only once
    all requests are answered.

    ``join``: the name of the join's module, of which this circuit then has an instance, and its clock is ``aclk``; or
    None for a submodule, for simulation, and domain ``sync`` of the surroundings.
    """

    def __init__(self, config: Configuration, join: str | None = None):
        self.config, self._join = config, join
        in_memory = config.memory != "bram"
        self._axil = AxiLiteSlave(len(bus_ports()["addr"].shape), byte_bits(config) if in_memory else None)
        self._isolation = Isolation(config) if in_memory else None
        shape = AxiShape.of(config)
        self._packetizer = Packetizer(8 * shape.item_bytes, beats=shape.packet_beats)
        super().__init__(axi_ports(config))

    def elaborate(self, platform) -> Module:
        m = Module()
        if self._join is not None:
            m.domains.sync = domain = ClockDomain("sync", reset_less=True)
            m.d.comb += domain.clk.eq(self.aclk)
        # Parts of the join have their reset in a register, so a reset lasts some cycles longer than its cause.
        held = Signal(range(RESET_CYCLES + 1), init=RESET_CYCLES, reset_less=True)
        join_reset = Signal(init=1, reset_less=True)
        running = Signal()  # neither reset from outside nor held in reset
        port_reset = ~self.aresetn
        axil, packetizer = self._axil, self._packetizer
        m.submodules.axil = ResetInserter(port_reset)(axil)
        m.submodules.packetizer = ResetInserter(port_reset)(packetizer)
        with m.If(port_reset | axil.restart):
            m.d.sync += held.eq(RESET_CYCLES)
        with m.Elif((held != 0) if self._isolation is None else (held != 0) & self._isolation.idle):
            m.d.sync += held.eq(held - 1)
        m.d.sync += join_reset.eq(port_reset | axil.restart | (held != 0))
        m.d.comb += [running.eq(self.aresetn & ~join_reset & ~axil.restart),
                     axil.hold.eq(join_reset | axil.restart | (held != 0))]

        join = self._submodule(m, join_reset)
        m.d.comb += [
            packetizer.i.payload.eq(join.o.payload), packetizer.i.valid.eq(join.o.valid & running),
            join.o.ready.eq(packetizer.i.ready & running),
            self.m_axis_tdata.eq(packetizer.o.payload.item), self.m_axis_tlast.eq(packetizer.o.payload.last),
            self.m_axis_tvalid.eq(packetizer.o.valid & self.aresetn), packetizer.o.ready.eq(self.m_axis_tready),
            join.addr.eq(axil.addr), join.w_stb.eq(axil.w_stb), join.w_data.eq(axil.w_data),
            axil.r_data.eq(join.r_data),
        ]
        if self._isolation is not None:
            m.submodules.isolation = ResetInserter(port_reset)(self._isolation)
            self._connect_memory(m, join, self._isolation, running)
        width = padded(self.config.input_record)
        for n, name in enumerate(source_ports(self.config)):
            tdata, tvalid, tready = (getattr(self, f"{name}_t{signal}") for signal in ("data", "valid", "ready"))
            m.d.comb += [join.i.payload[n * width:][:width].eq(tdata), join.i.valid[n].eq(tvalid & running),
                         tready.eq(join.i.ready[n] & running)]
        for name, member in axil_ports(ADDRESS_BITS).items():
            port, inner = getattr(self, f"s_axil_{name}"), getattr(axil, name)
            if member.flow == In:
                m.d.comb += inner.eq(port)
            else:
                m.d.comb += port.eq(inner & self.aresetn if name.endswith(("valid", "ready")) else inner)
        return m

    def _connect_memory(self, m: Module, join, isolation: Isolation, running: Signal) -> None:
        """Connects the join's port to memory with ``m_axi``."""
        wiring.connect(m, join.m, isolation.i)
        size = (line_bits(self.config) // 8).bit_length() - 1
        m.d.comb += isolation.open.eq(running & self._axil.based)
        for channel in ("aw", "ar"):
            asks = getattr(isolation.o, channel)
            of = {name: getattr(self, f"m_axi_{channel}{name}") for name in (
                "id", "addr", "valid", "ready", *_CONSTANT)}
            m.d.comb += [of["id"].eq(asks.p.id), of["valid"].eq(asks.valid & self.aresetn), asks.ready.eq(of["ready"]),
                         # The base is a multiple of the memory's size, so no carry leads from a line's number.
                         of["addr"].eq(self._axil.base | Cat(Const(0, size), asks.p.line)),
                         *(of[name].eq(value) for name, (_, value) in _CONSTANT.items()), of["size"].eq(size)]
        w, b, r = isolation.o.w, isolation.o.b, isolation.o.r
        m.d.comb += [
            self.m_axi_wdata.eq(w.p.data), self.m_axi_wstrb.eq(w.p.strb), self.m_axi_wlast.eq(1),
            self.m_axi_wvalid.eq(w.valid & self.aresetn), w.ready.eq(self.m_axi_wready),
            b.p.id.eq(self.m_axi_bid), b.p.resp.eq(self.m_axi_bresp), b.valid.eq(self.m_axi_bvalid),
            r.p.id.eq(self.m_axi_rid), r.p.data.eq(self.m_axi_rdata), r.p.resp.eq(self.m_axi_rresp),
            r.valid.eq(self.m_axi_rvalid),
            self.m_axi_bready.eq(b.ready & self.aresetn), self.m_axi_rready.eq(r.ready & self.aresetn),
        ]

    def _submodule(self, m: Module, reset: Signal):
        """The join, held in reset while ``reset`` is high."""
        if self._join is None:
            join = circuit(self.config)
            m.submodules.circuit = ResetInserter(reset)(join)
            return join
        ports = wiring.Signature(circuit_ports(self.config)).create(path=("circuit",))
        wires = {f"{'i' if member.flow == In else 'o'}_{'__'.join(map(str, path))}": Value.cast(value)
                 for path, member, value in ports.signature.flatten(ports)}
        m.submodules.circuit = Instance(self._join, i_clk=ClockSignal(), i_rst=reset, **wires)
        return ports
