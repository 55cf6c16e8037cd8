"""A view of a run: what a simulated circuit did over its cycles, by core, read from its waveform file."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path

from splitjoin.base.errors import InputError, first_line
from splitjoin.base.safe_text import printable
from splitjoin.base.svg import Drawing
from splitjoin.circuit.wire import ItemKind, Op, Record, item_record
from splitjoin.link.transactions import FROM, FROM_JOIN, TO, TO_JOIN, LinkRows, Transaction, item_told, record_told

from .vcd import Signal, VcdFile, bit_time, uart_bytes

#: Counters of the circuit, by their names in the registers, in the order of the page; those of stalls are cycles.
_COUNTERS = ("tuples_r", "tuples_s", "comparisons", "matches", "input_stalls", "output_stalls")
#: What is counted in each core → what it is.
_OF_CORES = {
    "comparisons": "stored tuples compared with a probe; cores that scan count them when their pass begins",
    "matches": "comparisons that were true",
    "scans": "cycles in which a region reads its window for probes; a core has two regions",
    "tuples": "records taken: each is stored in one core of all, and is a probe in each",
    "waits": "cycles in which a record waits before the core",
    "pairs": "pairs given to the mergers", "stars": "stars given to the mergers",
    "stalls": "cycles in which a result waits for its merger"}
#: Bits of a result from a core that finds pairs: kind and two row ids. Others are states.
_RESULT = 66
#: The most slices of time that are drawn; the most boxes of one picture; pixels of it, and its captions'.
_SLICES, _BOXES, _WIDTH, _LEFT = 240, 12_000, 900, 70
#: The most rows of what went in and out that the page shows.
_ROWS = 1_000
_SHADES = 8
_STYLE = ":root{color-scheme:light dark}body{font:16px/1.4 sans-serif;margin:1em}" + """
div{overflow-x:auto}td,th{text-align:right;padding:.1em .8em}text{fill:currentColor;font:12px sans-serif}
.rows td{text-align:left}
rect,path{fill:#3987e5;stroke:none}.frame{fill:none;stroke:currentColor;stroke-opacity:.3}""" + "".join(
    f".l{n}{{fill-opacity:{n / _SHADES}}}" for n in range(1, _SHADES + 1))


