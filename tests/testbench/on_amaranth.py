"""Benches on Amaranth's own simulator."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Const, Fragment, Module, Value
from amaranth.sim import Simulator

from .testbench import Pins, Testbench


class _Port:
    """The signals of one stream, as `Pins`."""

    def __init__(self, bench: AmaranthTestbench, port: Any):
        self._bench, self._port = bench, port
        self._payload = Value.cast(port.payload)
        self._sampled = [bench.sample(v) for v in (port.valid, port.ready, self._payload)]
        self._driven: bool | None = None

    def offer(self, valid: bool, payload: int | None) -> None:
        if valid != self._driven:
            self._driven = valid
            self._bench.drive(self._port.valid, valid)
        if payload is not None:
            self._bench.drive(self._payload, payload)

    def accept(self, ready: bool) -> None:
        if ready != self._driven:
            self._driven = ready
            self._bench.drive(self._port.ready, ready)

    def sampled(self) -> tuple[bool, bool, int]:
        valid, ready, payload = (get() for get in self._sampled)
        return bool(valid), bool(ready), payload


class AmaranthTestbench(Testbench):
    """A component under Amaranth's simulator; see `simulate`."""

    def __init__(self, component: Any, context: Any):
        super().__init__()
        self._context = context
        self._component = component
        self._driven: list[tuple[Value, int]] = []
        self._watched: list[Value] = []
        self._values: tuple[int, ...] = ()

    def pins(self, port: str) -> Pins:
        return _Port(self, self._find(port))

    def set(self, name: str, value: int) -> None:
        self.drive(Value.cast(self._find(name)), Const.cast(value).value)

    def drive(self, target: Value, value: int) -> None:
        """Drive an input from the coming cycle on."""
        self._driven.append((target, value))

    def watch(self, name: str) -> Callable[[], int]:
        return self.sample(Value.cast(self._find(name)))

    def sample(self, value: Value) -> Callable[[], int]:
        """A function that returns ``value`` just before the last clock edge."""
        at = len(self._watched)
        self._watched.append(value)
        return lambda: self._values[at]

    async def _clock(self) -> None:
        if self._driven:  # all at once, as the circuit settles anew behind each
            whole = at = 0
            for target, value in self._driven:
                whole |= (value & (1 << len(target)) - 1) << at
                at += len(target)
            self._context.set(Cat(*(target for target, _ in self._driven)), whole)
            self._driven.clear()
        # Samples by tick() are those before the edge; get() afterwards would race through combinational paths.
        _, _, *values = await self._context.tick().sample(*self._watched)
        self._values = tuple(values)

    def _find(self, name: str) -> Any:
        found = self._component
        for part in name.split("__"):
            found = found[int(part)] if part.isdigit() else getattr(found, part)
        return found


class Simulation:
    """A component under Amaranth's simulator, prepared once for many runs: that takes longer than most runs."""

    def __init__(self, component: Any):
        self._component = component
        self._used = False
        self._body: Callable[[Testbench], Awaitable[None]] | None = None
        roof = Module()
        roof.domains += ClockDomain("sync")  # a tree of one leaf has wires only
        roof.submodules.dut = component
        self._simulator = Simulator(Fragment.get(roof, None))
        self._simulator.add_clock(1e-6)
        self._simulator.add_testbench(self._testbench)

    def add_process(self, process: Callable[[Any], Awaitable[None]]) -> None:
        """Run ``process`` beside every bench, from the reset on until the bench ends."""
        self._simulator.add_testbench(process, background=True)

    def run(self, body: Callable[[Testbench], Awaitable[None]]) -> None:
        """Run ``body`` on the freshly reset component. SPLITJOIN_TRACE=1 leaves a VCD file in the current folder."""
        self._body = body
        if self._used:
            self._simulator.reset()
        self._used = True
        if os.environ.get("SPLITJOIN_TRACE"):
            test = os.environ.get("PYTEST_CURRENT_TEST", "bench").split("::")[-1].split(" ")[0]
            with self._simulator.write_vcd(str(Path(f"{test}.vcd"))):
                self._simulator.run()
        else:
            self._simulator.run()

    async def _testbench(self, context: Any) -> None:
        assert self._body is not None
        await self._body(AmaranthTestbench(self._component, context))


def simulate(component: Any, body: Callable[[Testbench], Awaitable[None]]) -> None:
    """Run ``body`` on a freshly reset ``component``, as `Simulation.run` does."""
    Simulation(component).run(body)
