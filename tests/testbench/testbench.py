"""Sources, sinks and the clock of a bench, the same for every simulator.

All ports run in lockstep: every agent drives its signals, they settle, all signals are sampled, and the clock edge
follows. So no agent can see part of a cycle, however the simulator schedules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from .contract import Contract
from .pauses import Pauses, flowing


class Agent(Protocol):
    """A part of a bench that drives and samples signals in every cycle."""

    def drive(self) -> None:
        """Set this agent's signals for the coming cycle."""

    def observe(self, cycle: int) -> None:
        """Process the signals sampled in ``cycle``."""


class Pins(Protocol):
    """The signals of one stream port."""

    def offer(self, valid: bool, payload: int | None) -> None:
        """Drive ``valid``, and ``payload`` unless it is None."""

    def accept(self, ready: bool) -> None:
        """Drive ``ready``."""

    def sampled(self) -> tuple[bool, bool, int]:
        """``valid``, ``ready`` and ``payload`` just before the last clock edge."""


class StreamMonitor:
    """Checks the stream contract on one port in every cycle. Sources and sinks are monitors of their ports."""

    def __init__(self, port: str, pins: Pins):
        self.port = port
        self.pins = pins
        self._contract = Contract(port)

    def drive(self) -> None:
        """Set this agent's signals for the coming cycle."""

    def observe(self, cycle: int) -> None:
        """Look at the signals sampled in ``cycle``."""
        valid, ready, payload = self.pins.sampled()
        self._contract.check(cycle, valid, ready, payload)
        if valid and ready:
            self.moved(cycle, payload)

    def moved(self, cycle: int, payload: int) -> None:
        """Called when ``payload`` is transferred in ``cycle``."""


class StreamSource(StreamMonitor):
    """Offers queued items, except in pauses; keeps an offer until it is accepted. ``cycles``: that of each transfer."""

    def __init__(self, port: str, pins: Pins, items: Iterable[int] = (), pauses: Pauses | None = None):
        super().__init__(port, pins)
        self.queue = deque(items)
        self.pauses = flowing() if pauses is None else pauses
        self.cycles: list[int] = []
        self._offering = False

    def drive(self) -> None:
        pause = next(self.pauses)
        if not self._offering and self.queue and not pause:
            self._offering = True
            self.pins.offer(True, self.queue[0])
        elif not self._offering:
            self.pins.offer(False, None)

    def moved(self, cycle: int, payload: int) -> None:
        self.queue.popleft()
        self.cycles.append(cycle)
        self._offering = False

    def __str__(self) -> str:
        return f"{self.port} has {len(self.queue)} items to send"


class StreamSink(StreamMonitor):
    """Accepts items, except in pauses. ``items`` and ``cycles``: the items received, and the cycle of each."""

    def __init__(self, port: str, pins: Pins, pauses: Pauses | None = None):
        super().__init__(port, pins)
        self.pauses = flowing() if pauses is None else pauses
        self.items: list[int] = []
        self.cycles: list[int] = []

    def drive(self) -> None:
        self.pins.accept(not next(self.pauses))

    def moved(self, cycle: int, payload: int) -> None:
        self.items.append(payload)
        self.cycles.append(cycle)

    def __str__(self) -> str:
        return f"{self.port} took {len(self.items)} items"


class Testbench(ABC):
    """One circuit under test. A subclass connects it to a simulator.

    Port names are as in Verilog: ``o__1`` is the second stream of the array ``o``.
    """

    __test__ = False  # not a test class for pytest, despite its name

    def __init__(self) -> None:
        self.cycle = 0
        self._agents: list[Agent] = []

    @abstractmethod
    def pins(self, port: str) -> Pins:
        """The signals of stream ``port``."""

    @abstractmethod
    def set(self, name: str, value: int) -> None:
        """Drive an input from the coming cycle on."""

    @abstractmethod
    def watch(self, name: str) -> Callable[[], int]:
        """A function that returns the value of an output just before the last clock edge."""

    @abstractmethod
    async def _clock(self) -> None:
        """Let all signals settle, sample them, then give one clock edge."""

    def source(self, port: str, items: Iterable[int] = (), pauses: Pauses | None = None) -> StreamSource:
        """A source on ``port``."""
        agent = StreamSource(port, self.pins(port), items, pauses)
        self._agents.append(agent)
        return agent

    def sink(self, port: str, pauses: Pauses | None = None) -> StreamSink:
        """A sink on ``port``."""
        agent = StreamSink(port, self.pins(port), pauses)
        self._agents.append(agent)
        return agent

    def attach(self, agent: Agent) -> None:
        """Add ``agent``, to be called after those added before."""
        self._agents.append(agent)

    async def step(self) -> None:
        """One clock cycle."""
        for agent in self._agents:
            agent.drive()
        await self._clock()
        for agent in self._agents:
            agent.observe(self.cycle)
        self.cycle += 1

    async def run(self, done: Callable[[], object], *, limit: int) -> None:
        """Clock until ``done()`` is true. After ``limit`` cycles raises `AssertionError` with how far each port is."""
        for _ in range(limit):
            if done():
                return
            await self.step()
        state = "; ".join(str(agent) for agent in self._agents if isinstance(agent, StreamMonitor))
        assert done(), f"no end after {limit} cycles (at cycle {self.cycle}): {state}"

    async def steps(self, cycles: int) -> None:
        """Clock for ``cycles`` cycles, for example to see that nothing more comes."""
        for _ in range(cycles):
            await self.step()
