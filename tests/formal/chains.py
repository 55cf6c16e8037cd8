"""Bounded proofs of handshake join's rules: two cores and the links between them compare each pair once.

A region is a list of marks here, which takes and gives tuples whenever it likes: what is proved are the rules by which
tuples, acknowledgements and expiry move, for any time that a region takes. One tuple of each stream is marked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import position_bits
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.baseline import handshake
from splitjoin_hw.baseline.ends import Message
from splitjoin_hw.baseline.handshake import HandshakeCore, Link, link_layout
from splitjoin_hw.baseline.segment import probe_layout, segment_ports
from splitjoin_hw.layouts import result_layout

from .harness import Harness
from .monitors import Event, assume_stable_offers
from .proofs import Fault, Proof

__all__ = ["PROOFS"]

#: Tuples of each stream that a core has room for.
_CAPACITY = 2


class _Region(wiring.Component):
    """The ports of a `SegmentRegion` that its core reads. ``room``, ``idle``, ``shown``: it takes a tuple, takes a
    probe, shows the oldest tuple. ``met``: the marked probe is compared with the marked tuple. ``gone``: that leaves.
    """

    def __init__(self, config: Configuration, side: str):
        self._config = config
        super().__init__({
            **segment_ports(config, side), "probe": In(stream.Signature(probe_layout(config, side))),
            "until": In(position_bits(config)), "o": Out(stream.Signature(result_layout())),
            "compared": Out(range(config.capacity + 1)), "matched": Out(1),
            **{name: In(1) for name in ("room", "idle", "shown")}, **{name: Out(1) for name in ("met", "gone", "has")},
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        marks = [Signal(name=f"mark{n}") for n in range(_CAPACITY)]  # from the oldest on
        mark = Value.cast(self.body)[0]
        first_unsent = Array(marks)[(self.length - self.unsent)[:1]]
        m.d.comb += [
            self.free.eq(self.room & (self.length != _CAPACITY)), self.probe.ready.eq(self.idle),
            self.oldest_valid.eq(self.shown & (self.unsent != 0)), self.end.eq(self.left + self.length),
            Value.cast(self.oldest).eq(first_unsent.replicate(len(Value.cast(self.oldest)))),
            self.has.eq(Cat(marks).any()), self.gone.eq(self.drop & marks[0]),
            self.met.eq(self.probe.valid & self.probe.ready & ~self.probe.payload.flush
                        & Value.cast(self.probe.payload.bounds)[0] & self.has),
        ]
        m.d.sync += [self.length.eq(self.length + self.append - self.drop),
                     self.unsent.eq(self.unsent + self.append - self.send), self.left.eq(self.left + self.drop)]
        kept = [Mux(self.drop, after, now) for now, after in zip(marks, [*marks[1:], Const(0)], strict=True)]
        for n, now in enumerate(marks):
            m.d.sync += now.eq(Mux(self.append & (self.length - self.drop == n), mark, kept[n]))
        return m


class _TwoCores(wiring.Component):
    """Two cores of a chain and both links. ``r``, ``s``: what enters at the ends."""

    def __init__(self, config: Configuration):
        self._config, self.regions = config, []
        self.cores = [HandshakeCore(replace(config, cores=1)) for _ in range(2)]
        super().__init__({side: In(stream.Signature(link_layout(config, side))) for side in "rs"})

    def elaborate(self, platform) -> Module:
        m = Module()
        left, right = self.cores
        for n, core in enumerate(self.cores):
            m.submodules[f"core{n}"] = core
            m.d.comb += [core.first.eq(n == 0), core.last.eq(n == 1), Cat(port.ready for port in core.o).eq(-1)]
        for port, enters in ((left.i_r, self.r), (right.i_s, self.s)):
            wiring.connect(m, wiring.flipped(enters), port)
        for side, sender, receiver in (("r", left, right), ("s", right, left)):
            m.submodules[f"link_{side}"] = link = Link(link_layout(self._config, side))
            wiring.connect(m, getattr(sender, f"o_{side}"), link.i)
            wiring.connect(m, link.o, getattr(receiver, f"i_{side}"))
        m.d.comb += [left.next_r.eq(right.left_r), right.next_s.eq(left.left_s), left.next_wants_r.eq(right.wants_r),
                     right.next_wants_s.eq(left.wants_s)]
        return m


def _chain(architecture: str) -> Harness:
    """Both ends give tuples and EXPIRE in any order in which the windows could move."""
    config = Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, cores=2, capacity=_CAPACITY,
                           architecture=architecture)
    regions: list[_Region] = []

    def make(*of: Any) -> _Region:
        regions.append(_Region(*of))
        return regions[-1]

    with patch.object(handshake, "SegmentRegion", make):
        h = Harness(dut := _TwoCores(config))
    m = h.m
    r1 = regions[2]
    for region in regions:
        h.expose(region.room, region.idle, region.shown)
    assume_stable_offers(h, "the ends", dut.r, dut.s)

    entered, expired, marked, out = {}, {}, {}, {}
    for side, port in (("r", dut.r), ("s", dut.s)):
        payload, taken = port.payload, port.valid & port.ready
        body = Value.cast(payload.body)
        tuple_ = payload.kind == Message.TUPLE
        h.assume(f"a message of {side} is a tuple or EXPIRE", tuple_ | (payload.kind == Message.EXPIRE))
        h.assume(f"a body of {side} is a mark", ((body == 0) | body.all()) & payload.last)
        for name, of in (("entered", entered), ("expired", expired)):
            of[side] = Signal(3, name=f"{name}_{side}")
        marked[side] = Signal(name=f"marked_{side}")
        out[side] = Signal(name=f"out_{side}")  # its EXPIRE has entered
        h.assume(f"one tuple of {side} is marked", ~(port.valid & tuple_ & body[0] & marked[side]))
        h.assume(f"few tuples of {side} come", entered[side] != 7)
        with m.If(taken & tuple_):
            m.d.sync += [entered[side].eq(entered[side] + 1), marked[side].eq(marked[side] | body[0])]
    number = {}
    for side, port in (("r", dut.s), ("s", dut.r)):
        enters = {"r": dut.r, "s": dut.s}[side]
        expires = port.valid & (port.payload.kind == Message.EXPIRE)
        number[side] = Signal(3, name=f"number_{side}")  # of the marked tuple
        with m.If(enters.valid & enters.ready & Value.cast(enters.payload.body)[0]
                  & (enters.payload.kind == Message.TUPLE)):
            m.d.sync += number[side].eq(entered[side])
        h.assume(f"what expires of {side} has entered", ~expires | (expired[side] != entered[side]))
        with m.If(expires & port.ready):
            m.d.sync += expired[side].eq(expired[side] + 1)
            m.d.sync += out[side].eq(out[side] | (marked[side] & (expired[side] == number[side])))

    # One of the pair may have left its window before the other comes: then they must not meet.
    late = Signal(name="late")
    for side, other in ("rs", "sr"):
        enters = {"r": dut.r, "s": dut.s}[side]
        with m.If(enters.valid & (enters.payload.kind == Message.TUPLE) & Value.cast(enters.payload.body)[0]
                  & out[other]):
            m.d.sync += late.eq(1)
    met = Cat(region.met for region in regions)
    times = Signal(2, name="times")
    m.d.sync += times.eq(times + sum(met))
    now = times + sum(met)
    h.prove("a pair is compared at most once", now <= 1)
    h.prove("a tuple that has left its window is not compared", ~late | (times == 0))
    # S's may leave at the left end while R's is on the way to its copy.
    h.prove("a pair has been compared when its tuple of R leaves", ~r1.gone | ~marked["s"] | late | (now == 1))
    h.output = Event(times == 1)
    return h


PROOFS: tuple[Proof, ...] = (
    Proof("two cores of handshake join", lambda: _chain("handshake"), 24, inductive=False, search=24, first=16,
          quick=False, faults=(
        Fault("a pair is compared at most once", HandshakeCore, 'does["ack"]', "Const(0)"),
        Fault("a tuple that has left its window is not compared", HandshakeCore,
              '(kinds["s"] == Message.EXPIRE) & (r.length != 0)', '(kinds["s"] == Message.EXPIRE)'),
        Fault("a pair has been compared when its tuple of R leaves", HandshakeCore,
              's.drop.eq((deleting != 0) | does["expire_s"])', 's.drop.eq(does["send_s"] | does["expire_s"])'),
    )),
)
