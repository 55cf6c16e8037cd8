"""The pictures of all architectures' topologies, docs/pictures/topologies.svg, and of one query's circuit,
docs/pictures/block-diagram.svg. Run: python -m bench.topologies
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa

from bench.charts import COLOURS, INK, PICTURES, plt, save
from splitjoin import explain, query
from splitjoin.base.svg import themed

_R, _S, _CORE, _NODE, _ARROW = COLOURS[0], COLOURS[3], "#e8f5e9", "#fff8e1", COLOURS[6]
Point = tuple[float, float]


def box(axes: Any, at: Point, text: str = "", colour: str = _CORE, width: float = 1.1, height: float = 0.8) -> None:
    """A box with its middle ``at``."""
    axes.add_patch(plt.Rectangle((at[0] - width / 2, at[1] - height / 2), width, height, facecolor=colour,
                                 edgecolor=_ARROW, zorder=2))
    axes.text(*at, text, ha="center", va="center", fontsize=8, zorder=3, color="#102027")


def arrow(axes: Any, begin: Point, end: Point, colour: str = _ARROW, bend: float = 0.0) -> None:
    """An arrow, bent to one side."""
    axes.annotate("", end, begin, zorder=1, arrowprops={
        "arrowstyle": "->", "color": colour, "lw": 1.2, "connectionstyle": f"arc3,rad={bend}", "shrinkA": 1,
        "shrinkB": 1})


def label(axes: Any, at: Point, text: str, colour: str = INK) -> None:
    """A text with its middle ``at``."""
    axes.text(*at, text, ha="center", va="center", fontsize=8, color=colour)


def _cores(axes: Any, y: float, text: str = "core {}") -> list[Point]:
    points = [(1.0 + 1.6 * n, y) for n in range(4)]
    for n, at in enumerate(points):
        box(axes, at, text.format(n))
    return points


def _tree(axes: Any, cores: list[Point], root: Point, *, up: bool) -> None:
    """Nodes of two between ``root`` and the cores; ``up``: from the cores to the root."""
    side = -0.4 if up else 0.4
    for pair in (cores[:2], cores[2:]):
        node = (sum(x for x, _ in pair) / 2, (pair[0][1] + root[1]) / 2)
        box(axes, node, "", _NODE, 0.5, 0.3)
        ways = [(root, node), *((node, (x, y + side)) for x, y in pair)]
        for begin, end in ways:
            arrow(axes, *((end, begin) if up else (begin, end)))
    box(axes, root, "", _NODE, 0.5, 0.3)


def splitjoin(axes: Any) -> None:
    """A tree to the cores, and a tree of mergers behind them."""
    cores = _cores(axes, 2.5)
    _tree(axes, cores, (3.4, 4.4), up=False)
    _tree(axes, cores, (3.4, 0.7), up=True)
    arrow(axes, (3.4, 5.1), (3.4, 4.6))
    label(axes, (4.3, 4.9), "R and S")
    arrow(axes, (3.4, 0.5), (3.4, -0.1))


def gated(axes: Any) -> None:
    """Sources, and a gate ahead of SplitJoin's circuit."""
    for n in range(4):
        label(axes, (1.0 + 1.6 * n, 5.0), f"source {n}")
        arrow(axes, (1.0 + 1.6 * n, 4.8), (2.2 + 0.8 * n, 4.0))
    box(axes, (3.4, 3.6), "gate: what is ready, by event time", _NODE, 5.0, 0.7)
    arrow(axes, (3.4, 3.2), (3.4, 2.5))
    box(axes, (3.4, 2.0), "SplitJoin: each core reads the same sequence", _CORE, 6.0, 0.9)
    arrow(axes, (3.4, 1.5), (3.4, 0.6))
    label(axes, (3.4, 0.3), "results by max(r.ts, s.ts)")


def chain(axes: Any) -> None:
    """From core to core, records and results."""
    cores = _cores(axes, 2.5)
    for (x, y), (later, _) in pairwise(cores):
        arrow(axes, (x, y + 0.9), (later, y + 0.9))
        arrow(axes, (x, y - 0.9), (later, y - 0.9))
    for x, y in cores:
        arrow(axes, (x, y + 0.9), (x, y + 0.4))
        arrow(axes, (x, y - 0.4), (x, y - 0.9))
    arrow(axes, (0.0, 3.4), (1.0, 3.4))
    label(axes, (0.4, 3.8), "R and S")
    arrow(axes, (5.8, 1.6), (6.9, 1.6))
    label(axes, (6.3, 1.2), "results")


