"""The golden model: tuple at a time, the condition evaluated as it stands, windows as plain queues.

It is the reference for every other engine, so it is written to be read, not to be fast. `semantics` in comments is the
normative page on answers: windows (section 2), three-valued logic and floats (3), orders and stars (4).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .arrival import Arrivals, R
from .device.api import ITEM, PAIR, STAR, Device, Items, Session, check_masked
from .errors import DeviceError, InputError
from .lang.ir import (
    Abs,
    And,
    Arith,
    BitCount,
    Case,
    Cast,
    Cmp,
    Col,
    Expr,
    Extreme,
    IsNull,
    Isqrt,
    Lit,
    Neg,
    Not,
    Or,
    StartsWith,
    Step,
    columns,
)
from .lang.query import Query
from .lang.schema import Side
from .lang.types import FLOAT32, FLOAT64, Date, Decimal, Duration, Float, Int, Timestamp, Type, plain, units_per
from .lang.windows import Extent

__all__ = ["GoldenDevice", "GoldenSession", "compile_condition", "evaluate"]

#: A value of the IR: int or Fraction (exact types and times), float (float64), numpy.float32, bool, str, bytes, None
#: (NULL).
Value = Any
#: Column name → value.
Row = Mapping[str, Value]
Evaluator = Callable[[Row, Row], Value]

_SIDES: tuple[Side, Side] = ("r", "s")


class GoldenDevice(Device):
    """Runs any query in plain Python.

    ``cores`` (from 1) matters to order ``inner(n)``, as so many sub-windows share the n comparisons of a slice, and to
    ``masked``: the numbers of cores that are masked from the start, as by `Session.mask`.
    """

    name: ClassVar[str] = "golden"
    immediate: ClassVar[bool] = True

    def __init__(self, *, cores: int = 1, masked: Collection[int] = ()):
        if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
            raise DeviceError(f"cores must be a positive integer, not {cores!r}")
        self._cores, self._masked = cores, check_masked(masked, cores)

    @property
    def cores(self) -> int:
        """The number of sub-windows that ``inner(n)`` assumes."""
        return self._cores

    def open(self, query: Query) -> GoldenSession:
        """Start ``query``; nothing is refused."""
        return GoldenSession(query, self._cores, self._masked)


@dataclass
class _Stream:
    """What is known of one stream: the tuples in its window, and how far its punctuation is."""

    extent: Extent
    window: deque[tuple[int, int | None, Row]] = field(default_factory=deque)  # (row id, event time, values)
    tuples: int = 0
    open_probes: int = 0  # probes since the last star


class GoldenSession(Session):
    """A query running on the golden model. All of a pushed stretch is done when `push` returns."""

    def __init__(self, query: Query, cores: int = 1, masked: Collection[int] = ()):
        self._query = query
        self._cores = cores
        self._masked = frozenset(masked)
        self._condition = compile_condition(query.predicate)
        self._streams = {side: _Stream(query.window(side)) for side in _SIDES}
        self._names = {side: [c.name for c in columns(query.predicate) if c.side == side] for side in _SIDES}
        self._items: list[tuple[int, int, int, int]] = []
        self._last_ts: int | None = None
        self._flushed = False
        self._comparisons = self._matches = 0

    def push(self, arrivals: Arrivals) -> None:
        """Take the next stretch of arrival order. Raises `InputError` when event time decreases."""
        if self._flushed:
            raise DeviceError("nothing can be pushed after flush; open a new session")
        times = [None] * len(arrivals) if arrivals.ts is None else arrivals.ts.tolist()
        rows = {side: iter(self._rows(side, arrivals.table(side))) for side in _SIDES}
        with np.errstate(all="ignore"):  # float32 overflow and inf − inf are IEEE results here, not mistakes
            for stream, ts in zip(arrivals.stream.tolist(), times, strict=True):
                if ts is not None and self._last_ts is not None and ts < self._last_ts:
                    raise InputError(f"event time must not decrease in arrival order, but {ts} came after "
                                     f"{self._last_ts}")
                self._last_ts = ts
                side: Side = "r" if stream == R else "s"
                self._process(side, ts, next(rows[side]))

    def poll(self) -> Items:
        """The items made since the last call."""
        items = np.array(self._items, ITEM)
        self._items = []
        return items

    def flush(self) -> Items:
        """Close open groups with a last star each, R's before S's, and return what was not polled yet."""
        if not self._flushed:
            self._flushed = True
            for side in _SIDES:
                if self._streams[side].open_probes:  # never with order none, which counts no open probes
                    self._star(side)
        return self.poll()

    def mask(self, cores: Collection[int]) -> None:
        """Leave out what is stored in ``cores``, and nothing else, from the next tuple on."""
        self._masked = check_masked(cores, self._cores)

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s``, ``comparisons`` (pairs on which the condition was evaluated), ``matches``."""
        return {"tuples_r": self._streams["r"].tuples, "tuples_s": self._streams["s"].tuples,
                "comparisons": self._comparisons, "matches": self._matches}

    def _process(self, side: Side, ts: int | None, row: Row) -> None:
        own, opposite = self._streams[side], self._streams["s" if side == "r" else "r"]
        _expire(opposite, ts)
        probe = own.tuples
        own.tuples += 1
        own.open_probes += 1
        self._probe(side, probe, row, opposite)
        own.window.append((probe, ts, row))
        if own.extent.rows is not None and len(own.window) > own.extent.rows:
            own.window.popleft()

    def _probe(self, side: Side, probe: int, row: Row, opposite: _Stream) -> None:
        """Compare with the whole window, oldest first, then set the stars that are due."""
        order = self._query.order
        for i, (stored, _, other) in enumerate(opposite.window):
            # k sub-windows filled in turn: n comparisons of each are n·k tuples from the oldest on.
            if order.kind == "inner" and i > 0 and i % (order.n * self._cores) == 0:
                self._star(side)
            if stored % self._cores in self._masked:
                continue
            r, s = ((probe, row), (stored, other)) if side == "r" else ((stored, other), (probe, row))
            self._comparisons += 1
            if self._condition(r[1], s[1]) is True:
                self._matches += 1
                self._items.append((PAIR, _SIDES.index(side), r[0], s[0]))
        every = {"none": None, "outer": order.n, "inner": 1, "total": 1}[order.kind]
        if every is None:
            self._streams[side].open_probes = 0
        elif self._streams[side].open_probes >= every:
            self._star(side)
            self._streams[side].open_probes = 0

    def _star(self, side: Side) -> None:
        """A star for the last probe of stream ``side``."""
        last = self._streams[side].tuples - 1
        self._items.append((STAR, 0, last, -1) if side == "r" else (STAR, 1, -1, last))

    def _rows(self, side: Side, table: pa.Table) -> list[Row]:
        names = self._names[side]
        schema = self._query.schema(side)
        values = [_values(table.column(name), schema[name].type) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)] if names else [{}] * len(table)


