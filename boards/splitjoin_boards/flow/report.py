"""The report of a bitstream: resources, clocks, critical path and predicted rate, as text and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

#: The part of a mapped cell's name that Yosys appends to the name of a signal: a type of cell, and ports.
_MAPPED = re.compile(r"_(?=(?:SB|LUT|TRELLIS|CCU|PFUMX|L6MUX|DFF|ALU|MUX2|DP16|SDPX9|SDPB|RAM|MULT|\$)[A-Z0-9_]*)")


@dataclass(frozen=True)
class PathStep:
    """A step of the critical path: what takes ``ns`` (clk-to-q, routing, logic, setup), and the cell it leads to."""

    kind: str
    ns: float
    cell: str


@dataclass(frozen=True)
class Prediction:
    """Predicted tuples a second, both streams together: what the circuit takes at its clock, and what the link carries
    at its rate. ``items``: the results and stars a tuple that are assumed.
    """

    circuit: float
    link: float
    items: float

    @property
    def rate(self) -> float:
        """The lower one of the two."""
        return min(self.circuit, self.link)

    def __str__(self) -> str:
        least = "the link" if self.link <= self.circuit else "the circuit"
        return (f"{self.rate:,.0f} tuples/s predicted: circuit {self.circuit:,.0f}, link {self.link:,.0f} at "
                f"{self.items:.3g} items a tuple; {least} decides")


@dataclass(frozen=True)
class BuildReport:
    """Figures of a board's bitstream.

    Attributes:
        board: Its name.
        used: Resource as nextpnr names it → (used, available), only those in use.
        mhz: Clock net → (reached, demanded), in MHz; nextpnr fails if the demanded clock is not reached.
        path: The critical path of the slowest clock.
        seconds: Tool → wall clock, at the time when it ran (a cached bitstream keeps its figures).
        prediction: The predicted rate, or None for a circuit that is no join.
    """

    board: str
    used: dict[str, tuple[int, int]]
    mhz: dict[str, tuple[float, float]]
    path: list[PathStep] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    prediction: Prediction | None = None

    def __str__(self) -> str:
        """The report as text, a line for each figure."""
        lines = [f"board {self.board}"]
        lines += [f"  {kind}: {used} of {available} ({used / available:.0%})"
                  for kind, (used, available) in self.used.items()]
        lines += [f"  clock {name}: {reached:.1f} MHz reached, {demanded:.1f} MHz demanded"
                  for name, (reached, demanded) in self.mhz.items()]
        if self.prediction is not None:
            lines.append(f"  {self.prediction}")
        if self.path:
            lines.append(f"  critical path, {sum(step.ns for step in self.path):.2f} ns:")
            lines += [f"    {step.ns:6.2f} {step.kind:8} {component(step.cell)}" for step in self.path]
        tools = ", ".join(f"{tool} {seconds:.1f} s" for tool, seconds in self.seconds.items())
        return "\n".join([*lines, f"  built in {sum(self.seconds.values()):.1f} s: {tools}"])

    def json(self) -> str:
        """The report as JSON."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> BuildReport:
        """Its inverse."""
        found = json.loads(text)
        pairs = {name: {key: tuple(value) for key, value in found[name].items()} for name in ("used", "mhz")}
        given = found["prediction"]
        return cls(found["board"], pairs["used"], pairs["mhz"], [PathStep(**step) for step in found["path"]],
                   found["seconds"], None if given is None else Prediction(**given))


def component(cell: str) -> str:
    """The component and signal in a mapped cell's name: ``linked.join.core0.left.scanner.head``."""
    return _MAPPED.split(cell, maxsplit=1)[0]


def timing(report: dict[str, Any]) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[float, float]], list[PathStep]]:
    """Resources, clocks and critical path in nextpnr's JSON ``report``."""
    used = {kind: (of["used"], of["available"]) for kind, of in report["utilization"].items()
            if of["used"] and of["available"]}  # Gowin's lists kinds of cells that the device has none of
    mhz = {name: (of["achieved"], of["constraint"]) for name, of in report["fmax"].items()}
    inner = [path["path"] for path in report["critical_paths"] if path["from"] == path["to"]]
    longest: list[dict[str, Any]] = max(inner, key=lambda path: sum(step["delay"] for step in path), default=[])
    return used, mhz, [PathStep(step["type"], step["delay"], step["to"]["cell"]) for step in longest]
