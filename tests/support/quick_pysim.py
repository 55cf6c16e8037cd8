"""Amaranth's simulator without half of its work: values that do not change are not masked, memories not written."""

from __future__ import annotations

from typing import Any

from amaranth.sim import pysim

#: Amaranth's own methods. Its processes call them for each signal that they drive and for each port of a memory, in
#: every cycle, and most of these calls change nothing.
SIGNAL_UPDATE, MEMORY_WRITE = pysim._PySignalState.update, pysim._PyMemoryState.write


def _update(self: Any, value: int, mask: int = ~0) -> None:
    if value != self.next:  # else it stays whatever the mask
        SIGNAL_UPDATE(self, value, mask)


def _write(self: Any, addr: int, value: int, mask: int | None = None) -> None:
    if mask != 0:  # else the port writes no bit
        MEMORY_WRITE(self, addr, value, mask)


def quicken() -> None:
    """Have this process simulate so."""
    pysim._PySignalState.update, pysim._PyMemoryState.write = _update, _write