def _expire(stream: _Stream, now: int | None) -> None:
    """Drop what a probe at time ``now`` no longer sees; later probes, being later, do not either."""
    length = stream.extent.length
    while length is not None and stream.window:
        oldest = stream.window[0][1]
        if now is None or oldest is None:
            raise InputError("a RANGE window needs event times, but these arrivals have none")
        if now - oldest <= length:
            break
        stream.window.popleft()


def _values(column: pa.ChunkedArray, type_: Type) -> list[Value]:
    column = plain(column)
    if isinstance(type_, Date):
        column = column.cast(pa.int32())
    if isinstance(type_, (Timestamp, Duration)):
        column = column.cast(pa.int64())
    values: list[Value] = column.to_pylist()
    if type_ == FLOAT32:
        return [None if v is None else np.float32(v) for v in values]
    return [None if v is None else Fraction(v) for v in values] if isinstance(type_, Decimal) else values


def evaluate(expr: Expr, r: Row, s: Row) -> Value:
    """The value of ``expr`` for one tuple of each stream; for a condition True, False or None (NULL).

    ``r`` and ``s`` map column names to values: dates in days, timestamps in the column's unit, both since 1970; floats
    are rounded to their column's type, decimals are `Fraction`.
    """
    rows: dict[Side, dict[str, Value]] = {"r": dict(r), "s": dict(s)}
    with np.errstate(all="ignore"):
        for c in columns(expr):
            if c.type == FLOAT32 and rows[c.side][c.name] is not None:
                rows[c.side][c.name] = np.float32(rows[c.side][c.name])
        return compile_condition(expr)(rows["r"], rows["s"])


def compile_condition(e: Expr) -> Evaluator:
    """``e`` as a Python function of two rows, as in `evaluate`, with `numpy.float32` for float32 columns."""
    match e:
        case Col():
            name = e.name
            return (lambda r, s: r[name]) if e.side == "r" else (lambda r, s: s[name])
        case Lit():
            value = np.float32(e.value) if e.type == FLOAT32 and e.value is not None else e.value
            return lambda r, s: value
        case Arith():
            return _strict2(_float_mod if e.op == "mod" and isinstance(e.type, Float) else _ARITH[e.op], e.a, e.b)
        case Neg():
            return _strict1(lambda v: -v, e.a)
        case Abs():
            return _strict1(abs, e.a)
        case Cast():
            return _strict1(_cast(e.a.type, e.type), e.a)
        case Cmp():
            return _strict2((_FLOAT_CMP if isinstance(e.a.type, Float) else _CMP)[e.op], e.a, e.b)
        case And():
            return _connect([compile_condition(a) for a in e.args], decisive=False)
        case Or():
            return _connect([compile_condition(a) for a in e.args], decisive=True)
        case Not():
            return _strict1(lambda v: not v, e.a)
        case IsNull():
            inner = compile_condition(e.a)
            return lambda r, s: inner(r, s) is None
        case Case():
            return _choose([(compile_condition(w), compile_condition(t)) for w, t in zip(e.when, e.then, strict=True)],
                           compile_condition(e.otherwise))
        case Extreme():
            better = (_FLOAT_CMP if isinstance(e.type, Float) else _CMP)["<" if e.kind == "least" else ">"]
            return _extreme([compile_condition(a) for a in e.args], better)
        case StartsWith():
            return _strict1(lambda v: v.startswith(e.prefix), e.a)
        case BitCount():
            assert isinstance(e.a.type, Int)
            bits = e.a.type.bits
            return _strict1(lambda v: (v % 2**bits).bit_count(), e.a)
        case Step():
            end = math.inf if e.up else -math.inf
            return _strict1(lambda v: end if v != v else np.nextafter(v, type(v)(end)), e.a)
        case Isqrt():
            return _strict1(lambda v: math.isqrt(math.floor(v)) if v >= 0 else -1, e.a)
    raise TypeError(f"not an IR node: {e!r}")


