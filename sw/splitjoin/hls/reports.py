"""Reports of a design: its schedule, its resources and its critical path, by cycles and by lines of the source."""

from __future__ import annotations

import html
import json
import linecache
from collections import Counter
from dataclasses import asdict, dataclass

from .bits import BitCost, GraphBits
from .delays import GATE, REGISTERS
from .design import FAMILIES, Design
from .graph import Node

_CSS = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em; max-width: 75em }
table { border-collapse: collapse } td, th { padding: .15em .7em; text-align: right; border-bottom: 1px solid #ddd }
td.text { text-align: left; font-family: monospace; white-space: pre } tr.critical td { background: #fff1d6 }
"""


@dataclass(frozen=True)
class LineReport:
    """The operations of a line. ``first``, ``last``: the cycles in which they are; ``operations``: how many there are
    of each kind. ``critical``: the slowest path between two registers leads through it. ``line``: 0 for what has none.
    """

    file: str
    line: int
    text: str
    first: int
    last: int
    operations: dict[str, int]
    luts: int
    flip_flops: int
    multipliers: int
    block_rams: int
    critical: bool


@dataclass(frozen=True)
class Report:
    """A design as predicted: ``latency`` and ``interval`` in cycles, resources, and ``path_ns``, the time of the
    slowest path between two registers of the part, with these.

    ``luts``: LUT4 on ECP5, two for a cell of a carry chain; LUT6 on UltraScale+. ``block_rams``: of 18 Kbit. ``lines``
    come in the order of the source. ``stated``: operations whose width the source states, and ranges do not prove.
    """

    name: str
    family: str
    clock: float | None
    latency: int
    interval: int
    luts: int
    flip_flops: int
    multipliers: int
    block_rams: int
    path_ns: float
    stated: int
    lines: tuple[LineReport, ...]

    def text(self) -> str:
        """The report as a table in plain text."""
        rows = [("line", "cycles", "LUT", "FF", "DSP", "RAM", ""), *(
            (str(r.line or ""), _cycles(r), str(r.luts), str(r.flip_flops), str(r.multipliers), str(r.block_rams),
             f"{'>' if r.critical else ' '} {r.text}") for r in self.lines)]
        widths = [max(len(row[n]) for row in rows) for n in range(6)]
        table = ["  ".join([*(cell.rjust(w) for cell, w in zip(row, widths, strict=False)), row[6]]).rstrip()
                 for row in rows]
        return "\n".join([self._heading(), *table]) + "\n"

    def json(self) -> str:
        """The report as JSON."""
        return json.dumps(asdict(self), indent=1)

    def html(self) -> str:
        """The report as a page of its own."""
        cells = "".join(
            f"<tr{' class=critical' if r.critical else ''}><td>{r.line or ''}<td>{_cycles(r)}<td>{r.luts}"
            f"<td>{r.flip_flops}<td>{r.multipliers}<td>{r.block_rams}<td class=text>{html.escape(r.text)}</tr>\n"
            for r in self.lines)
        name = html.escape(self.name)
        return (f"<!doctype html><html lang=en><meta charset=utf-8><title>{name}</title><style>{_CSS}</style>"
                f"<h1>{name}</h1><p>{html.escape(self._heading())}\n<table><tr><th>line<th>cycles<th>LUT<th>FF<th>DSP"
                f"<th>RAM<th>source</tr>\n{cells}</table></html>\n")

    def _heading(self) -> str:
        clock = "any clock" if self.clock is None else f"{self.clock:g} MHz"
        stated = f", {self.stated} widths stated and not proved" if self.stated else ""
        return (f"{self.name} for {self.family} at {clock}: latency {self.latency}, interval {self.interval}; "
                f"{self.luts} LUT, {self.flip_flops} FF, {self.multipliers} DSP, {self.block_rams} RAM, slowest path "
                f"{self.path_ns:.1f} ns{stated}")


def _cycles(r: LineReport) -> str:
    return str(r.first) if r.first == r.last else f"{r.first}-{r.last}"


def report_of(design: Design) -> Report:
    """The report of ``design``."""
    pipeline, kernel = design.pipeline, design.kernel
    graph, inputs = pipeline.graph, FAMILIES[design.family]
    bits = GraphBits(graph, inputs, pipeline.interval, wide=True)
    for cycle in pipeline.cycles:
        bits.place(cycle)
    slots = graph.outputs[:len(kernel.slots)]
    last = [n for n in (*kernel.results, kernel.present) if n is not None]
    reads = {n.name: at for at, n in enumerate(graph.nodes) if n.kind == "input" and n.side == "r"}
    states = [(n, reads.get(slot.name)) for n, slot in zip(slots, kernel.slots, strict=True)]
    writes = [(n, pipeline.cycles[n]) for n in kernel.writes.values()]
    *parts, rest = bits.parts([*((n, pipeline.ahead) for n in last), *writes], states)
    costs = [_resources(part, design.family) for part in parts]
    _share(pipeline.shared(), graph.nodes, costs, inputs)
    critical = _path(design, bits)
    groups: dict[tuple[str, int], list[int]] = {}
    for n in range(len(graph.nodes)):
        groups.setdefault(graph.places[n] or ("", 0), []).append(n)
    lines = []
    for (file, line), some in sorted(groups.items()):
        counted = [n for n in some if graph.nodes[n].kind not in ("constant", "input")] or some
        luts, ffs, dsps, rams = (sum(costs[n][i] for n in some) for i in range(4))
        kinds = Counter(graph.nodes[n].kind for n in some if graph.nodes[n].kind not in ("constant", "input"))
        text = linecache.getline(file, line).rstrip() if line else "operands and state"
        if kinds or ffs:
            lines.append(LineReport(file, line, text,
                                    min(pipeline.cycles[n] for n in counted), max(pipeline.cycles[n] for n in counted),
                                    dict(kinds), luts, ffs, dsps, rams, any(n in critical for n in some)))
    # The state, a bit for each transfer on its way, and the control of streams and turns.
    turns = (pipeline.interval - 1).bit_length()
    # A memory is cleared row by row.
    written = [memory for memory in kernel.memories if memory.written]
    rows = max((1 + memory.address_bits for memory in written), default=0)
    cleared = rows + sum(memory.address_bits + memory.width.bits + 1 for memory in written)
    control = _resources(rest, design.family)[0] + 2 + 2 * turns + cleared, (
        sum(s.width.bits for s in kernel.slots) + rows + turns - (-pipeline.ahead // pipeline.interval))
    lines.append(LineReport("", 0, "state and control", 0, pipeline.ahead, {}, *control, 0, 0, False))
    path = max((bits.time(n) for n in range(len(graph.nodes))), default=0.0) + REGISTERS
    return Report(kernel.name, design.family, design.clock, pipeline.ahead, pipeline.interval,
                  sum(r.luts for r in lines), sum(r.flip_flops for r in lines), sum(r.multipliers for r in lines),
                  sum(r.block_rams for r in lines), path, kernel.stated, tuple(lines))


def _resources(cost: BitCost, family: str) -> list[int]:
    """LUTs, those of carry chains included, flip-flops, multipliers and blocks of RAM."""
    chains = sum(2 * -(-n // 2) if family == "ecp5" else n for n in cost.chains)
    return [cost.luts + chains, cost.flip_flops, cost.multipliers, cost.blocks]


def _share(units: dict[int, list[int]], nodes: tuple[Node, ...], costs: list[list[int]], inputs: int) -> None:
    """Count each multiplier that several multiplications share once, and the multiplexers of its operands."""
    for some in units.values():
        for n in some[1:]:
            costs[n][2] = 0
        for n in some:
            width = sum(nodes[a].width for a in nodes[n].args)
            costs[n][0] += width * (len(some) - 1) // (len(some) * (2 if inputs == 4 else 4) // 2)


def _path(design: Design, bits: GraphBits) -> set[int]:
    """The operations on the slowest path between two registers."""
    graph, cycles = design.pipeline.graph, design.pipeline.cycles
    at = max(range(len(graph.nodes)), key=bits.time, default=None)
    found = set[int]()
    while at is not None:
        found.add(at)
        before = [a for a in graph.nodes[at].args if cycles[a] == cycles[at] and bits.time(a) > GATE / 2]
        at = max(before, key=bits.time, default=None)
    return found
