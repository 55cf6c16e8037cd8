"""Golden models of the components, in plain Python, for the tests on every simulator."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from splitjoin.circuit.wire import Configuration, ItemKind, Op, Record
from splitjoin.plan.plan import Tree
from splitjoin_hw.layouts import result_layout, window_layout

from .core_kinds import CORE_MODELS

#: ROWS without a limit.
NO_LIMIT = 2**32 - 1


class Item(NamedTuple):
    """A result inside the circuit. ``stored`` is defined in a pair only, ``probe`` in all items but an END."""

    kind: ItemKind
    probe: int = 0
    stored: int = 0

    def essence(self) -> Item:
        """The item with undefined fields set to 0."""
        return Item(self.kind, 0 if self.kind == ItemKind.END else self.probe,
                    self.stored if self.kind == ItemKind.PAIR else 0)


class Operation(NamedTuple):
    """An input record. ``keys`` and ``bounds`` (per test a closed interval) are those of its stream.

    In a MASK, ``stream`` is 1 if core ``core`` is masked from here on, and 0 if not.
    """

    op: Op
    stream: int = 0
    ts: int = 0
    keys: tuple[int, ...] = ()
    bounds: tuple[tuple[int, int], ...] = ()
    core: int = 0


@dataclass(frozen=True)
class Window:
    """Run-time settings of a region. ``length`` None: no RANGE. ``precision``: probes between stars, 0 for none.
    ``slice``: stored tuples between the inner stars of a probe, 0 for none.
    """

    rows: int = NO_LIMIT
    length: int | None = None
    precision: int = 1
    slice: int = 0


def pack(record: Record, values: Mapping[str, int]) -> int:
    """A record as one integer; absent fields are 0."""
    return sum(values.get(name, 0) << at for name, (at, _) in record.offsets().items())


def packed_operation(config: Configuration, op: Operation) -> int:
    """``op`` as the circuit takes it; event time is cut to the circuit's width."""
    body = {f"key{n}": key for n, key in enumerate(op.keys)}
    lows = dict(config.bounds("rs"[op.stream]).fields)
    for n, (low, high) in enumerate(op.bounds):
        # With an interval of constant width, a low end below every key wraps around.
        body |= {f"lo{n}": low % 2**lows[f"lo{n}"], f"hi{n}": high}
    if op.op == Op.TUPLE:
        body |= CORE_MODELS[config.core].fields(config, op.stream, op.keys, op.bounds)
    time = {"ts": op.ts % 2**config.time_bits} if config.time_bits else {}
    packed = op.core if op.op == Op.MASK else pack(config.body("rs"[op.stream]), body)
    return pack(config.input_record, {"op": op.op, "stream": op.stream, **time, "body": packed})


def packed_window(config: Configuration, window: Window) -> int:
    """``window`` as the region's settings port takes it."""
    bits: int = window_layout(config).const({
        "rows": window.rows, "range": window.length or 0, "timed": window.length is not None,
        "precision": window.precision, "slice": window.slice}).as_bits()
    return bits


def packed_item(item: Item) -> int:
    """``item`` as an integer."""
    bits: int = result_layout().const(item._asdict()).as_bits()
    return bits


def item_of(payload: int) -> Item:
    """The inverse of `packed_item`; undefined fields are 0."""
    view = result_layout().from_bits(payload)
    return Item(ItemKind(view.kind), view.probe, view.stored).essence()


def holds(tree: Tree, tests: Sequence[bool]) -> bool:
    """The value of Boolean combination ``tree``, given those of its tests."""
    if isinstance(tree, int):
        return tests[tree]
    op, *operands = tree
    return (all if op == "and" else any)(holds(t, tests) for t in operands)


@dataclass
class RegionModel:
    """Model of a region: core ``index``'s share of stream ``side``, and probes of the other (semantics, 2, 4 and 5).

    ``overflow``: row id of the tuple that found ``capacity`` tuples live; the region stops there.
    """

    config: Configuration
    side: str
    index: int
    window: Window
    overflow: int | None = None
    compared: int = 0
    _live: deque[tuple[int, int, tuple[int, ...]]] = field(default_factory=deque)  # row id, event time, keys
    _stored: int = 0
    _probes: int = 0
    _since: int = 0
    _masked: bool = False

    def apply(self, op: Operation) -> list[Item]:
        """The items that ``op`` yields."""
        if self.overflow is not None:
            return []
        if op.op == Op.FLUSH:
            return self._flush()
        if op.op == Op.MASK:
            if op.core == self.index:
                self._masked = bool(op.stream)
            return []
        self._expire(op.ts)
        if op.op == Op.TICK:
            return []
        if "rs"[op.stream] == self.side:
            self._store(op)
            return []
        return self._probe(op)

    @property
    def live(self) -> list[int]:
        """Row ids of the tuples in the sub-window, oldest first."""
        return [row for row, _, _ in self._live]

    def run(self, operations: Iterable[Operation]) -> list[Item]:
        """The items of all ``operations``."""
        return [item for op in operations for item in self.apply(op)]

    def _expire(self, now: int) -> None:
        while self.window.length is not None and self._live and now - self._live[0][1] > self.window.length:
            self._live.popleft()

    def _store(self, op: Operation) -> None:
        row = self._stored
        if self.window.rows != NO_LIMIT:
            while self._live and self._live[0][0] + self.window.rows <= row:
                self._live.popleft()
        if self.config.routed or row % self.config.cores == self.index:
            if len(self._live) == self.config.capacity:
                self.overflow = row
                return
            self._live.append((row, op.ts, op.keys))
        self._stored += 1

    def _probe(self, op: Operation) -> list[Item]:
        out = []
        model = CORE_MODELS[self.config.core]
        candidate = model.candidates(self.config, self.side, op.bounds)
        for n, (row, _, keys) in enumerate(self._live):
            if self.window.slice and n and n % self.window.slice == 0:
                out.append(Item(ItemKind.SLICE, self._probes))
            if self._masked:
                continue
            if not candidate(keys) or (
                    self.config.routed and model.core(self.config, self.side, keys) != self.index):
                continue
            self.compared += 1
            tests = [low <= keys[r if self.side == "r" else s] <= high
                     for (low, high), (r, s) in zip(op.bounds, self.config.tests, strict=True)]
            if holds(self.config.tree, tests):
                out.append(Item(ItemKind.PAIR, self._probes, row))
        self._since += 1
        if self._since == self.window.precision:
            out.append(Item(ItemKind.STAR, self._probes))
            self._since = 0
        self._probes += 1
        return out

    def _flush(self) -> list[Item]:
        open_group = self._since and self.window.precision
        self._since = 0
        return [Item(ItemKind.STAR, self._probes - 1)] * bool(open_group) + [Item(ItemKind.END)]


def first_without_room(rows: Iterable[tuple[str, int]], config: Configuration, windows: Mapping[str, Window],
                       ) -> tuple[str, int] | None:
    """Stream and row id of the first of ``rows`` (stream, event time) that finds its core's ring full, if one does."""
    live: dict[str, list[tuple[int, int]]] = {"r": [], "s": []}
    count = {"r": 0, "s": 0}
    for side, now in rows:
        row = count[side]
        length, oldest = windows[side].length, row - windows[side].rows
        # This tuple is not counted, nor are those that its arrival pushes out.
        live[side] = [(n, ts) for n, ts in live[side] if (length is None or now - ts <= length) and n > oldest]
        if sum(n % config.turns == row % config.turns for n, _ in live[side]) == config.capacity:
            return side, row
        live[side].append((row, now))
        count[side] += 1
    return None
