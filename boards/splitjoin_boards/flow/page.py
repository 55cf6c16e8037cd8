"""The report of a bitstream as a page, with a picture of where each component was placed."""

from __future__ import annotations

import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from .report import BuildReport, component

#: Column and row in the name of a bel: ``X12/Y34/SLICEA.LUT0``, ``X12Y34/LUT4``.
_BEL = re.compile(r"X(\d+)/?Y(\d+)/")
_CORE = re.compile(r"(?:^|\.)(core\d+)\.(left|right)\b")
#: Parts of the circuit that have a name of their own in the picture, by the beginning of their cells' names.
_PARTS = (("linked.endpoint", "link"), ("linked.receiver", "link"), ("linked.transmitter", "link"),
          ("linked.join.registers", "registers"), ("linked.join", "trees and counters"))
_STYLE = """body { font: 15px sans-serif; margin: 2em; max-width: 70em } td, th { padding: .1em 1em .1em 0;
text-align: left } td.n { text-align: right } svg { border: 1px solid #888; background: #fff } .legend span {
display: inline-block; margin-right: 1.2em } .legend i { display: inline-block; width: 1em; height: 1em }"""
_PIXELS = 8


def placement(routed: Path, top: str) -> dict[str, tuple[int, int]]:
    """Cell → column and row, from the JSON file that nextpnr wrote of the placed design."""
    found = {}
    for name, cell in json.loads(routed.read_text())["modules"][top]["cells"].items():
        if at := _BEL.match(str(cell["attributes"].get("NEXTPNR_BEL", ""))):
            found[name] = int(at[1]), int(at[2])
    return found


def group(cell: str) -> str:
    """The part of the circuit that ``cell`` belongs to: ``core0 left``, ``link``, …, ``rest``."""
    if core := _CORE.search(cell):
        return f"{core[1]} {core[2]}"
    return next((name for start, name in _PARTS if cell.startswith(start)), "rest")


def _color(name: str) -> str:
    """Cores have hues far apart, the two regions of a core a lighter and a darker one; all else is grey."""
    if core := re.match(r"core(\d+) (left|right)", name):
        return f"hsl({int(core[1]) * 137 % 360}, 75%, {65 if core[2] == 'left' else 40}%)"
    return {"link": "#333", "registers": "#777", "trees and counters": "#aaa"}.get(name, "#ddd")


def floorplan_svg(cells: dict[str, tuple[int, int]]) -> str:
    """A picture of the FPGA, a square for each tile in use in the color of the part that has most cells in it."""
    tiles: defaultdict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for name, at in cells.items():
        tiles[at][group(name)] += 1
    wide, high = (_PIXELS * (max((at[n] for at in tiles), default=0) + 1) for n in range(2))
    squares = []
    for (x, y), parts in sorted(tiles.items()):
        name, _ = parts.most_common(1)[0]
        text = ", ".join(f"{part}: {n}" for part, n in sorted(parts.items()))
        squares.append(f'<rect x="{_PIXELS * x}" y="{_PIXELS * y}" width="{_PIXELS}" height="{_PIXELS}" '
                       f'fill="{_color(name)}"><title>{html.escape(f"column {x}, row {y}: {text}")}</title></rect>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{min(wide, 1100)}">\n'
            + "\n".join(squares) + "\n</svg>\n")


def page(report: BuildReport, cells: dict[str, tuple[int, int]]) -> str:
    """The report with the picture as one HTML file, which needs no other."""
    counts = Counter(group(name) for name in cells)
    legend = "".join(f'<span><i style="background: {_color(name)}"></i> {html.escape(name)} ({n:,} cells)</span>'
                     for name, n in sorted(counts.items()))
    used = [(kind, f"{n:,}", f"{of:,}", f"{n / of:.0%}") for kind, (n, of) in report.used.items()]
    clocks = [(name, f"{reached:.1f}", f"{demanded:.1f}") for name, (reached, demanded) in report.mhz.items()]
    path = [(f"{step.ns:.2f}", step.kind, component(step.cell)) for step in report.path]
    tools = [(tool, f"{seconds:.1f}") for tool, seconds in report.seconds.items()]
    predicted = "" if report.prediction is None else f"<p>{html.escape(str(report.prediction))}</p>\n"
    title = html.escape(f"Bitstream for {report.board}")
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
            f"<style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n{predicted}"
            f"{_table('Resources', ('resource', 'used', 'available', 'share'), used)}"
            f"{_table('Clocks', ('net', 'MHz reached', 'MHz demanded'), clocks)}"
            f'<h2>Floorplan</h2>\n<p class="legend">{legend}</p>\n{floorplan_svg(cells)}'
            f"{_table('Critical path', ('ns', 'kind', 'to'), path)}"
            f"{_table('Tools', ('tool', 'seconds'), tools)}</body></html>\n")


def _table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    cells = ["".join(f"<th>{html.escape(name)}</th>" for name in head)]
    cells += ["".join(f'<td class="{"n" if text[:1].isdigit() else ""}">{html.escape(text)}</td>' for text in row)
              for row in rows]
    body = "\n".join(f"<tr>{row}</tr>" for row in cells)
    return f"<h2>{html.escape(title)}</h2>\n<table>\n{body}\n</table>\n"