def _strict1(op: Callable[[Value], Value], a: Expr) -> Evaluator:
    """``op`` of one operand; NULL gives NULL."""
    fa = compile_condition(a)
    return lambda r, s: None if (v := fa(r, s)) is None else op(v)


def _strict2(op: Callable[[Value, Value], Value], a: Expr, b: Expr) -> Evaluator:
    """``op`` of two operands; NULL in either gives NULL."""
    fa, fb = compile_condition(a), compile_condition(b)
    return lambda r, s: None if (v := fa(r, s)) is None or (w := fb(r, s)) is None else op(v, w)


def _connect(args: list[Evaluator], decisive: bool) -> Evaluator:
    """AND (False decides) or OR (True decides): the decisive value if there is one, else NULL if there is one."""
    def connect(r: Row, s: Row) -> bool | None:
        result: bool | None = not decisive
        for arg in args:
            value: bool | None = arg(r, s)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return connect


def _choose(branches: list[tuple[Evaluator, Evaluator]], otherwise: Evaluator) -> Evaluator:
    """The value beside the first condition that is true."""
    def choose(r: Row, s: Row) -> Value:
        for when, then in branches:
            if when(r, s) is True:
                return then(r, s)
        return otherwise(r, s)

    return choose


def _extreme(args: list[Evaluator], better: Callable[[Value, Value], bool]) -> Evaluator:
    """The best of the values that are not NULL, the first among equals."""
    def extreme(r: Row, s: Row) -> Value:
        best: Value = None
        for arg in args:
            value = arg(r, s)
            if value is not None and (best is None or better(value, best)):
                best = value
        return best

    return extreme


def _quotient(a: Value, b: Value) -> Value:
    """Whole part towards zero, and the remainder, which has the sign of ``a``."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _float_mod(a: Value, b: Value) -> Value:
    return np.fmod(a, b) if isinstance(a, np.float32) else float(np.fmod(a, b))


def _divide(a: Value, b: Value) -> Value:
    """IEEE 754: by zero infinity or NaN, where Python's float raises."""
    return a / b if isinstance(a, np.float32) else float(np.float64(a) / np.float64(b))


# Python's int and Fraction are exact, its float is IEEE 754 binary64, numpy.float32 is binary32.
_ARITH: dict[str, Callable[[Value, Value], Value]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divide,
    "div": lambda a, b: None if b == 0 else _quotient(a, b), "//": lambda a, b: None if b == 0 else a // b,
    "mod": lambda a, b: None if b == 0 else a - b * _quotient(a, b), "%": lambda a, b: None if b == 0 else a % b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
}
_CMP: dict[str, Callable[[Value, Value], bool]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}


def _equal(a: Value, b: Value) -> bool:
    """Float equality of SQL: NaN equals NaN."""
    return bool(a == b) or (_is_nan(a) and _is_nan(b))


def _less(a: Value, b: Value) -> bool:
    """Float order of SQL: NaN is greater than everything but NaN."""
    return not _is_nan(a) if _is_nan(b) else bool(a < b)


def _is_nan(a: Value) -> bool:
    return bool(a != a)


_FLOAT_CMP: dict[str, Callable[[Value, Value], bool]] = {
    "=": _equal, "<>": lambda a, b: not _equal(a, b), "<": _less, "<=": lambda a, b: not _less(b, a),
    ">": lambda a, b: _less(b, a), ">=": lambda a, b: not _less(a, b),
}


def _cast(source: Type, target: Type) -> Callable[[Value], Value]:
    if target == FLOAT64:
        return _to_float64
    if target == FLOAT32:
        return lambda v: np.float32(_to_float64(v))
    if isinstance(source, (Timestamp, Duration)) and isinstance(target, (Timestamp, Duration)):
        per = units_per(source.unit, target.unit)
        return lambda v: v * per
    if isinstance(target, Int):
        return lambda v: v
    raise TypeError(f"no cast from {source} to {target}")


def _to_float64(v: int | Fraction | float | np.float32) -> float:
    try:
        return float(v)
    except OverflowError:  # IEEE 754 rounds what is too large to infinity
        return float("inf") if v > 0 else float("-inf")
