"""Reader of the RTLIL that Amaranth writes: modules of wires, cells, processes and memories.

Source of the format: Yosys Manual, appendix "RTLIL text representation". Only what `amaranth.back.rtlil` emits is read.
Amaranth has signals of no bits, which Verilog has not: what is assigned to them is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_TOKEN = re.compile(r'\\\S+|\$\S+|\d+\'[01xzm-]+|"(?:[^"\\]|\\.)*"|[\[\]{}:,]|-?\d+|\w+')


class Chunk(NamedTuple):  # there are many, and a dataclass takes several times as long to make
    """``width`` bits of a wire from bit ``low`` on, or constant bits (``wire`` None; ``bits`` high to low)."""

    wire: str | None
    low: int
    width: int
    bits: str = ""


#: A value: chunks, least significant first.
Signal = tuple[Chunk, ...]


@dataclass
class Wire:
    """A wire: ``port`` is "input", "output" or None; ``init`` the power-up value of a register, high bit first."""

    name: str
    width: int
    port: str | None = None
    init: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass
class Memory:
    """A memory of ``size`` rows of ``width`` bits."""

    name: str
    width: int
    size: int
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass
class Cell:
    """An operator, a register, a port of a memory, or an instance of a module."""

    kind: str
    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    ports: dict[str, Signal] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)

    def number(self, parameter: str) -> int:
        """An integer parameter."""
        text = self.parameters[parameter]
        return int(text.partition("'")[2], 2) if "'" in text else int(text)


@dataclass
class Assign:
    """``target`` gets ``value``; a later statement overrides it."""

    target: Signal
    value: Signal


@dataclass
class SwitchCase:
    """A case: its body applies if one of ``patterns`` matches (bits high to low, ``-`` for any), or none are given."""

    patterns: tuple[str, ...]
    body: list[Statement] = field(default_factory=list)


@dataclass
class Switch:
    """The first case that matches ``select`` happens."""

    select: Signal
    cases: list[SwitchCase] = field(default_factory=list)


Statement = Assign | Switch


@dataclass
class RtlilModule:
    """One module of a design."""

    name: str
    wires: dict[str, Wire] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    processes: list[list[Statement]] = field(default_factory=list)
    connections: list[tuple[Signal, Signal]] = field(default_factory=list)


def constant(value: int, width: int) -> Signal:
    """``value`` in ``width`` bits."""
    return (Chunk(None, 0, width, f"{value & (1 << width) - 1:0{width}b}"),) if width else ()


def width_of(signal: Signal) -> int:
    """Bits of ``signal``."""
    return sum(chunk.width for chunk in signal)


def merged(chunks: list[Chunk]) -> Signal:
    """The chunks with neighbours of one wire, and neighbouring constants, in one."""
    if len(chunks) == 1:  # as most are
        return tuple(chunks) if chunks[0].width else ()
    out: list[Chunk] = []
    for chunk in chunks:
        if not chunk.width:
            continue
        last = out[-1] if out else None
        if last is not None and last.wire == chunk.wire and (chunk.wire is None or last.low + last.width == chunk.low):
            out[-1] = Chunk(last.wire, last.low, last.width + chunk.width, chunk.bits + last.bits)
        else:
            out.append(chunk)
    return tuple(out)


def sliced(signal: Signal, low: int, width: int) -> Signal:
    """``width`` bits of ``signal`` from bit ``low`` on."""
    if low == 0 and width == width_of(signal):
        return signal
    out, at = [], 0
    for chunk in signal:
        first, end = max(low, at), min(low + width, at + chunk.width)
        if first < end:
            off, size = first - at, end - first
            bits = chunk.bits[len(chunk.bits) - off - size:len(chunk.bits) - off] if chunk.wire is None else ""
            out.append(Chunk(chunk.wire, chunk.low + off if chunk.wire is not None else 0, size, bits))
        at += chunk.width
    return merged(out)


def resized(signal: Signal, width: int, signed: bool = False) -> Signal:
    """``signal`` cut, or extended by zeros or, if ``signed``, by copies of its highest bit."""
    have = width_of(signal)
    if have >= width:
        return sliced(signal, 0, width)
    fill = sliced(signal, have - 1, 1) * (width - have) if signed and have else constant(0, width - have)
    return merged([*signal, *fill])


def assignments(body: list[Statement]) -> Iterator[Assign]:
    """The assignments of ``body``, those in its cases too."""
    for statement in body:
        if isinstance(statement, Assign):
            yield statement
        else:
            for case in statement.cases:
                yield from assignments(case.body)


def read_rtlil(text: str) -> list[RtlilModule]:
    """The modules of RTLIL ``text``, in its order."""
    lines = (line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#"))
    modules = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "module":
            modules.append(_module(rest.strip(), lines))
        elif word not in ("attribute", "autoidx"):
            raise ValueError(f"RTLIL must have modules at its top level, not {line[:80]!r}")
    return modules


def _module(name: str, lines: Iterator[str]) -> RtlilModule:
    module = RtlilModule(name)
    pending: dict[str, str] = {}
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "end":
            return module
        if word == "attribute":
            key, _, value = rest.partition(" ")
            pending[key.lstrip("\\")] = value.strip()
            continue
        attributes, pending = pending, {}
        if word == "wire":
            _wire(module, rest.split(), attributes)
        elif word == "memory":
            words = rest.split()
            found = Memory(words[-1], int(words[words.index("width") + 1]), int(words[words.index("size") + 1]),
                           attributes)
            module.memories[found.name] = found
        elif word == "cell":
            kind, _, instance = rest.partition(" ")
            module.cells.append(_cell(module, Cell(kind, instance.strip(), attributes=attributes), lines))
        elif word == "process":
            module.processes.append(_body(module, lines)[0])
        elif word == "connect":
            reader = _RtlilReader(module, rest)
            left, right = reader.signal(), reader.signal()
            module.connections += [(left, right)] if left else []
        elif word != "parameter":
            raise ValueError(f"a module must consist of wires, memories, cells, processes and connections, not of "
                             f"{line[:80]!r}")
    raise ValueError(f"module {name} has no end")


def _wire(module: RtlilModule, words: list[str], attributes: dict[str, str]) -> None:
    wire = Wire(words[-1], 1)
    for n, word in enumerate(words[:-1]):
        if word == "width":
            wire.width = int(words[n + 1])
        elif word in ("input", "output", "inout"):
            wire.port = word
    if wire.port == "inout":
        raise ValueError(f"a port must be an input or an output, but {wire.name} is both")
    init = attributes.pop("init", None)
    if init is not None:
        wire.init = init.partition("'")[2] if "'" in init else f"{int(init):0{wire.width}b}"
    wire.attributes = attributes
    module.wires[wire.name] = wire


def _cell(module: RtlilModule, cell: Cell, lines: Iterator[str]) -> Cell:
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "end":
            return cell
        name, _, value = rest.removeprefix("signed ").partition(" ")
        if word == "parameter":
            cell.parameters[name.lstrip("\\")] = value.strip()
        elif word == "connect":
            cell.ports[name.lstrip("\\")] = _RtlilReader(module, value).signal()
    raise ValueError(f"cell {cell.name} has no end")


def _body(module: RtlilModule, lines: Iterator[str]) -> tuple[list[Statement], str]:
    """The statements up to the line that ends them, and that line."""
    body: list[Statement] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word in ("end", "case"):
            return body, line
        if word == "assign":
            reader = _RtlilReader(module, rest)
            assign = Assign(reader.signal(), reader.signal())
            body += [assign] if assign.target else []
        elif word == "switch":
            switch = Switch(_RtlilReader(module, rest).signal())
            line = next(lines)
            while line.partition(" ")[0] == "case":
                case = SwitchCase(tuple(part.strip().partition("'")[2] for part in line[4:].split(",") if part.strip()))
                switch.cases.append(case)
                case.body, line = _body(module, lines)
            body.append(switch)
        elif word != "attribute":
            raise ValueError(f"a process must consist of assignments and switches, not of {line[:80]!r}")
    raise ValueError("a process has no end")


class _RtlilReader:
    """Reads values out of one line."""

    def __init__(self, module: RtlilModule, text: str):
        self._module = module
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def signal(self) -> Signal:
        """The next value of the line."""
        token = self._next()
        if token == "{":
            parts = []
            while self._tokens[self._at] != "}":
                parts.append(self.signal())
            self._at += 1
            found = merged([chunk for part in reversed(parts) for chunk in part])
        elif token[0] in "\\$":
            found = merged([Chunk(token, 0, self._module.wires[token].width)])
        elif "'" in token:
            bits = token.partition("'")[2].replace("-", "x")
            found = (Chunk(None, 0, len(bits), bits),)
        else:
            found = constant(int(token), 32)
        while self._at < len(self._tokens) and self._tokens[self._at] == "[":
            high = int(self._tokens[self._at + 1])
            low = int(self._tokens[self._at + 3]) if self._tokens[self._at + 2] == ":" else high
            self._at += 5 if low != high or self._tokens[self._at + 2] == ":" else 3
            found = sliced(found, low, high - low + 1)
        return found

    def _next(self) -> str:
        self._at += 1
        token: str = self._tokens[self._at - 1]
        return token
