"""Handshake join as a circuit: R goes through a chain of cores from the left, S from the right, and they meet there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
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
from .ends import Ends, Message, message_layout
from .segment import SegmentRegion

__all__ = ["Handshake", "HandshakeCore", "Link", "bounds_of"]

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

    Ports: ``i_r``, ``o_r``, ``i_s``, ``o_s``: messages, R's to the right and S's to the left. ``left_r``, ``left_s``:
    tuples that have left this core, modulo; ``next_r``, ``next_s``: those of the next core of each way. ``first``,
    ``last``: this is the leftmost, the rightmost core. ``o``: results of R's and of S's probes. ``compared``,
    ``matched``: as of `splitjoin_hw.core.core.Core`.
    """

    def __init__(self, config: Configuration):
        self._config = config
        position = position_bits(config)
        result = stream.Signature(result_layout())
        super().__init__({
            **{f"{flow}_{side}": (In if flow == "i" else Out)(stream.Signature(message_layout(config, side)))
               for side in "rs" for flow in "io"},
            "left_r": Out(position), "left_s": Out(position), "next_r": In(position), "next_s": In(position),
            "first": In(1), "last": In(1), "o": Out(result).array(2),
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
        m.d.comb += [self.left_r.eq(r.left), self.left_s.eq(s.left)]

        # What could be done now, in turn: a message of either way, or sending on a tuple of either stream.
        position = position_bits(config)
        sent_r, sent_s = Signal(position), Signal(position)
        acts, grant = Signal(4), Signal(4)
        kinds = {"r": self.i_r.payload.kind, "s": self.i_s.payload.kind}
        able: dict[str, Value] = {
            "tuple_r": (kinds["r"] == Message.TUPLE) & s.probe.ready & r.free,
            "ack": kinds["r"] == Message.ACK,
            "expire_s": (kinds["r"] == Message.EXPIRE) & (s.length != 0),
            "end_r": (kinds["r"] == Message.END) & (r.length == 0) & s.probe.ready & (self.last | self.o_r.ready),
            "tuple_s": (kinds["s"] == Message.TUPLE) & r.probe.ready & s.free & (self.last | self.o_r.ready),
            "expire_r": (kinds["s"] == Message.EXPIRE) & (r.length != 0),
            "end_s": (kinds["s"] == Message.END) & (s.length == 0) & r.probe.ready & (self.first | self.o_s.ready),
        }
        does = {name: Signal(name=name) for name in (*able, "send_r", "send_s")}
        occupied_r, occupied_s = Signal(position), Signal(position)  # of the next core, and the way to it
        m.d.comb += [
            occupied_r.eq(sent_r - self.next_r), occupied_s.eq(sent_s - self.next_s),
            acts.eq(Cat(self.i_r.valid & Cat(able[name] for name in ("tuple_r", "ack", "expire_s", "end_r")).any(),
                        self.i_s.valid & Cat(able[name] for name in ("tuple_s", "expire_r", "end_s")).any(),
                        r.oldest_valid & ~self.last & self.o_r.ready & (r.unsent > occupied_r),
                        s.oldest_valid & ~self.first & self.o_s.ready & (s.unsent > occupied_s))),
            *(does[name].eq(grant[0] & able[name]) for name in ("tuple_r", "ack", "expire_s", "end_r")),
            *(does[name].eq(grant[1] & able[name]) for name in ("tuple_s", "expire_r", "end_s")),
            does["send_r"].eq(grant[2]), does["send_s"].eq(grant[3]),
        ]
        turn, rest = Signal(2), Signal(2)
        m.d.sync += rest.eq(rest - (rest != 0))
        with m.If(rest == 0):
            with m.Switch(turn):
                for first in range(4):
                    with m.Case(first):
                        before: Value = Signal(name=f"before{first}")  # always 0
                        for n in range(first, first + 4):
                            m.d.comb += grant[n % 4].eq(acts[n % 4] & ~before)
                            before |= acts[n % 4]
            with m.If(acts.any()):
                # Segments take an operation in three cycles.
                m.d.sync += [turn.eq(turn + 1), rest.eq(2)]

        m.d.comb += [
            self.i_r.ready.eq(grant[0]), self.i_s.ready.eq(grant[1]),
            s.probe.valid.eq(does["tuple_r"] | does["end_r"]), s.probe.payload.flush.eq(does["end_r"]),
            r.probe.valid.eq(does["tuple_s"] | does["end_s"]), r.probe.payload.flush.eq(does["end_s"]),
            *bounds_of(config, self.i_r.payload.body, s, "r"), *bounds_of(config, self.i_s.payload.body, r, "s"),
            r.append.eq(does["tuple_r"]), Value.cast(r.body).eq(Value.cast(self.i_r.payload.body)),
            s.append.eq(does["tuple_s"]), Value.cast(s.body).eq(Value.cast(self.i_s.payload.body)),
            r.send.eq(does["send_r"] | does["expire_r"]), r.drop.eq(does["send_r"] | does["expire_r"]),
            # At the left end no tuple of S was sent on.
            s.send.eq(does["send_s"] | does["expire_s"]), s.drop.eq(does["ack"] | does["expire_s"]),
            self.o_r.valid.eq(does["send_r"] | (~self.last & (does["tuple_s"] | does["end_r"]))),
            self.o_r.payload.kind.eq(Mux(does["tuple_s"], Message.ACK, Mux(does["end_r"], Message.END, Message.TUPLE))),
            Value.cast(self.o_r.payload.body).eq(Value.cast(r.oldest)),
            self.o_s.valid.eq(does["send_s"] | (~self.first & does["end_s"])),
            self.o_s.payload.kind.eq(Mux(does["end_s"], Message.END, Message.TUPLE)),
            Value.cast(self.o_s.payload.body).eq(Value.cast(s.oldest)),
        ]
        m.d.sync += [sent_r.eq(sent_r + does["send_r"]), sent_s.eq(sent_s + does["send_s"])]
        return m


def bounds_of(config: Configuration, body: Any, region: SegmentRegion, side: str) -> list[Any]:
    """Assignments of the bounds of a probe of stream ``side``."""
    return [region.probe.payload.bounds[name].eq(body[name]) for name, _ in config.bounds(side).fields]


class Handshake(Top):
    """The chain between `Ends`, with SplitJoin's gathering tree and combiner in order ``none``."""

    drains = True

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.registers = registers = RegisterBlock(config)
        m.submodules.ends = ends = Ends(config, drains=self.drains)
        record = self._record
        accepting, _ = self._accepting(m, self.i.valid | ~self.i.valid)
        m.d.comb += [ends.i.payload.eq(record), ends.i.valid.eq(self.i.valid), self.i.ready.eq(ends.i.ready),
                     ends.accept.eq(accepting), ends.settings.eq(registers.settings)]
        cores = self._cores()
        for n, core in enumerate(cores):
            m.submodules[f"core{n}"] = core
            m.d.comb += [core.first.eq(n == 0), core.last.eq(n == len(cores) - 1)]
        for port, source in ((cores[0].i_r, ends.r), (cores[-1].i_s, ends.s)):
            m.d.comb += [port.valid.eq(source.valid), source.ready.eq(port.ready),
                         port.payload.kind.eq(source.payload.kind),
                         Value.cast(port.payload.body).eq(Value.cast(source.payload.body))]
        for n, (left, right) in enumerate(pairwise(cores)):
            for side, sender, receiver in (("r", left, right), ("s", right, left)):
                m.submodules[f"link_{side}{n}"] = link = Link(self._message(side))
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

    def _cores(self) -> list[Any]:
        return [HandshakeCore(replace(self._config, cores=1)) for _ in range(self._config.cores)]

    def _message(self, side: str) -> Any:
        """The layout of messages on a link."""
        return message_layout(self._config, side)

    def _chain(self, m: Module, ends: Any, cores: list[Any]) -> None:
        """Further wires between the cores: how many tuples have left the next one."""
        for left, right in pairwise(cores):
            m.d.comb += [left.next_r.eq(right.left_r), right.next_s.eq(left.left_s)]

    def _joined(self, m: Module, cores: list[Any]) -> tuple[Any, Any]:
        """The parts that join the results of R's and of S's probes."""
        trees = []
        for n in range(2):
            tree = GatherTree(leaves=len(cores), fanin=self._config.fanin, bits=2, parts=self._parts)
            m.submodules[f"tree{n}"] = tree
            for core, port in zip(cores, tree.i, strict=True):
                wiring.connect(m, core.o[n], port)
            trees.append(tree)
        return trees[0], trees[1]