@dataclass
class RunView:
    """The counts of a run, in slices of equally many cycles.

    Attributes:
        file: The waveform file.
        cycles: Cycles of the run.
        width: Cycles of a slice.
        counts: The place, ``circuit`` or a core such as ``core0``, and what is counted → slice → number.
        signals: Those that were read.
        rows: What went in and out, as it came.
    """

    file: Path
    cycles: int = 0
    width: int = 1
    counts: dict[tuple[str, str], Counter[int]] = field(default_factory=dict)
    signals: list[Signal] = field(default_factory=list)
    rows: list[Transaction] = field(default_factory=list)

    @property
    def cores(self) -> list[str]:
        """The cores, in their order."""
        return sorted({place for place, _ in self.counts} - {"circuit"}, key=lambda name: int(name[4:]))

    def total(self, place: str, what: str) -> int:
        """The number of ``what`` at ``place`` in the whole run."""
        return sum(self.counts.get((place, what), Counter()).values())

    def merge(self) -> None:
        """Make two slices one."""
        self.width *= 2
        for key, slices in self.counts.items():
            merged: Counter[int] = Counter()
            for at, number in slices.items():
                merged[at // 2] += number
            self.counts[key] = merged

    def html(self) -> str:
        """A page, in light or dark colours as the browser prefers, that needs nothing else: the counters of the circuit
        over the cycles, what each core did, and what went in and out.
        """
        name = escape(printable(self.file.name))
        whats = [what for what in _OF_CORES if any((core, what) in self.counts for core in self.cores)]
        head = "".join(f"<th>{what}</th>" for what in ("core", *whats))
        rows = "\n".join(f"<tr><td>{core[4:]}</td>" + "".join(f"<td>{self.total(core, what):,}</td>" for what in whats)
                         + "</tr>" for core in self.cores)
        charts = "\n".join(self._chart(what) for what in _COUNTERS if ("circuit", what) in self.counts)
        maps = "\n".join(f"<h3>{what}</h3><p>{_OF_CORES[what]}</p><div>{self._map(what)}</div>" for what in whats)
        ran = (f"<p>{self.cycles:,} cycles; a slice of the pictures is {self.width:,} of them.</p>\n"
               f"<h2>The circuit</h2><div>{charts}</div>\n<h2>By core</h2>\n"
               f"<div><table><tr>{head}</tr>\n{rows}</table></div>\n{maps}\n" if self.cores else "")
        return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>\n<meta '
                f'name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>\n'
                f"<h1>Run of a circuit: {name}</h1>{ran}{self._transactions()}</body></html>")

    def _transactions(self) -> str:
        """The section of what went in and out: how often, and the first rows."""
        if not self.rows:
            return ""
        counts = Counter((row.way, row.what) for row in self.rows)
        totals = "".join(f"<tr><td>{way}</td><td>{what}</td><td>{count:,}</td></tr>"
                         for (way, what), count in counts.items())
        rows = "\n".join(f"<tr><td>{row.time:.9g}</td><td>{row.way}</td><td>{row.what}</td>"
                         f"<td>{escape(row.detail)}</td></tr>" for row in self.rows[:_ROWS])
        more = f"The first {_ROWS:,} of {len(self.rows):,} rows; " if len(self.rows) > _ROWS else ""
        return (f'<h2>In and out</h2><div><table class="rows">{totals}</table></div><p>{more}times in seconds, '
                f'or in bytes of a way</p>\n<div><table class="rows">{rows}</table></div>')

    def csv(self) -> str:
        """The rows of what went in and out, with a header."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [Transaction._fields, *(row._replace(time=float(f"{row.time:.9g}")) for row in self.rows)])
        return text.getvalue()

    def _chart(self, what: str) -> str:
        """Bars from zero: ``what`` a cycle, in each slice."""
        slices, high = self.counts["circuit", what], 60
        most, wide = max(slices.values(), default=0), (_WIDTH - _LEFT) * self.width / max(self.cycles, 1)
        drawing = Drawing()
        total = self.total("circuit", what)
        drawing.write(_LEFT, 12, f"{what}: {total:,}, at most {most / self.width:.3g} a cycle")
        drawing.box(_LEFT, 18, _WIDTH - _LEFT, high, kind="frame")
        for at, number in slices.items():
            drawing.box(_LEFT + at * wide, 18 + high * (1 - number / most), wide, high * number / most)
        return drawing.svg(_WIDTH, high + 24, "chart", f"{what} over {self.cycles:,} cycles: {total:,}")

    def _map(self, what: str) -> str:
        """A row for each core, the darker the more of ``what`` a slice has."""
        rows = {core: self.counts[core, what] for core in self.cores if (core, what) in self.counts}
        most = max((number for slices in rows.values() for number in slices.values()), default=0)
        high, wide = max(4, min(18, 600 // len(rows))), (_WIDTH - _LEFT) * self.width / max(self.cycles, 1)
        # Neighbouring slices of one shade are one box; of many cores, some slices have the shade of the first.
        step = -(-len(rows) * _SLICES // _BOXES)
        drawing = Drawing()
        for n, (core, slices) in enumerate(rows.items()):
            if high > 10:
                drawing.write(0, n * high + 13, core)
            run = [0, 0, 0]  # first slice, slices, shade
            for at in range(0, max(slices, default=0) + 1 + step, step):
                shade = math.ceil(_SHADES * max(slices[at + further] for further in range(step)) / most) if most else 0
                if shade != run[2]:
                    if run[2]:
                        drawing.box(_LEFT + run[0] * wide, n * high, run[1] * wide, high - 1, kind=f"l{run[2]}")
                    run = [at, 0, shade]
                run[1] += step
            drawing.box(_LEFT, n * high, _WIDTH - _LEFT, high - 1, kind="frame")
        drawing.write(_LEFT, len(rows) * high + 14, f"darkest: {most / self.width:.3g} a cycle")
        return drawing.svg(_WIDTH, len(rows) * high + 20, "map", f"{what} of {len(rows)} cores")

    def gtkw(self) -> str:
        """A save file for GTKWave, which shows the signals that were read, grouped by their scopes."""
        lines = ["[*] written by splitjoin waves", f'[dumpfile] "{self._path}"']
        for scope, signals in self._groups():
            lines += ["@200", f"-{scope}"]
            for signal in signals:
                lines += ["@22" if signal.bits > 1 else "@28",
                          f"{signal.path}[{signal.bits - 1}:0]" if signal.bits > 1 else signal.path]
        return "\n".join(lines) + "\n"

    def sucl(self) -> str:
        """A command file for Surfer (``surfer --command-file``), which does the same."""
        lines = [f"load_file {self._path}"]
        for scope, signals in self._groups():
            lines += [f"divider_add {scope}", *(f"variable_add {signal.path}" for signal in signals)]
        return "\n".join([*lines, "zoom_fit"]) + "\n"

    @property
    def _path(self) -> str:
        return printable(str(self.file.absolute())).replace("\n", r"\n")

    def _groups(self) -> Iterator[tuple[str, list[Signal]]]:
        for scope in dict.fromkeys(signal.scope for signal in self.signals):
            yield scope[-1], [signal for signal in self.signals if signal.scope == scope]


#: What is counted where, and the number in a cycle from the values of all signals that are read.
_Event = tuple[tuple[str, str], Callable[[list[int]], int]]
#: The kind and the other fields of what moves in a cycle, from the same values.
_Port = Callable[[list[int]], tuple[str, str] | None]


def read_run(file: Path, *, pins: tuple[str, str] = ("rx", "tx"), baud: int | None = None,
             items: Record | None = None) -> RunView:
    """The view of the run whose waveforms are in the VCD ``file``, as the devices ``sim`` and ``pysim`` write it, or a
    logic analyzer at the pins of a board.

    Args:
        file: The file.
        pins: The names of the circuit's serial input and output.
        baud: Their rate in Hz; None to measure it.
        items: The layout of items on the link.

    Raises `InputError` for a file that cannot be read, and for one with neither cores nor these pins.
    """
    view = RunView(file)
    try:
        vcd = VcdFile(file)
        view.signals = sorted((one for one in vcd.signals if _is_read(one)),
                              key=lambda one: (len(one.scope), one.scope, one.name))
        clock = next((one for one in vcd.signals if one.name == "clk"), None)
        # The outermost ones.
        line = [min((one for one in vcd.signals if one.name == name), key=lambda one: len(one.scope), default=None)
                for name in pins]
        chosen = [*view.signals, *([clock] if clock else []), *(one for one in line if one)]
        places = {signal.path: (at, signal) for at, signal in enumerate(view.signals)}
        events = list(_events(places)) if clock else []
        ports = list(_ports(places)) if clock else []
        if not events and not all(line):
            raise InputError(f"a view of a run needs waveforms of a circuit with cores, or of its serial pins, but "
                             f"{file} has neither; write them by trace='run.vcd' of the device sim or pysim, or name "
                             f"the pins by --pins")
        on_line: dict[int, list[tuple[int, int]]] = {len(chosen) - n: [] for n in (1, 2)} if all(line) else {}
        at_clock, values = len(view.signals), [0] * len(chosen)
        for time, changes in vcd.steps(chosen):
            # What changes with the edge belongs to the next cycle.
            if events and (at_clock, 1) in changes and not values[at_clock]:
                _count(view, values, events)
                view.rows += (Transaction(time * vcd.tick, way, *item) for way, port in ports if (item := port(values)))
            for at, value in changes:
                if at in on_line and value != values[at]:
                    on_line[at].append((time, value))
                values[at] = value
    except (OSError, ValueError, IndexError) as error:
        raise InputError(f"a view of a run needs a VCD file, but {file}: {first_line(error)}") from None
    if on_line:
        view.signals += (one for one in line if one)
        bit = 1 / baud / vcd.tick if baud else min(filter(None, map(bit_time, on_line.values())), default=1.0)
        link = LinkRows(items)
        on_both = ((time, way, byte) for way, at in zip((TO, FROM), sorted(on_line), strict=True)
                   for time, byte in uart_bytes(on_line[at], bit))
        for time, way, byte in sorted(on_both):
            view.rows += link.feed(way, (byte,), time * vcd.tick)
        view.rows.sort(key=lambda row: row.time)
    return view


def read_bytes(sent: Path, received: Path | None, items: Record | None = None) -> RunView:
    """The view of what went over the link as the bytes in files: ``sent`` to the circuit, and ``received`` from it.

    ``items``: the layout of items. Raises `InputError` for a file that cannot be read.
    """
    view, record_bytes = RunView(sent), 0
    for way, file in ((FROM, received), (TO, sent)):  # replies tell how long a record is
        link = LinkRows(items, record_bytes)
        try:
            data = b"" if file is None else file.read_bytes()
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
        rows = [row for at in range(len(data)) for row in link.feed(way, data[at:at + 1], at)]
        view.rows, record_bytes = rows + view.rows, link.record_bytes
    return view


def _is_read(signal: Signal) -> bool:
    inner = signal.scope[-1] if signal.scope else ""
    if inner.endswith("_count"):
        return signal.name == "step" and inner.removesuffix("_count") in _COUNTERS
    if inner == "combiner":
        return bool(re.fullmatch(r"o__(valid|ready|payload)", signal.name))
    if inner in ("left", "right"):
        return signal.name == "scanning" and bool(re.fullmatch(r"core\d+", signal.scope[-2]))
    return bool(re.fullmatch(r"core\d+", inner)
                and re.fullmatch(r"compared__\d+|matched|(i|left|right)__(valid|ready|payload)", signal.name))


def _events(signals: dict[str, tuple[int, Signal]]) -> Iterator[_Event]:
    """The events that are counted in each cycle. ``signals``: path → place among the values, and the signal."""
    for at, signal in signals.values():
        inner = signal.scope[-1]
        if inner.endswith("_count"):
            yield ("circuit", inner.removesuffix("_count")), _value(at)
        elif inner == "combiner":
            continue
        elif inner in ("left", "right"):
            yield (signal.scope[-2], "scans"), _value(at)
        elif signal.name.startswith("compared__"):
            yield (inner, "comparisons"), _value(at)
        elif signal.name == "matched" and signal.bits == 2:  # of a core of two regions
            yield (inner, "matches"), _ones(at)
        elif signal.name.endswith("__valid"):
            port = signal.path.removesuffix("valid")
            (ready, _), (payload, data) = (signals.get(f"{port}{name}", (-1, signal)) for name in ("ready", "payload"))
            if ready < 0 or payload < 0:
                continue
            is_input = signal.name.startswith("i")
            yield (inner, "waits" if is_input else "stalls"), _waits(at, ready)
            if is_input:
                yield (inner, "tuples"), _moves(at, ready, payload, Op.TUPLE)
            elif data.bits == _RESULT:
                yield (inner, "pairs"), _moves(at, ready, payload, ItemKind.PAIR)
                yield (inner, "stars"), _moves(at, ready, payload, ItemKind.STAR)


def _value(at: int) -> Callable[[list[int]], int]:
    return lambda values: values[at]


def _ones(at: int) -> Callable[[list[int]], int]:
    return lambda values: values[at].bit_count()


def _waits(valid: int, ready: int) -> Callable[[list[int]], int]:
    return lambda values: values[valid] & ~values[ready]


def _moves(valid: int, ready: int, payload: int, kind: int) -> Callable[[list[int]], int]:
    """1 in a cycle in which a record of the ``kind`` in its two lowest bits is taken."""
    return lambda values: values[valid] & values[ready] & (values[payload] & 3 == kind)


def _ports(signals: dict[str, tuple[int, Signal]]) -> Iterator[tuple[str, _Port]]:
    """The ports of the join: for each its way, and a function from the values of all signals in a cycle to the record
    or item that is transferred in it. Records are taken at core 0, which gets all of them, and items at the combiner.
    """
    for path, (valid, signal) in signals.items():
        way = {("core0", "i__valid"): TO_JOIN, ("combiner", "o__valid"): FROM_JOIN}.get((signal.scope[-1], signal.name))
        ready, payload = (signals.get(path.removesuffix("valid") + name) for name in ("ready", "payload"))
        if way and ready and payload:
            yield way, _told(valid, ready[0], payload[0], record_told if way == TO_JOIN else partial(
                item_told, items=item_record((payload[1].bits - 3) // 2)))


def _told(valid: int, ready: int, payload: int, tell: Callable[[int], tuple[str, str]]) -> _Port:
    return lambda values: tell(values[payload]) if values[valid] & values[ready] else None


def _count(view: RunView, values: list[int], events: list[_Event]) -> None:
    if view.cycles >= _SLICES * view.width:
        view.merge()
    at = view.cycles // view.width
    view.cycles += 1
    for key, number in events:
        slices = view.counts.setdefault(key, Counter())
        if value := number(values):
            slices[at] += value
