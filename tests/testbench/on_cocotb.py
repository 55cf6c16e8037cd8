"""Benches on Verilator under cocotb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cocotb.triggers import Timer

from .testbench import Pins, Testbench

#: Half a clock cycle; its length has no effect.
_HALF = Timer(5, "ns")


class _Port:
    """The signals of one stream, as `Pins`. Only values that change are written, which takes cocotb long."""

    def __init__(self, bench: CocotbTestbench, port: str):
        self._valid, self._ready, self._payload = (
            getattr(bench.dut, f"{port}__{name}") for name in ("valid", "ready", "payload"))
        self._sampled = [bench.sample(h) for h in (self._valid, self._ready, self._payload)]
        self._driven: bool | None = None

    def offer(self, valid: bool, payload: int | None) -> None:
        if valid != self._driven:
            self._driven = valid
            self._valid.value = int(valid)
        if payload is not None:
            self._payload.value = payload

    def accept(self, ready: bool) -> None:
        if ready != self._driven:
            self._driven = ready
            self._ready.value = int(ready)

    def sampled(self) -> tuple[bool, bool, int]:
        valid, ready, payload = (get() for get in self._sampled)
        return bool(valid), bool(ready), payload


class CocotbTestbench(Testbench):
    """A module with ports ``clk`` and ``rst`` under cocotb. Only requested signals are sampled in each cycle."""

    def __init__(self, dut: Any):
        super().__init__()
        self.dut = dut
        self._watched: list[Any] = []
        self._values: list[int] = []

    def pins(self, port: str) -> Pins:
        return _Port(self, port)

    def set(self, name: str, value: int) -> None:
        getattr(self.dut, name).value = int(value)

    def watch(self, name: str) -> Callable[[], int]:
        return self.sample(getattr(self.dut, name))

    def sample(self, handle: Any) -> Callable[[], int]:
        """A function that returns the signal's value just before the last clock edge."""
        at = len(self._watched)
        # The simulator's text of bits: a LogicArray, `handle.value`, takes several times as long.
        self._watched.append(handle._handle.get_signal_val_binstr)
        return lambda: self._values[at]

    async def reset(self) -> None:
        """Clear all state; no port may be in use yet."""
        for name in dir(self.dut):
            # Outputs, which Icarus Verilog would keep at what is written to them.
            if name.endswith(("i__ready", "operation__ready", "left__ready", "right__ready")):
                continue
            if name.endswith(("i__valid", "ready", "left__valid", "right__valid", "sequence__valid", "operation__valid",
                              "w_stb")):
                getattr(self.dut, name).value = 0
        self.dut.clk.value = 0
        self.dut.rst.value = 1
        for _ in range(2):
            await self._clock()
        self.dut.rst.value = 0

    async def _clock(self) -> None:
        # All inputs change together with the falling edge; half a cycle later everything has settled.
        await _HALF
        self._values = [int(bits(), 2) for bits in self._watched]
        self.dut.clk.value = 1
        await _HALF
        self.dut.clk.value = 0
