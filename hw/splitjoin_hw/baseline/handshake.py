"""Handshake join as a circuit: R goes through a chain of cores from the left, S from the right, and they meet there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import position_bits
from splitjoin.circuit.wire import Configuration

from ..gather.combiner import Combiner
from ..gather.tree import GatherTree
from ..layouts import result_layout
from ..link.registers import RegisterBlock
from ..network.queue import Queue
from ..top import Top
from .ends import CoreMessage, Ends, message_layout
from .segment import SegmentRegion

#: Messages that wait between two cores, of each way.
_LINKED = 4


class Link(Queue):
    """A link from core to core."""

    def __init__(self, shape: Any):
        super().__init__(shape, _LINKED)


class HandshakeCore(wiring.Component):
    """One core of the chain: a segment of both windows, and a message at a time (Teubner and Mueller, "How soccer
    players would do stream joins", 2011, section 4).

    A tuple that arrives is compared with the segment of the other stream, as that is in this cycle, and stored; the
    scan goes on while later messages are processed. The oldest tuple goes on if this core has more of them than the
    next one has, with those on the way to it. Then the next one has room, so it takes every message, and no two
    opposite queues wait for each other.

    A tuple of S that was sent on stays until its ACK, so that tuples of R that pass it on the way meet it here; a tuple
    of R leaves when it is sent. The ACK goes the way of R: behind all tuples of R that the next core had sent before
    the tuple of S came, and ahead of those that it has compared with it. So each pair meets once.

    In a cascade (ESJ, MP-2PF) a core sends blocks of ``config.block`` tuples, one message after the other, when the
    next one has fewer by ``config.threshold``, and one at a time where it is full itself or an EXPIRE waits ahead. A
    block gets one ACK, and until it is sent no tuple of R goes on, which would meet the block here and there. The next
    core reports its load by SIZE_CHG; in handshake join, wires do that.

    Ports: ``i_r``, ``o_r``, ``i_s``, ``o_s``: messages, R's to the right and S's to the left. ``left_r``, ``left_s``:
    tuples that have left this core, modulo; ``next_r``, ``next_s``: those of the next core of each way, by wires.
    ``wants_r``, ``wants_s``: an EXPIRE waits for tuples that must come through here; ``next_wants_r``,
    ``next_wants_s``: and through the next core. ``load``: tuples of R and of S in this core, with copies. ``first``,
    ``last``: this is the leftmost, the rightmost core. ``o``: results of R's and of S's probes. ``compared``,
    ``matched``: as of `splitjoin_hw.core.core.Core`.
    """

    def __init__(self, config: Configuration):
        self._config = config
        position = position_bits(config)
        super().__init__({
            **message_ports({side: link_layout(config, side) for side in "rs"}),
            "wants_r": Out(1), "wants_s": Out(1), "next_wants_r": In(1), "next_wants_s": In(1),
            "left_r": Out(position), "left_s": Out(position), "next_r": In(position), "next_s": In(position),
            "load": Out(range(config.capacity + 1)).array(2),
            "first": In(1), "last": In(1), "o": Out(stream.Signature(result_layout())).array(2),
            "compared": Out(range(config.capacity + 1)).array(2), "matched": Out(1).array(2),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        # R's probes are compared with S's segment, and the reverse.
        m.submodules.segment_r = r = SegmentRegion(config, "r")
        m.submodules.segment_s = s = SegmentRegion(config, "s")
        for n, region in enumerate((s, r)):
            wiring.connect(m, region.o, wiring.flipped(self.o[n]))
            m.d.comb += [self.compared[n].eq(region.compared), self.matched[n].eq(region.matched),
                         region.until.eq(region.end)]
        m.d.comb += [self.left_r.eq(r.left), self.left_s.eq(s.left), self.load[0].eq(r.length),
                     self.load[1].eq(s.length)]

        # What could be done now, in turn: a message of either way, or sending on a tuple of either stream.
        position = position_bits(config)
        sent_r, sent_s = Signal(position), Signal(position)
        acts, grant = Signal(6), Signal(6)
        block = range(config.block + 1)
        # Of blocks: tuples that are still to be sent; that have arrived; copies of acknowledged ones to be dropped.
        due_r, due_s, received, deleting = (Signal(block, name=name) for name in (
            "due_r", "due_s", "received", "deleting"))
        told_r, told_s, next_r, next_s = (Signal(position, name=name) for name in (
            "told_r", "told_s", "next_r", "next_s"))
        by_message = config.architecture == "cascade"
        kinds = {"r": self.i_r.payload.kind, "s": self.i_s.payload.kind}
        able: dict[str, Value] = {
            "tuple_r": (kinds["r"] == CoreMessage.TUPLE) & s.probe.ready & r.free,
            "ack": kinds["r"] == CoreMessage.ACK,
            "size_s": kinds["r"] == CoreMessage.SIZE_CHG,
            "expire_s": (kinds["r"] == CoreMessage.EXPIRE) & (s.length != 0),
            "end_r": (kinds["r"] == CoreMessage.END) & (r.length == 0) & s.probe.ready & (self.last | self.o_r.ready),
            "tuple_s": (kinds["s"] == CoreMessage.TUPLE) & r.probe.ready & s.free & (
                self.last | self.o_r.ready | ~self.i_s.payload.last),
            "size_r": kinds["s"] == CoreMessage.SIZE_CHG,
            "expire_r": (kinds["s"] == CoreMessage.EXPIRE) & (r.length != 0),
            "end_s": (kinds["s"] == CoreMessage.END) & (s.length == 0) & r.probe.ready & (self.first | self.o_s.ready),
        }
        right, left = ("tuple_r", "ack", "expire_s", "end_r", "size_s"), ("tuple_s", "expire_r", "end_s", "size_r")
        does = {name: Signal(name=name) for name in (*able, "send_r", "send_s", "tell_r", "tell_s")}
        occupied_r, occupied_s = Signal(position), Signal(position)  # of the next core, and the way to it
        m.d.comb += [
            occupied_r.eq(sent_r - (next_r if by_message else self.next_r)),
            occupied_s.eq(sent_s - (next_s if by_message else self.next_s)),
            acts.eq(Cat(self.i_r.valid & Cat(able[name] for name in right).any(),
                        self.i_s.valid & Cat(able[name] for name in left).any(),
                        r.oldest_valid & ~self.last & self.o_r.ready & (received == 0) & ((due_r != 0) | _sends(
                            config, r, occupied_r, self.next_wants_r)),
                        s.oldest_valid & ~self.first & self.o_s.ready & ((due_s != 0) | _sends(
                            config, s, occupied_s, self.next_wants_s)),
                        by_message & ~self.first & self.o_s.ready & (told_r != r.left),
                        by_message & ~self.last & self.o_r.ready & (told_s != s.left))),
            *(does[name].eq(grant[0] & able[name]) for name in right),
            *(does[name].eq(grant[1] & able[name]) for name in left),
            *(does[name].eq(grant[n]) for n, name in enumerate(("send_r", "send_s", "tell_r", "tell_s"), 2)),
        ]
        turn, rest = Signal(range(6)), Signal(2)
        m.d.sync += rest.eq(rest - (rest != 0))
        with m.If((rest == 0) & (deleting == 0)):
            with m.Switch(turn):
                for first in range(6):
                    with m.Case(first):
                        before: Value = Signal(name=f"before{first}")  # always 0
                        for n in range(first, first + 6):
                            m.d.comb += grant[n % 6].eq(acts[n % 6] & ~before)
                            before |= acts[n % 6]
            with m.If(acts.any()):
                # Segments take an operation in three cycles.
                m.d.sync += [turn.eq(Mux(turn == 5, 0, turn + 1)), rest.eq(2)]

        # Blocks: of what is sent, of what arrives, and of copies that an ACK deletes.
        whole = {}
        for name, due, region, occupied in (("r", due_r, r, occupied_r), ("s", due_s, s, occupied_s)):
            whole[name] = Signal(block, name=f"whole_{name}")  # tuples of this block that are still to be sent
            m.d.comb += whole[name].eq(Mux(due != 0, due, Mux(
                region.unsent >= occupied + config.threshold, config.block, 1)))
            with m.If(does[f"send_{name}"]):
                m.d.sync += due.eq(whole[name] - 1)
        acknowledged = Signal()
        m.d.comb += acknowledged.eq(does["tuple_s"] & self.i_s.payload.last)
        with m.If(does["tuple_s"] & ~self.last):
            m.d.sync += received.eq(Mux(acknowledged, 0, received + 1))
        with m.If(does["ack"]):
            m.d.sync += deleting.eq(self.i_r.payload.number)
        with m.Elif(deleting != 0):
            m.d.sync += deleting.eq(deleting - 1)
        for name, mine, kept in (("r", r.left, told_r), ("s", s.left, told_s)):
            with m.If(does[f"tell_{name}"]):
                m.d.sync += kept.eq(mine)
        for name, port, kept in (("r", self.i_s, next_r), ("s", self.i_r, next_s)):
            with m.If(does[f"size_{name}"]):
                m.d.sync += kept.eq(port.payload.number)
        m.d.sync += [
            self.wants_r.eq((r.unsent == 0) & (self.next_wants_r | (
                self.last & self.i_s.valid & (kinds["s"] == CoreMessage.EXPIRE)))),
            self.wants_s.eq((s.unsent == 0) & (self.next_wants_s | (
                self.first & self.i_r.valid & (kinds["r"] == CoreMessage.EXPIRE)))),
        ]

        m.d.comb += [
            self.i_r.ready.eq(grant[0]), self.i_s.ready.eq(grant[1]),
            s.probe.valid.eq(does["tuple_r"] | does["end_r"]), s.probe.payload.flush.eq(does["end_r"]),
            r.probe.valid.eq(does["tuple_s"] | does["end_s"]), r.probe.payload.flush.eq(does["end_s"]),
            *bounds_of(config, self.i_r.payload.body, s, "r"), *bounds_of(config, self.i_s.payload.body, r, "s"),
            r.append.eq(does["tuple_r"]), Value.cast(r.body).eq(Value.cast(self.i_r.payload.body)),
            s.append.eq(does["tuple_s"]), Value.cast(s.body).eq(Value.cast(self.i_s.payload.body)),
            r.send.eq(does["send_r"] | does["expire_r"]), r.drop.eq(does["send_r"] | does["expire_r"]),
            # At the left end no tuple of S was sent on.
            s.send.eq(does["send_s"] | does["expire_s"]), s.drop.eq((deleting != 0) | does["expire_s"]),
            self.o_r.valid.eq(does["send_r"] | does["tell_s"] | (~self.last & (acknowledged | does["end_r"]))),
            self.o_r.payload.kind.eq(_kind(acknowledged, does["end_r"], does["tell_s"])),
            self.o_r.payload.last.eq(whole["r"] == 1),
            self.o_r.payload.number.eq(Mux(does["tell_s"], s.left, received + 1)),
            Value.cast(self.o_r.payload.body).eq(Value.cast(r.oldest)),
            self.o_s.valid.eq(does["send_s"] | does["tell_r"] | (~self.first & does["end_s"])),
            self.o_s.payload.kind.eq(_kind(0, does["end_s"], does["tell_r"])),
            self.o_s.payload.last.eq(whole["s"] == 1), self.o_s.payload.number.eq(r.left),
            Value.cast(self.o_s.payload.body).eq(Value.cast(s.oldest)),
        ]
        m.d.sync += [sent_r.eq(sent_r + does["send_r"]), sent_s.eq(sent_s + does["send_s"])]
        return m


def message_ports(layouts: dict[str, Any]) -> dict[str, Any]:
    """The ports of a core for messages. ``layouts``: side → that of its messages."""
    return {f"{flow}_{side}": (In if flow == "i" else Out)(stream.Signature(layout))
            for side, layout in layouts.items() for flow in "io"}


def link_layout(config: Configuration, side: str) -> Any:
    """A message from core to core. ``last``: of its block. ``number``: as the kind says."""
    return message_layout(config, side, {"last": 1, "number": position_bits(config)})


def _sends(config: Configuration, region: SegmentRegion, occupied: Value, wanted: Value) -> Value:
    """True if a block is to be sent, or a tuple, to a core that holds ``occupied``, and has ``wanted`` one."""
    pressed = wanted | (region.length == config.capacity)
    return (region.unsent >= occupied + config.threshold) | (pressed & (region.unsent > occupied))


def _kind(ack: Any, end: Value, tells: Value) -> Value:
    return Mux(ack, CoreMessage.ACK, Mux(end, CoreMessage.END, Mux(tells, CoreMessage.SIZE_CHG, CoreMessage.TUPLE)))


def bounds_of(config: Configuration, body: Any, region: SegmentRegion, side: str) -> list[Any]:
    """Assignments of the bounds of a probe of stream ``side``."""
    return [region.probe.payload.bounds[name].eq(body[name]) for name, _ in config.bounds(side).fields]


class Handshake(Top):
    """The chain between `Ends`, with SplitJoin's gathering tree and combiner in order ``none``."""

    drains = True

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self.config
        m.submodules.registers = registers = RegisterBlock(config)
        m.submodules.ends = ends = Ends(config, drains=self.drains)
        record = self._record
        wiring.connect(m, self._buffered(m, Const(1)), ends.i)
        m.d.comb += ends.settings.eq(registers.settings)
        #: The cores, for measurements.
        self.cores = cores = self._cores(m)
        for n, core in enumerate(cores):
            m.d.comb += [core.first.eq(n == 0), core.last.eq(n == len(cores) - 1)]
        for port, source in ((cores[0].i_r, ends.r), (cores[-1].i_s, ends.s)):
            m.d.comb += [port.valid.eq(source.valid), source.ready.eq(port.ready),
                         port.payload.kind.eq(source.payload.kind), *self._entering(port),
                         Value.cast(port.payload.body).eq(Value.cast(source.payload.body))]
        for n, (left, right) in enumerate(pairwise(cores)):
            for side, sender, receiver in (("r", left, right), ("s", right, left)):
                link = self._link(m, f"link_{side}{n}", side)
                wiring.connect(m, getattr(sender, f"o_{side}"), link.i)
                wiring.connect(m, link.o, getattr(receiver, f"i_{side}"))
        self._chain(m, ends, cores)
        m.submodules.combiner = combiner = Combiner()
        for part, sink in zip(self._joined(m, cores), (combiner.left, combiner.right), strict=True):
            wiring.connect(m, part.o, sink)
        item = combiner.o.payload
        m.d.comb += [
            self.o.payload.eq(Cat(item[name] for name, _ in config.item_record.fields)),
            self.o.valid.eq(combiner.o.valid), combiner.o.ready.eq(self.o.ready), *self._bus(registers),
            registers.overflow.eq(ends.overflow), registers.overflow_row_r.eq(ends.overflow_row[0]),
            registers.overflow_row_s.eq(ends.overflow_row[1]),
        ]
        self._count(m, registers, record, [count for core in cores for count in core.compared],
                    [count for core in cores for count in core.matched])
        return m

    def _cores(self, m: Module) -> list[Any]:
        config = replace(self.config, cores=1)
        return [self._parts.add(m, f"core{n}", "core", lambda: HandshakeCore(config))
                for n in range(self.config.cores)]

    def _link(self, m: Module, name: str, side: str) -> Any:
        layout = self._message(side)
        return self._parts.add(m, name, f"link_{side}", lambda: Link(layout))

    def _entering(self, port: Any) -> list[Any]:
        """Further fields of a message that enters the chain."""
        return [port.payload.last.eq(1)]

    def _message(self, side: str) -> Any:
        """The layout of messages on a link."""
        return link_layout(self.config, side)

    def _chain(self, m: Module, ends: Any, cores: list[Any]) -> None:
        """Further wires between the cores: how many tuples have left the next one."""
        for left, right in pairwise(cores):
            m.d.comb += [left.next_r.eq(right.left_r), right.next_s.eq(left.left_s),
                         left.next_wants_r.eq(right.wants_r), right.next_wants_s.eq(left.wants_s)]

    def _joined(self, m: Module, cores: list[Any]) -> tuple[Any, Any]:
        """The parts that join the results of R's and of S's probes."""
        trees = []
        for n in range(2):
            tree = GatherTree(leaves=len(cores), fanin=self.config.fanin, bits=2, parts=self._parts)
            m.submodules[f"tree{n}"] = tree
            for core, port in zip(cores, tree.i, strict=True):
                wiring.connect(m, core.o[n], port)
            trees.append(tree)
        return trees[0], trees[1]