def kang(axes: Any) -> None:
    """One core: compare, store, remove."""
    box(axes, (1.8, 3.4), "window of S", width=2.2)
    box(axes, (5.0, 3.4), "window of R", width=2.2)
    for x, colour, name, probes in ((1.0, _R, "tuple of R", 1.8), (5.8, _S, "tuple of S", 5.0)):
        label(axes, (x, 5.0), name, colour)
        arrow(axes, (x, 4.8), (probes, 3.8), colour)
        arrow(axes, (x, 4.8), (6.8 - probes, 3.8), colour, 0.1)
    for n, text in enumerate(("1 compared with the other window", "2 stored in its own", "3 what is too old leaves")):
        label(axes, (3.4, 2.2 - 0.6 * n), text)


def celljoin(axes: Any) -> None:
    """A probe to all segments at once; tuples move to older ones."""
    cores = _cores(axes, 2.2, "part {}")
    for at in cores:
        arrow(axes, (3.4, 4.4), (at[0], 2.6), _R)
    label(axes, (3.4, 4.7), "a probe, when all parts are equal", _R)
    for (x, y), (later, _) in pairwise(cores):
        arrow(axes, (later - 0.55, y), (x + 0.55, y), _S)
    arrow(axes, (6.9, 2.2), (6.35, 2.2), _S)
    arrow(axes, (0.45, 2.2), (-0.1, 2.2), _S)
    label(axes, (0.8, 1.3), "oldest", _S)
    label(axes, (5.9, 1.3), "youngest", _S)


def handshake(axes: Any) -> None:
    """R from the left, S from the right."""
    _passing(axes, _cores(axes, 2.5))
    label(axes, (3.4, 4.6), "a tuple moves on when the next core has fewer")


def low_latency(axes: Any) -> None:
    """Tuples run through, and stay in one core."""
    _passing(axes, _cores(axes, 2.5))
    arrow(axes, (0.0, 3.6), (6.9, 3.6), _R, -0.1)
    arrow(axes, (6.9, 1.4), (0.0, 1.4), _S, -0.1)
    label(axes, (3.4, 4.6), "a tuple runs through all cores, and one stores it")


def cascade(axes: Any) -> None:
    """Handshake join with blocks."""
    cores = _cores(axes, 2.5)
    _passing(axes, cores)
    label(axes, (3.4, 4.6), "blocks of ς tuples, when the next core has fewer by a threshold")
    for (x, _), (later, _) in pairwise(cores):
        label(axes, ((x + later) / 2, 3.4), "ς", _R)
        label(axes, ((x + later) / 2, 1.5), "ς", _S)


def _passing(axes: Any, cores: list[Point]) -> None:
    ends = [(-0.6, 2.5), *cores, (7.4, 2.5)]
    for (x, y), (later, _) in pairwise(ends):
        arrow(axes, (x + 0.55, y + 0.25), (later - 0.55, y + 0.25), _R)
        arrow(axes, (later - 0.55, y - 0.25), (x + 0.55, y - 0.25), _S)
    label(axes, (0.1, 3.1), "R", _R)
    label(axes, (6.7, 1.9), "S", _S)


PANELS: dict[str, Callable[[Any], None]] = {
    "SplitJoin": splitjoin, "with a gate (ScaleJoin)": gated, "SplitJoin's cores on a chain": chain,
    "Kang's three steps": kang, "CellJoin": celljoin, "handshake join": handshake,
    "low-latency handshake join": low_latency, "the cascade of ESJ": cascade}


def main() -> None:
    """Write the pictures."""
    figure, grid = plt.subplots(4, 2, figsize=(10, 12), layout="constrained")
    for axes, (title, draw) in zip(grid.flat, PANELS.items(), strict=True):
        axes.set(title=title, xlim=(-0.8, 7.6), ylim=(-0.3, 5.4))
        axes.set_axis_off()
        draw(axes)
    print(save(figure, "topologies"))
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int32())])
    band = query(schema, schema, on="abs(r.x - s.x) <= 10", window="RANGE 1000", time="ts")
    drawing = PICTURES / "block-diagram.svg"
    drawing.write_text(themed(explain(band, cores=8, capacity=64, lanes=4, probes=2).svg()) + "\n",
                       encoding="utf-8")
    print(drawing)


if __name__ == "__main__":
    main()
