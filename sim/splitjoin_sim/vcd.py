"""Files of waveforms in VCD: their signals, how chosen ones change over time, and the bytes on a UART's pin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

#: A place in a list of signals, and the value that it has from now on; what is not known is 0.
Change = tuple[int, int]
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "fs": 1e-15}
_DECLARATION = re.compile(
    r"\$(?:scope\s+\S+\s+(?P<scope>\S+)|(?P<up>upscope)|timescale\s+(?P<factor>\d+)\s*(?P<unit>\w+)"
    r"|var\s+\S+\s+(?P<bits>\d+)\s+(?P<code>\S+)\s+(?P<name>\S+))\s[^$]*\$end")


@dataclass(frozen=True)
class Signal:
    """A signal of a waveform file: its scopes, its name, and its width in bits."""

    scope: tuple[str, ...]
    name: str
    bits: int

    @property
    def path(self) -> str:
        """Scopes and name, with dots between them."""
        return ".".join((*self.scope, self.name))


class VcdFile:
    """The Value Change Dump (IEEE 1364-2005, section 18) at ``path``. Raises `OSError` or `ValueError` for others.

    Attributes:
        signals: Its signals → their codes in the file.
        tick: Seconds of a unit of its times.
    """

    def __init__(self, path: Path):
        self._path, self.signals, self.tick = path, dict[Signal, bytes](), 1e-9
        head = bytearray()
        with path.open("rb") as lines:
            if not lines.read(1024).lstrip().startswith(b"$"):
                raise ValueError("it begins with no declaration")
            lines.seek(0)
            for line in lines:
                head += line
                if b"$enddefinitions" in line:
                    break
        self._begin = len(head)
        scope = list[str]()
        for found in _DECLARATION.finditer(head.decode()):
            if found["scope"]:
                scope.append(found["scope"])
            elif found["up"]:
                scope.pop()
            elif found["unit"]:
                self.tick = int(found["factor"]) * _UNITS.get(found["unit"], 1e-9)
            else:
                self.signals[Signal(tuple(scope), found["name"], int(found["bits"]))] = found["code"].encode()

    def steps(self, chosen: Sequence[Signal]) -> Iterator[tuple[int, list[Change]]]:
        """The times at which there is something, with the changes of the ``chosen`` signals."""
        places = dict[bytes, list[int]]()
        for at, signal in enumerate(chosen):
            places.setdefault(self.signals[signal], []).append(at)
        time, changes = 0, list[Change]()
        with self._path.open("rb") as lines:
            lines.seek(self._begin)
            for line in lines:
                first = line[:1]
                if first == b"#":
                    yield time, changes
                    time, changes = int(line[1:]), []
                    continue
                if first in (b"b", b"B"):
                    text, _, code = line[1:].strip().partition(b" ")
                elif first in (b"0", b"1", b"x", b"z", b"X", b"Z"):
                    text, code = first, line[1:].strip()
                else:
                    continue
                for at in places.get(code, ()):
                    changes.append((at, 0 if text.strip(b"01") else int(text, 2)))
        yield time, changes


def bit_time(changes: Sequence[tuple[int, int]]) -> float:
    """The time of a bit on a line with these ``changes``, (time, level): the mean of the shortest low pulses."""
    pulses = np.array([after - before for (before, level), (after, _) in pairwise(changes) if not level])
    return float(pulses[pulses < 1.5 * pulses.min()].mean()) if len(pulses) else 0.0


def uart_bytes(changes: Sequence[tuple[int, int]], bit: float) -> Iterator[tuple[int, int]]:
    """The bytes on a line with these ``changes``, (time, level), each with the time of its end. ``bit``: the time of a
    bit. A byte without its stop bit is left out, as the circuit does.
    """
    times, levels = (np.array(column, np.int64) for column in zip((-1, 1), *changes, strict=True))
    free = -1.0
    for start in times[1:][levels[1:] == 0].tolist():
        if start < free:
            continue
        bits = levels[np.searchsorted(times, start + bit * (np.arange(10) + 0.5), side="right") - 1].tolist()
        if bits[0] == 0 and bits[9] == 1:
            free = start + 9.5 * bit
            yield int(free), sum(level << n for n, level in enumerate(bits[1:9]))
