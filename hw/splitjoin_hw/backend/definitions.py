"""Definitions of wires: alias, result of an operation, choice, register or read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from .rtlil import Assign, Cell, Signal, Statement


@dataclass
class OperatorResult:
    """The result of an operator; the operands have the widths that Verilog computes with."""

    kind: str
    operands: tuple[Signal, ...]
    signed: bool = False


@dataclass
class Combined:
    """Several values side by side, or one under a second name."""

    value: Signal


@dataclass
class ProcessValue:
    """The value that a combinational process assigns."""

    body: list[Statement]


@dataclass
class FlipFlops:
    """A register: at each rising edge of ``clock``, ``body`` assigns to ``process``, the name of its next value."""

    clock: Signal
    process: str
    body: list[Statement]


@dataclass
class Read:
    """A read port of a memory: at the rising edge of ``clock`` while ``enable`` is high, or at once if None."""

    memory: str
    address: Signal
    clock: Signal | None
    enable: Signal


@dataclass
class Write:
    """A write port of a memory; ``enable`` has a bit for each bit of ``data``."""

    memory: str
    clock: Signal
    address: Signal
    data: Signal
    enable: Signal


@dataclass
class FromInstance:
    """An output of an instance."""

    cell: Cell
    port: str


Definition = OperatorResult | Combined | ProcessValue | FlipFlops | Read | FromInstance


def signals_of(definition: Definition) -> Iterator[Signal]:
    """The values that ``definition`` reads."""
    if isinstance(definition, OperatorResult):
        yield from definition.operands
    elif isinstance(definition, Combined):
        yield definition.value
    elif isinstance(definition, ProcessValue):
        yield from _read_in(definition.body)
    elif isinstance(definition, FlipFlops):
        yield definition.clock
        yield from _read_in(definition.body)
    elif isinstance(definition, Read):
        if definition.clock is not None:
            yield definition.clock
        yield definition.address
        yield definition.enable


def wires_of(definition: Definition) -> list[str]:
    """The wires that ``definition`` reads, in this order."""
    return [chunk.wire for value in signals_of(definition) for chunk in value if chunk.wire is not None]


def postorder(wires: Iterable[str], reads: Callable[[str], list[str]]) -> Iterator[str]:
    """``wires`` and all that they read, each once and behind what it ``reads``, but for what reads itself again.
    Without recursion: logic may be thousands of levels deep.
    """
    opened, closed = set[str](), set[str]()
    for root in wires:
        waiting = [root]
        while waiting:
            wire = waiting[-1]
            if wire not in opened:
                opened.add(wire)
                waiting += [name for name in reversed(reads(wire)) if name not in opened]
                continue
            waiting.pop()
            if wire not in closed:
                closed.add(wire)
                yield wire


def _read_in(body: list[Statement]) -> Iterator[Signal]:
    for statement in body:
        if isinstance(statement, Assign):
            yield statement.value
        else:
            yield statement.select
            for case in statement.cases:
                yield from _read_in(case.body)
