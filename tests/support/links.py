"""Links between cores of baselines that are slow, and faults planted in their components."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin_hw.network.queue import Queue

from .planting import faulty


class SlowLink(wiring.Component):
    """A link that offers its next message in one cycle of eight, at random."""

    seeds = iter(range(1, 10**6))

    def __init__(self, shape: Any):
        self._shape, self._seed = shape, next(self.seeds)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.queue = queue = Queue(self._shape, 16)
        noise = Signal(16, init=self._seed * 7919 % 65535 + 1)
        opens, passes = Signal(), Signal()
        m.d.sync += noise.eq((noise >> 1) ^ (noise[0].replicate(16) & 0xB400))
        m.d.comb += [opens.eq(noise[:3] == 0), self.o.valid.eq(queue.o.valid & passes), queue.o.ready.eq(
            self.o.ready & passes), self.o.payload.eq(queue.o.payload)]
        m.d.sync += passes.eq((passes & ~(self.o.valid & self.o.ready)) | opens)  # an offer stays until it is taken
        wiring.connect(m, wiring.flipped(self.i), queue.i)
        return m


def plant(monkeypatch: pytest.MonkeyPatch, component: Any, right: str, wrong: str, *, name: str = "elaborate") -> None:
    """Put ``wrong`` in place of ``right`` in ``component``'s function ``name`` (`faulty`)."""
    monkeypatch.setattr(component, name, faulty(component, name, right, wrong))
