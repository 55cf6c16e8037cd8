"""Links between cores of baselines that are slow, and faults planted in their sources."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin_hw.network.queue import Queue

__all__ = ["SlowLink", "plant"]


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


def plant(monkeypatch: pytest.MonkeyPatch, module: Any, component: Any, right: str, wrong: str, *,
          name: str = "elaborate") -> None:
    """Replace ``right``, which occurs once in the source of ``component``'s function ``name``, by ``wrong``."""
    text = textwrap.dedent(inspect.getsource(vars(component)[name]))
    assert text.count(right) == 1
    scope: dict[str, Any] = {}
    exec(text.replace(right, wrong), vars(module), scope)
    monkeypatch.setattr(component, name, scope[name])
