"""Bounded proofs of the rules of handshake join, of the cascade and of low-latency handshake join: two cores and the
links between them compare each pair once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Cat, Module

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.baseline import handshake, low_latency
from splitjoin_hw.baseline.handshake import HandshakeCore, link_layout
from splitjoin_hw.baseline.low_latency import LowLatencyCore

from .harness import Harness
from .marked import CAPACITY, MarkedPair, Regions, TwoCores
from .monitors import Event
from .proofs import Fault, Proof

_ONCE = "a pair is compared at most once"
_LATE = "a tuple that has left its window is not compared"
_ALL = "a pair has been compared when its tuple of R leaves"
_HERE = "a probe sees tuples that are here"


class _Handshake(TwoCores):
    """Two cores of handshake join, which know how many tuples have left the next one."""

    def wire(self, m: Module, left: Any, right: Any) -> None:
        m.d.comb += [left.next_r.eq(right.left_r), right.next_s.eq(left.left_s), left.next_wants_r.eq(right.wants_r),
                     right.next_wants_s.eq(left.wants_s)]


class _LowLatency(TwoCores):
    """Two cores of low-latency handshake join, which know their numbers."""

    def wire(self, m: Module, left: Any, right: Any) -> None:
        m.d.comb += [left.index.eq(0), right.index.eq(1)]


def _configuration(architecture: str, block: int = 1) -> Configuration:
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, cores=2, capacity=CAPACITY,
                         architecture=architecture, block=block, threshold=block)


def _handshake(architecture: str = "handshake", block: int = 1) -> Harness:
    config, regions = _configuration(architecture, block), Regions()
    with patch.object(handshake, "SegmentRegion", regions.make):
        h = Harness(dut := _Handshake([HandshakeCore(replace(config, cores=1)) for _ in range(2)],
                                      lambda side: link_layout(config, side)))
    pair = MarkedPair(h, regions)
    h.assume("what enters is a block of one tuple", dut.r.payload.last & dut.s.payload.last)
    now = pair.compared(h, Cat(region.met for region in regions))
    h.prove(_ONCE, now <= 1)
    h.prove(_LATE, ~pair.late | (now == 0))
    # S's may leave at the left end while R's is on the way to its copy. R's leaves at the right end.
    h.prove(_ALL, ~regions[2].gone | ~pair.entered["s"] | pair.late | (now == 1))
    h.output = Event(now == 1)
    return h


def _cascade() -> Harness:
    """Blocks of two tuples, and of one where an EXPIRE waits or a core is full."""
    return _handshake("cascade", 2)


def _low_latency() -> Harness:
    config, regions = _configuration("low-latency-handshake"), Regions()
    with patch.object(low_latency, "SegmentRegion", regions.make):
        h = Harness(dut := _LowLatency([LowLatencyCore(config) for _ in range(2)],
                                       lambda side: LowLatencyCore.message(config, side)))
    pair = MarkedPair(h, regions)
    h.assume("nothing was counted before the chain", dut.s.payload.before == 0)
    # Of tuples in flight some pairs are dropped: those count that a core passes on.
    now = pair.compared(h, Cat(*(core.matched[1] for core in dut.cores),
                               *(region.met for n, region in enumerate(regions) if n % 3 != 2)))
    h.prove(_ONCE, now <= 1)
    h.prove(_LATE, ~pair.late | (now == 0))
    # S's may leave its home while R's is on the way to S's in flight.
    h.prove(_ALL, ~(regions[0].gone | regions[3].gone) | ~pair.entered["s"] | pair.late | (now == 1))
    h.prove(_HERE, Cat(region.seen for region in regions).all())
    h.output = Event(now == 1)
    return h


PROOFS: tuple[Proof, ...] = (
    Proof("two cores of handshake join", _handshake, 24, inductive=False, search=24, first=16, quick=False, faults=(
        Fault(_ONCE, HandshakeCore, 'does["ack"]', "Const(0)"),
        Fault(_LATE, HandshakeCore, '(kinds["s"] == CoreMessage.EXPIRE) & (r.length != 0)',
              '(kinds["s"] == CoreMessage.EXPIRE)'),
        Fault(_ALL, HandshakeCore, 's.drop.eq((deleting != 0) | does["expire_s"])',
              's.drop.eq(does["send_s"] | does["expire_s"])'),
    )),
    Proof("two cores of a cascade", _cascade, 24, inductive=False, search=24, first=16, quick=False, faults=(
        Fault(_ONCE, HandshakeCore, "(received == 0)", "Value.cast(1)"),
        Fault(_ONCE, HandshakeCore, 'Mux(does["tell_s"], s.left, received + 1)', 'Mux(does["tell_s"], s.left, 1)'),
        Fault(_LATE, HandshakeCore, '(kinds["s"] == CoreMessage.EXPIRE) & (r.length != 0)',
              '(kinds["s"] == CoreMessage.EXPIRE)'),
        Fault(_ALL, HandshakeCore, 's.drop.eq((deleting != 0) | does["expire_s"])',
              's.drop.eq(does["send_s"] | does["expire_s"])'),
    )),
    Proof("two cores of low-latency handshake join", _low_latency, 16, inductive=False, search=16, first=16,
          quick=False, faults=(
        Fault(_ONCE, LowLatencyCore, "Mux(passed_home, stored_before, r.end)", "r.end"),
        Fault(_ONCE, LowLatencyCore, "Cat(result.probe[:bits], 0) >= self.index", "Value.cast(1)"),
        Fault(_LATE, LowLatencyCore, 'f.drop.eq(does["ack"])', "f.drop.eq(0)"),
        Fault(_LATE, LowLatencyCore, '~self.first | (came["s"] != went["s"])', "Value.cast(1)"),
        Fault(_LATE, LowLatencyCore, '~self.last | (came["r"] != went["r"])', "Value.cast(1)"),
        Fault(_ALL, LowLatencyCore, "stored_left & (Cat(result.probe[:bits], 0) >= self.index)", "Value.cast(0)"),
        Fault(_ALL, LowLatencyCore, "Cat(before[:bits], 0) > self.index", "Value.cast(0)"),
        Fault(_HERE, LowLatencyCore, 'Mux(home["s"], came["r"], before)', "before"),
    )),
)
