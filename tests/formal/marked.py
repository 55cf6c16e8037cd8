"""One marked tuple of each stream in a chain of cores, for proofs that such a pair is compared once.

A region is a list of marks here, which takes tuples and probes whenever it likes: what is proved are the rules by which
tuples, acknowledgements and expiry move, for any time that a region takes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import position_bits
from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin_hw.baseline.ends import CoreMessage
from splitjoin_hw.baseline.handshake import Link
from splitjoin_hw.baseline.segment import probe_layout, segment_ports
from splitjoin_hw.layouts import result_layout

from .harness import Harness
from .monitors import assume_stable_offers

#: Tuples of each stream that a core has room for.
CAPACITY = 2


class Region(wiring.Component):
    """The ports of a `SegmentRegion` that its core reads. ``room``, ``idle``, ``shown``: it takes a tuple, takes a
    probe, shows the oldest tuple. ``met``: the marked probe is compared with the marked tuple, which is a result at
    once. ``gone``: that tuple leaves. ``seen``: a probe sees as many tuples as it may, from the oldest on, or fewer.
    """

    def __init__(self, config: Configuration, side: str):
        self._config = config
        super().__init__({
            **segment_ports(config, side), "probe": In(stream.Signature(probe_layout(config, side))),
            "until": In(position_bits(config)), "o": Out(stream.Signature(result_layout())),
            "index": In(range(max(2, config.cores))), "compared": Out(range(config.capacity + 1)), "matched": Out(1),
            **{name: In(1) for name in ("room", "idle", "shown")},
            **{name: Out(1) for name in ("met", "gone", "has", "seen")},
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        marks = [Signal(name=f"mark{n}") for n in range(CAPACITY)]  # from the oldest on
        mark = Value.cast(self.body)[0]
        first_unsent = Array(marks)[(self.length - self.unsent)[:1]]
        visible, probes, result = Signal.like(self.until), Signal(2), self.o.payload
        probed = self.probe.valid & self.probe.ready & ~self.probe.payload.flush
        met = Cat(now & (visible > n) for n, now in enumerate(marks))
        m.d.comb += [
            self.free.eq(self.room & (self.length != CAPACITY)), self.probe.ready.eq(self.idle),
            self.oldest_valid.eq(self.shown & (self.unsent != 0)), self.end.eq(self.left + self.length),
            Value.cast(self.oldest).eq(first_unsent.replicate(len(Value.cast(self.oldest)))),
            self.has.eq(Cat(marks).any()), self.gone.eq(self.drop & marks[0]), visible.eq(self.until - self.left),
            self.seen.eq(~probed | (visible <= self.length)),
            self.met.eq(probed & Value.cast(self.probe.payload.bounds)[0] & met.any()),
            self.o.valid.eq(self.met), result.kind.eq(ItemKind.PAIR), result.probe.eq(probes),
            result.stored.eq((self.left + met[1])[:2]),
        ]
        m.d.sync += [self.length.eq(self.length + self.append - self.drop), probes.eq(probes + probed),
                     self.unsent.eq(self.unsent + self.append - self.send), self.left.eq(self.left + self.drop)]
        kept = [Mux(self.drop, after, now) for now, after in zip(marks, [*marks[1:], Const(0)], strict=True)]
        for n, now in enumerate(marks):
            m.d.sync += now.eq(Mux(self.append & (self.length - self.drop == n), mark, kept[n]))
        return m


class Regions(list[Region]):
    """Makes regions in place of `SegmentRegion`, and lists them in the order in which cores make them."""

    def make(self, config: Configuration, side: str, **_: Any) -> Region:
        """In place of the class."""
        self.append(Region(config, side))
        return self[-1]


class TwoCores(wiring.Component):
    """Two ``cores`` of a chain and both links. ``r``, ``s``: what enters at the ends. ``layout``: side → that of its
    messages.
    """

    def __init__(self, cores: list[Any], layout: Any):
        self.cores, self._layout = cores, layout
        super().__init__({side: In(stream.Signature(layout(side))) for side in "rs"})

    def elaborate(self, platform) -> Module:
        m = Module()
        for n, core in enumerate(self.cores):
            m.submodules[f"core{n}"] = core
            m.d.comb += [core.first.eq(n == 0), core.last.eq(n == len(self.cores) - 1),
                         Cat(port.ready for port in core.o).eq(-1)]
        for port, enters in ((self.cores[0].i_r, self.r), (self.cores[-1].i_s, self.s)):
            wiring.connect(m, wiring.flipped(enters), port)
        for left, right in pairwise(self.cores):
            for side, sender, receiver in (("r", left, right), ("s", right, left)):
                m.submodules[f"link_{side}"] = link = Link(self._layout(side))
                wiring.connect(m, getattr(sender, f"o_{side}"), link.i)
                wiring.connect(m, link.o, getattr(receiver, f"i_{side}"))
            self.wire(m, left, right)
        return m

    def wire(self, m: Module, left: Any, right: Any) -> None:
        """Further wires between the two."""


class MarkedPair:
    """What follows one tuple of each stream through ``h.dut``, `TwoCores`, whose ends give tuples and EXPIRE in any
    order in which the windows could move.

    Attributes:
        entered: Side → its marked tuple has entered.
        late: One of both left its window before the other came, so that they must not meet.
    """

    def __init__(self, h: Harness, regions: list[Region]):
        m, dut = h.m, h.dut
        for region in regions:
            h.expose(region.room, region.idle, region.shown)
        assume_stable_offers(h, "the ends", dut.r, dut.s)
        self.entered = {side: Signal(name=f"marked_{side}") for side in "rs"}
        self.late = Signal(name="late")
        ports = {"r": dut.r, "s": dut.s}
        out = {side: Signal(name=f"out_{side}") for side in "rs"}  # EXPIRE of the marked tuple has entered
        for side, other in ("rs", "sr"):
            port, opposite, marked = ports[side], ports[other], self.entered[side]
            body, tuple_ = Value.cast(port.payload.body), port.payload.kind == CoreMessage.TUPLE
            entered, expired, number = (Signal(3, name=f"{name}_{side}") for name in ("entered", "expired", "number"))
            h.assume(f"a message of {side} is a tuple or EXPIRE", tuple_ | (port.payload.kind == CoreMessage.EXPIRE))
            h.assume(f"a body of {side} is a mark", (body == 0) | body.all())
            h.assume(f"one tuple of {side} is marked", ~(port.valid & tuple_ & body[0] & marked))
            h.assume(f"few tuples of {side} come", entered != 7)
            with m.If(port.valid & port.ready & tuple_):
                m.d.sync += entered.eq(entered + 1)
                with m.If(body[0]):
                    m.d.sync += [marked.eq(1), number.eq(entered)]
            expires = opposite.valid & (opposite.payload.kind == CoreMessage.EXPIRE)
            h.assume(f"what expires of {side} has entered", ~expires | (expired != entered))
            with m.If(expires & opposite.ready):
                m.d.sync += [expired.eq(expired + 1), out[side].eq(out[side] | (marked & (expired == number)))]
            with m.If(port.valid & tuple_ & body[0] & out[other]):
                m.d.sync += self.late.eq(1)

    def compared(self, h: Harness, met: Value) -> Value:
        """The number of comparisons of the pair up to now; ``met``: those of this cycle, a bit each."""
        times = Signal(2, name="times")
        h.m.d.sync += times.eq(times + sum(met))
        return times + sum(met)
