"""The register bus of a circuit in a bench."""

from __future__ import annotations

from splitjoin.circuit.registers import register

from .testbench import Testbench


class Registers:
    """The register bus."""

    def __init__(self, tb: Testbench):
        self._tb = tb
        self._data = tb.watch("r_data")

    async def read(self, name: str) -> int:
        """The value of register ``name``."""
        reg = register(name)
        value = 0
        for n in range(reg.bits // 32):
            self._tb.set("addr", reg.address + n)
            await self._tb.steps(4)  # one edge registers the address, two read; the next sample is the word
            value |= self._data() << 32 * n
        return value

    async def write(self, name: str, value: int) -> None:
        """Set register ``name``."""
        reg = register(name)
        for n in range(reg.bits // 32):
            self._tb.set("addr", reg.address + n)
            self._tb.set("w_data", value >> 32 * n & 0xFFFFFFFF)
            self._tb.set("w_stb", 1)
            await self._tb.step()
        self._tb.set("w_stb", 0)
