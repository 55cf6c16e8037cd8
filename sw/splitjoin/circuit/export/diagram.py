"""The block diagram of a circuit as SVG: trees, cores and their regions, with kinds, widths, clock and cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from splitjoin.base.errors import plural
from splitjoin.base.svg import Drawing, Point
from splitjoin.plan.text import tree_text

from ..cost.circuit import CircuitCost, PartCost, circuit_cost, family_name
from ..cost.resources import Resources, lut_name
from ..geometry import levels, sequence_depth, split
from ..memory import line_bits
from ..wire import ROW_BITS, Configuration, Record

#: Pixels: the width of all, the place where the network begins, behind its captions, and the height of a line of text.
_WIDTH, _LEFT, _LINE = 760, 300, 17
#: Characters of a line in a box of a region, and pixels of the widest one.
_CHARACTERS = 38
#: The most boxes of a row: of more cores, a box stands for some.
_BOXES = 32
#: Colours are the page's own, but for those of both streams' results, which can be read on white and on black.
_STYLE = """.splitjoin-diagram{font:12px sans-serif;max-width:none}
.splitjoin-diagram text{fill:currentColor}
.splitjoin-diagram .small{font-size:11px}
.splitjoin-diagram .title{font-weight:bold}
.splitjoin-diagram rect,.splitjoin-diagram path{fill:none;stroke:currentColor}
.splitjoin-diagram .core{fill:#3987e5;fill-opacity:.2}
.splitjoin-diagram .r{stroke:#3987e5}
.splitjoin-diagram .s{stroke:#d1741f}"""
#: Block → the beginnings of the names of its parts, in the order in which they are looked for; all others are cores'.
_PARTS = {
    "distribution": ("broadcast", "credit FIFO", "settings", "node", "link of", "ends"),
    "gathering": ("merger", "splitter", "dead mergers", "reports"),
    "output": ("combiner", "queue of results", "rows of results", "items of states", "states that wait", "unit that",
               "queue of operations"),
    "registers": ("registers", "counters", "report of"),
}


def diagram(config: Configuration, family: str = "ecp5", clock: float | None = None) -> str:
    """The block diagram of the circuit for ``config``, an element ``svg`` that needs nothing else: the way of a tuple
    from the link through the network to the cores, that of results to the link, and the parts of a core, each with its
    cells on ``family`` and the widths in bits of the streams between them. ``clock``: the clock in MHz for which
    registers were chosen, if one was.

    Raises `UnsupportedError` for a family without a cost model.
    """
    return _Diagram(config, circuit_cost(config, family), clock).drawn()


class _Diagram(Drawing):
    """A drawing that grows downwards."""

    def __init__(self, config: Configuration, cost: CircuitCost, clock: float | None):
        self._config, self._cost, self._clock = config, cost, clock
        self._of_cores = f"{config.cores} {plural(config.cores, 'core')}"
        self._y = 0.0
        super().__init__()

    def drawn(self) -> str:
        config = self._config
        self._link("link, to the circuit", "records", config.input_record)
        if config.sources > 1:
            self._caption(self._y, [f"gate of {config.sources} sources", "merges them by event time (no cells known)"])
            self.box(self._middle - 60, self._y, 120, 24, "gate")
            self._y += 24
            self._down()
        self._network()
        self._output()
        self._link("link, to the host", f"{config.root_width} items" if config.root_width > 1 else "items",
                   config.output_record)
        self._y += 14
        self._core()
        clock = "datapaths have the registers that any clock needs" if self._clock is None else (
            f"datapaths have registers for {self._clock:g} MHz on ECP5")
        notes = [f"registers and counters: {self._cells('registers')}", f"one clock, clk, in all blocks; {clock}",
                 f"in all on {family_name(self._cost.family)}, as estimated: {self._text(self._cost.total)}"]
        if config.memory != "bram":
            notes.append("windows and index lie in external memory, behind "
                         + ("the AXI4 master m" if config.cores == 1 else "an AXI4 master m of each core"))
        self._caption(self._y, notes)
        self._y += len(notes) * _LINE + 10
        said = f"Block diagram of {config.structure.title} of {self._of_cores}, kind {config.core}"
        return self.svg(_WIDTH, self._y, "splitjoin-diagram", said, _STYLE)

    @property
    def _middle(self) -> float:
        return (_LEFT + _WIDTH) / 2

    # The network from the link to the cores, and back.

    def _link(self, name: str, carried: str, record: Record) -> None:
        self._caption(self._y, [name, f"{carried} of {record.width} bits, in {record.words} "
                                      f"{plural(record.words, 'word')} of 32"])
        self._down()

    def _down(self) -> None:
        self.arrow([(self._middle, self._y), (self._middle, self._y + 44)])
        self._y += 44

    def _network(self) -> None:
        """Draws the distribution, the cores and the gathering."""
        config, flow = self._config, self._config.structure.flow
        groups = _groups(config.cores, config.fanout) if flow == "trees" else [1] * min(config.cores, _BOXES)
        step = (_WIDTH - _LEFT) / len(groups)
        wide = min(90.0, step - 6)
        middles = [_LEFT + step * (n + 0.5) for n in range(len(groups))]
        top, depth = self._y, levels(config.cores, config.fanout)
        high = 24 + 16 * levels(len(groups), config.fanout)
        distribution = {
            "trees": ["distribution tree", f"fan-out {config.fanout}, {depth} {plural(depth, 'level')}"],
            "chain": ["chain of nodes", "each hands records on to the next core"],
            "passing": ["links between cores", "R enters at the left, S at the right"],
            "shifting": ["probes to all cores", "stored tuples move to the next core"]}[flow]
        if config.cores > 1:
            self._caption(top, [*distribution, self._cells("distribution")])
        below = top + max(high, 3 * _LINE + 8 if config.cores > 1 else 0)
        at = [(x, below) for x in middles]
        if flow == "trees":
            self._tree((self._middle, top), at, config.fanout)
        elif flow == "shifting":
            for end in at:
                self.arrow([(self._middle, top), end])
        else:
            self.arrow([(self._middle, top), (self._middle, top + 14), (at[0][0], top + 14), at[0]])
            if flow == "passing":
                self.arrow([(self._middle, top + 14), (at[-1][0], top + 14), at[-1]], "s")
        for (x, size) in zip(middles, groups, strict=True):
            self.box(x - wide / 2, below, wide, 40, f"{size} cores" if size > 1 and wide > 50 else
                      "core" if wide > 30 else "", kind="core")
        for a, b in pairwise(middles):
            if flow in ("chain", "passing"):
                self.arrow([(a + wide / 2, below + 12), (b - wide / 2, below + 12)], "r")
            if flow in ("shifting", "passing"):
                self.arrow([(b - wide / 2, below + 28), (a + wide / 2, below + 28)], "s")
        by = f" by {', '.join(f'T{j}' for j in config.index)}" if config.index else ""
        some = f" ({len(groups)} drawn)" if len(groups) < config.cores else ""
        self._caption(below, [f"{self._of_cores}{some}, kind {config.core}{by}", self._cells("cores")])
        self._y = below + 40
        self._gathering([(x, self._y) for x in middles])

    def _gathering(self, cores: Sequence[Point]) -> None:
        config, top = self._config, self._y
        states, chain = bool(config.folds) and not config.in_order, config.structure.flow == "chain"
        sides = "r" if config.structure.sequential or (states and config.whole_states) else "rs"
        if config.cores > 1:
            width, fan = config.state.width + 1 if states else 2 + 2 * ROW_BITS, 2 if chain else config.fanin
            self._caption(top, ["mergers", f"{len(sides)} {plural(len(sides), 'chain' if chain else 'tree')}, "
                                f"fan-in {fan}, {'states' if states else 'results'} of {width} bits",
                                *(["and results of S's probes"] if states and len(sides) == 2 else []),
                                self._cells("gathering")])
        bottom = top + max(24 + 16 * levels(len(cores), config.fanin), 4 * _LINE + 8 if config.cores > 1 else 0)
        for n, side in enumerate(sides):
            shift = 0 if len(sides) < 2 else 8 * n - 4
            leaves = [(x + shift, y) for x, y in cores]
            root = self._middle + shift, bottom
            if chain and len(leaves) > 1:
                along = top + 14 + 12 * n
                self.arrow([leaves[0], (leaves[0][0], along), (leaves[-1][0] + 14, along), (leaves[-1][0] + 14,
                             bottom - 12 + 6 * n), (root[0], bottom - 12 + 6 * n), root], side)
                for x, y in leaves[1:]:
                    self.arrow([(x, y), (x, along)], side)
            else:
                self._tree(root, leaves, config.fanin, side)
        self._y = bottom

    def _output(self) -> None:
        """Draw the blocks that join the results of both sides."""
        config = self._config
        if config.structure.sequential:
            return
        name = "fold in order" if config.in_order else "items of states" if config.whole_states else "combiner"
        said = f"order of up to {sequence_depth(config)} tuples" if not config.folds else (
            f"state of {config.state.width} bits in {config.beats + 1} {plural(config.beats + 1, 'item')}")
        self._caption(self._y, [name, said, self._cells("output")])
        self.box(self._middle - 70, self._y, 140, 30, name)
        self._y += 30
        self._down()

    def _tree(self, root: Point, leaves: Sequence[Point], fan: int, kind: str = "") -> None:
        """Lines between ``root`` and the ``leaves``, with a node where some of them meet."""
        if len(leaves) == 1:
            self.line([root, leaves[0]], kind)
            return
        node = (leaves[0][0] + leaves[-1][0]) / 2, root[1] + (16 if leaves[0][1] > root[1] else -16)
        self.line([root, node], kind)
        self.box(node[0] - 3, node[1] - 3, 6, 6, kind=kind)
        first = 0
        for size in split(len(leaves), fan):
            self._tree(node, leaves[first:first + size], fan, kind)
            first += size

    # One core.

    def _core(self) -> None:
        """Draws the parts of a core, below the network."""
        config, top = self._config, self._y
        regions = config.structure.datapaths(config)
        others = [(name if part.count == config.cores else f"{name}, {part.count} in all", part.each)
                  for name, part in self._parts("cores") if name[-5:] not in (" of R", " of S")]
        mine = {side: [(name[:-5], part.each) for name, part in self._parts("cores") if name.endswith(f" of {side}")]
                for side in "RS"}
        inputs = max(len(others), 1)
        high = 2 * _LINE + max(len(parts) for parts in mine.values()) * 2 * _LINE
        below = top + _LINE * (inputs + 1) + 14
        full = below + high + 14
        self.box(4, top, _WIDTH - 8, full - top, kind="core")
        self.write(16, top + _LINE, f"one core of {config.capacity} tuples a stream" if config.cores > 1 else
                    f"the core, of {config.capacity} tuples a stream", "title")
        for n, (name, each) in enumerate(others):
            self.write(16, top + _LINE * (n + 2), name)
            self.write(_WIDTH - 16, top + _LINE * (n + 2), self._text(each), "small", "end")
        wide = (_WIDTH - 8 - 12 * 3) / 2 if len(regions) == 2 else _WIDTH - 8 - 24
        for n, side in enumerate(region.upper() for region in regions):
            x = 16 + n * (wide + 12)
            self.box(x, below, wide, high)
            self.write(x + 8, below + _LINE, f"stores {side}, for probes of {'S' if side == 'R' else 'R'}"
                        if len(regions) == 2 else "stores both streams", "title")
            for at, (name, each) in enumerate(mine[side]):
                y = below + _LINE * (2 * at + 2.2)
                said = self._about(name, side.lower())
                self.write(x + 8, y, f"{name}{f': {said}' if said else ''}")
                self.write(x + wide - 8, y + _LINE, self._text(each), "small", "end")
        self._y = full + 10

    def _about(self, part: str, side: str) -> str:
        """The sizes of ``part`` of the region that stores ``side``, in a few words."""
        config = self._config
        stored = config.keys(side).width + config.cells(side).width + config.stored_values(side).width
        pairs = f"{config.lanes} {plural(config.lanes, 'lane')} × {config.probes} {plural(config.probes, 'probe')}"
        return _short({
            "storage": f"{stored} bits a tuple" + (f", time {config.time_bits}" if config.time_bits else ""),
            "segment": f"{stored} bits a tuple", "scanner": pairs, "index": f"{config.buckets} buckets",
            "datapath": f"{config.stages} stages, {tree_text(config.tree)}", "folding": f"{config.state.width} bits",
            "chaser": f"{config.contexts} probes at once", "store unit": f"lines of {line_bits(config) // 8} bytes",
        }.get(part, ""), _CHARACTERS)

    # Parts and their cells.

    def _parts(self, block: str) -> list[tuple[str, PartCost]]:
        return [(name, part) for name, part in self._cost.parts.items() if _block(name) == block]

    def _cells(self, block: str) -> str:
        return self._text(sum((part.total for _, part in self._parts(block)), Resources()))

    def _text(self, cells: Resources) -> str:
        counts = ((cells.lut, lut_name(self._cost.family)), (cells.ff, "FF"), (cells.block_ram, "BRAM"),
                  (cells.dsp, "DSP"))
        return ", ".join(f"{count:,} {name}" for count, name in counts if count) or "no cells"

    def _caption(self, y: float, lines: Iterable[str]) -> None:
        """Writes ``lines`` at the left, the first one as a title."""
        for n, line in enumerate(lines):
            self.write(8, y + _LINE * (n + 1) - 4, line, "" if n else "title")


def _block(part: str) -> str:
    return next((block for block, begins in _PARTS.items() if part.startswith(begins)), "cores")


def _groups(leaves: int, fan: int) -> list[int]:
    """The cores behind each box of a tree's lowest level that is drawn: one each, as far as they are few enough."""
    drawn = [leaves]
    while any(size > 1 for size in drawn):
        further = [part for size in drawn for part in split(size, fan)]
        if len(further) > _BOXES:
            break
        drawn = further
    return drawn


def _short(said: str, most: int) -> str:
    return said if len(said) <= most else f"{said[:most - 1]}…"
