"""Low-latency handshake join as a circuit: tuples are handed on ahead of joining, and stored in one core each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import position_bits
from splitjoin.circuit.wire import ROW_BITS, Configuration, ItemKind

from ..layouts import result_layout
from .chain import GatherChain
from .ends import CoreMessage, message_layout
from .handshake import Handshake, bounds_of, message_ports
from .segment import SegmentRegion

#: Tuples of S on the way to the next core that a core can hold, more than a link has places; probes that can wait in
#: front of a scan, while their tuples go on.
_IN_FLIGHT, _WAITING = 16, 8


class LowLatencyCore(wiring.Component):
    """One core of the chain (Roy, Teubner and Gemulla, "Low-latency handshake join", 2014, section 4).

    A tuple goes on at once, and waits here for its comparison with the stored tuples of the other stream. One core
    stores it, its home: number row id mod cores. That gives a pair three places to meet, of which it must take one:

    - R's tuple finds S's at the home of the latter, if that was stored there before.
    - Else S's tuple finds R's at the home of that, if R's is stored there before S's comes. So from its own home on, a
      tuple of S is compared only with those of R that had come there before it.
    - Else they pass each other on a link between both homes. A core keeps each tuple of S that it has sent, up to its
      ACK, which goes the way of R behind those that the next core had sent before. R's tuple is compared with these,
      and finds those whose home it has passed, if its own is still ahead.

    An EXPIRE waits at the far end until its tuple has come by, and then goes through all cores; the home drops it. If
    it overtook its tuple, the home would drop one that it does not have, and those behind the EXPIRE would be met.

    Ports: as of `splitjoin_hw.baseline.handshake.HandshakeCore`, and ``index``: the core's number. ``gone``: for R and
    S, an EXPIRE has passed all cores. ``o``: results of R's probes, of R's with tuples in flight, and of S's.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({
            **message_ports({side: self.message(config, side) for side in "rs"}),
            "first": In(1), "last": In(1), "index": In(range(max(2, config.cores))), "gone": Out(2),
            "o": Out(stream.Signature(result_layout())).array(3),
            "compared": Out(range(config.capacity + 1)).array(3), "matched": Out(1).array(3),
        })

    @staticmethod
    def message(config: Configuration, side: str) -> Any:
        """The layout of messages. ``before``: tuples of R that had come to the home of one of S before it, modulo."""
        further = {"before": position_bits(config) + (config.cores - 1).bit_length()} if side == "s" else {}
        return message_layout(config, side, further)

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        bits, position = (config.cores - 1).bit_length(), position_bits(config)
        m.submodules.segment_r = r = SegmentRegion(config, "r", depth=_WAITING, moves=False)
        m.submodules.segment_s = s = SegmentRegion(config, "s", depth=_WAITING, moves=False)
        in_flight = replace(config, cores=1, capacity=max(_IN_FLIGHT, 2 * config.lanes))
        m.submodules.in_flight = f = SegmentRegion(in_flight, "s", depth=_WAITING, moves=False)
        wiring.connect(m, s.o, wiring.flipped(self.o[0]))
        wiring.connect(m, r.o, wiring.flipped(self.o[2]))
        m.d.comb += [region.index.eq(self.index) for region in (r, s)]
        m.d.comb += [out.eq(region.compared) for out, region in zip(self.compared, (s, f, r), strict=True)]
        m.d.comb += [self.matched[0].eq(s.matched), self.matched[2].eq(r.matched)]
        # Of tuples in flight, R's finds those whose home it has passed, if it is not stored yet.
        result, kept = f.o.payload, Signal()
        pair = result.kind == ItemKind.PAIR
        stored_left = Cat(result.stored[:bits], 0) < self.index
        m.d.comb += [
            kept.eq(~pair | (stored_left & (Cat(result.probe[:bits], 0) >= self.index))),
            self.o[1].valid.eq(f.o.valid & kept), Value.cast(self.o[1].payload).eq(Value.cast(result)),
            f.o.ready.eq(self.o[1].ready | ~kept), self.matched[1].eq(f.o.valid & f.o.ready & kept & pair),
        ]

        # Tuples that have come here, and EXPIREs of either stream.
        came = {side: Signal(ROW_BITS, name=f"came_{side}") for side in "rs"}
        went = {side: Signal(ROW_BITS, name=f"went_{side}") for side in "rs"}
        home = {side: Signal(name=f"home_{side}") for side in "rs"}
        drops = {side: Signal(name=f"drops_{side}") for side in "rs"}
        for side in "rs":
            m.d.comb += [home[side].eq(Cat(came[side][:bits], 0) == self.index),
                         drops[side].eq(Cat(went[side][:bits], 0) == self.index)]

        kinds = {"r": self.i_r.payload.kind, "s": self.i_s.payload.kind}
        to_right, to_left = self.last | self.o_r.ready, self.first | self.o_s.ready
        able: dict[str, Value] = {
            "tuple_r": ((kinds["r"] == CoreMessage.TUPLE) & s.probe.ready & f.probe.ready & (~home["r"] | r.free)
                        & to_right),
            "ack": kinds["r"] == CoreMessage.ACK,
            "expire_s": (kinds["r"] == CoreMessage.EXPIRE) & (~self.first | (came["s"] != went["s"])) & to_right,
            "end_r": (kinds["r"] == CoreMessage.END) & s.probe.ready & f.probe.ready & to_right,
            "tuple_s": ((kinds["s"] == CoreMessage.TUPLE) & r.probe.ready & (~home["s"] | s.free)
                        & (self.first | f.free) & to_left & to_right),
            "expire_r": (kinds["s"] == CoreMessage.EXPIRE) & (~self.last | (came["r"] != went["r"])) & to_left,
            "end_s": (kinds["s"] == CoreMessage.END) & r.probe.ready & to_left,
        }
        does = {name: Signal(name=name) for name in able}
        acts, turn, rest = Signal(2), Signal(), Signal(2)
        ways = ((self.i_r, ("tuple_r", "ack", "expire_s", "end_r")), (self.i_s, ("tuple_s", "expire_r", "end_s")))
        m.d.comb += acts.eq(Cat(port.valid & Cat(able[name] for name in names).any() for port, names in ways))
        grant = [acts[n] & ~(acts[1 - n] & (turn != n)) & (rest == 0) for n in range(2)]
        m.d.sync += rest.eq(Mux(acts.any() & (rest == 0), 2, rest - (rest != 0)))
        with m.If(acts.any() & (rest == 0)):
            m.d.sync += turn.eq(grant[0])
        for n, (port, names) in enumerate(ways):
            m.d.comb += [port.ready.eq(grant[n]), *(does[name].eq(grant[n] & able[name]) for name in names)]
        for side in "rs":
            m.d.sync += [came[side].eq(came[side] + does[f"tuple_{side}"]),
                         went[side].eq(went[side] + does[f"expire_{side}"])]

        # A tuple of S that has passed its home is compared with those of R that had come to it before.
        before, own_before = self.i_s.payload.before, Signal(len(self.i_s.payload.before))
        passed_home = Cat(came["s"][:bits], 0) > self.index
        stored_before = Signal(position)
        m.d.comb += [
            own_before.eq(Mux(home["s"], came["r"], before)),
            stored_before.eq(before[bits:] + (Cat(before[:bits], 0) > self.index)),
            s.until.eq(s.end), r.until.eq(Mux(passed_home, stored_before, r.end)),
            f.until.eq(f.end),
            s.probe.valid.eq(does["tuple_r"] | does["end_r"]), s.probe.payload.flush.eq(does["end_r"]),
            f.probe.valid.eq(does["tuple_r"] | does["end_r"]), f.probe.payload.flush.eq(does["end_r"]),
            r.probe.valid.eq(does["tuple_s"] | does["end_s"]), r.probe.payload.flush.eq(does["end_s"]),
            *bounds_of(config, self.i_r.payload.body, s, "r"), *bounds_of(config, self.i_r.payload.body, f, "r"),
            *bounds_of(config, self.i_s.payload.body, r, "s"),
            r.append.eq(does["tuple_r"] & home["r"]), Value.cast(r.body).eq(Value.cast(self.i_r.payload.body)),
            s.append.eq(does["tuple_s"] & home["s"]), Value.cast(s.body).eq(Value.cast(self.i_s.payload.body)),
            f.append.eq(does["tuple_s"] & ~self.first), Value.cast(f.body).eq(Value.cast(self.i_s.payload.body)),
            r.drop.eq(does["expire_r"] & drops["r"]), s.drop.eq(does["expire_s"] & drops["s"]), f.drop.eq(does["ack"]),
            self.gone.eq(Cat(does["expire_r"] & self.first, does["expire_s"] & self.last)),
            self.o_r.valid.eq(~self.last & (does["tuple_r"] | does["expire_s"] | does["end_r"] | does["tuple_s"])),
            Value.cast(self.o_r.payload).eq(Value.cast(self.i_r.payload)),
            self.o_s.valid.eq(~self.first & (does["tuple_s"] | does["expire_r"] | does["end_s"])),
            Value.cast(self.o_s.payload).eq(Value.cast(self.i_s.payload)), self.o_s.payload.before.eq(own_before),
        ]
        with m.If(does["tuple_s"]):
            m.d.comb += self.o_r.payload.kind.eq(CoreMessage.ACK)
        return m


class LowLatencyHandshake(Handshake):
    """The chain of `LowLatencyCore`, and a linear collector."""

    drains = False

    def _cores(self, m: Module) -> list[Any]:
        config = self.config
        return [self._parts.add(m, f"core{n}", "core", lambda: LowLatencyCore(config))
                for n in range(config.cores)]

    def _entering(self, port: Any) -> list[Any]:
        return []

    def _message(self, side: str) -> Any:
        return LowLatencyCore.message(self.config, side)

    def _joined(self, m: Module, cores: list[Any]) -> tuple[Any, Any]:
        m.submodules.left = left = GatherChain(self.config, self._parts, 2 * len(cores))
        m.submodules.right = right = GatherChain(self.config, self._parts)
        for n, core in enumerate(cores):
            for place in range(2):
                wiring.connect(m, core.o[place], left.i[2 * n + place])
            wiring.connect(m, core.o[2], right.i[n])
        return left, right

    def _chain(self, m: Module, ends: Any, cores: list[Any]) -> None:
        """Tuples enter while the cores have room for them: one that is expired has it until its EXPIRE has passed."""
        inside = [Signal(range(self.config.window_capacity + 1), name=f"inside_{side}") for side in "rs"]
        gone = Array((cores[0].gone[0], cores[-1].gone[1]))
        for n, (count, port) in enumerate(zip(inside, (ends.r, ends.s), strict=True)):
            enters = port.valid & port.ready & (port.payload.kind == CoreMessage.TUPLE)
            m.d.sync += count.eq(count + enters - gone[n])
            m.d.comb += ends.held[n].eq(count == self.config.window_capacity)
        for n, core in enumerate(cores):
            m.d.comb += core.index.eq(n)
