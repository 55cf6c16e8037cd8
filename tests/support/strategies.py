"""Hypothesis strategies for whole joins: tables with NULL, NaN and extremes, windows, orders, scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from splitjoin.lang.windows import WindowSpec

from .predicates import conditions
from .terms import Condition

#: Every kind of column that conditions can use.
COLUMN_TYPES: tuple[pa.DataType, ...] = (
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.string(),
    pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"),
    pa.timestamp("s", "Europe/Oslo"), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.decimal128(9, 2),
    pa.decimal128(38, 2), pa.duration("ms"), pa.duration("ns"), pa.binary(), pa.binary(2), pa.binary(9),
)
#: Pairs of types for the time columns of R and S.
TIME_TYPES: tuple[tuple[pa.DataType, pa.DataType], ...] = (
    (pa.int64(), pa.int64()), (pa.int32(), pa.int64()), (pa.date32(), pa.date32()),
    (pa.timestamp("us"), pa.timestamp("us")), (pa.timestamp("s"), pa.timestamp("ns")),
    (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
)
_PER_TICK = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86400 * 10**9


@dataclass(frozen=True)
class RandomWindows:
    """Windows as the API takes them, and as numbers: ``r`` and ``s`` are (rows, length), None where there is no limit.

    Lengths are in ``tick_ns`` nanoseconds, or in the time column's own unit if that is None.
    """

    spec: WindowSpec
    r: tuple[int | None, int | None]
    s: tuple[int | None, int | None]


@dataclass(frozen=True)
class Scenario:
    """A whole join. ``on.oracle`` is the same condition for DuckDB."""

    r: pa.Table
    s: pa.Table
    on: Condition
    windows: RandomWindows
    time: str | None
    order: str


def values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of ``type_``, few enough to meet each other often, the extremes among them; times as integers."""
    if pa.types.is_unsigned_integer(type_):
        top = 2**type_.bit_width
        return st.one_of(st.integers(0, 5), st.integers(0, 5), st.sampled_from([top - 2, top - 1, top // 2]),
                         st.integers(0, top - 1))
    if pa.types.is_integer(type_):
        top = 2 ** (type_.bit_width - 1)
        return st.one_of(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from([-top, 1 - top, top - 2, top - 1]),
                         st.integers(-top, top - 1))
    if pa.types.is_floating(type_):
        return st.one_of(st.integers(-3, 3).map(float), st.sampled_from(_float_extremes(type_.bit_width)),
                         st.floats(width=type_.bit_width))
    if pa.types.is_boolean(type_):
        return st.booleans()
    if pa.types.is_string(type_):
        return st.sampled_from(["", "a", "A", "b", "a'b", "ä", "a ", "long text 1", "long text 2", "long tex", "a\0"])
    if pa.types.is_decimal(type_):
        top = 10**type_.precision - 1
        extremes = [top, -top] if type_.precision < 20 else [top, -top, top - 1, 2**63, 2**64]
        unscaled = st.one_of(st.integers(-300, 300), st.integers(-3, 3).map(lambda n: 100 * n),
                             st.sampled_from(extremes))
        return unscaled.map(lambda n: Decimal(n).scaleb(-type_.scale, Context(prec=50)))
    if pa.types.is_fixed_size_binary(type_):
        width = type_.byte_width
        return st.one_of(st.sampled_from([b"\0" * width, b"\xff" * width, b"ab".ljust(width, b"\0")]),
                         st.binary(min_size=width, max_size=width))
    if pa.types.is_binary(type_):
        return st.sampled_from([b"", b"a", b"ab", b"\0", b"\xff" * 8, b"\xff" * 7 + b"\xfe", b"\xff" * 9, b"a" * 9])
    if pa.types.is_date(type_):
        return st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))
    return st.one_of(st.integers(-3, 3), st.integers(-3, 3).map(lambda n: n * 1000), st.integers(-(10**9), 10**9))


def _float_extremes(width: int) -> list[float]:
    dtype: Any = np.float32 if width == 32 else np.float64
    around = [dtype(v) for v in (1, 10, 10.1, 0.1, 16777216, 2**53)]
    some = [0.0, -0.0, math.inf, -math.inf, math.nan, *np.array([np.finfo(dtype).max, np.finfo(dtype).tiny,
                                                               np.finfo(dtype).smallest_subnormal])]
    for v in around:  # one ulp to either side, and the mirror image
        some += [v, np.nextafter(v, dtype(np.inf)), np.nextafter(v, dtype(-np.inf)), -v]
    return [float(v) for v in some]


def arrays(type_: pa.DataType, size: int, *, nulls: bool = True) -> st.SearchStrategy[pa.Array]:
    """An Arrow array of ``size`` values of ``type_``."""
    one = st.one_of(st.none(), values(type_), values(type_), values(type_)) if nulls else values(type_)
    return st.lists(one, min_size=size, max_size=size).map(lambda v: array(v, type_))


def array(some: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """``some`` as an Arrow array; times are given as integers."""
    if pa.types.is_date(type_):
        return pa.array(some, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        return pa.array(some, pa.int64()).cast(type_)
    return pa.array(some, type_)


def schemas(prefix: str, *, max_columns: int = 3) -> st.SearchStrategy[dict[str, pa.DataType]]:
    """Columns ``prefix0``, ``prefix1``, … of random types."""
    types = st.lists(st.sampled_from(COLUMN_TYPES), min_size=1, max_size=max_columns)
    return types.map(lambda chosen: {f"{prefix}{i}": t for i, t in enumerate(chosen)})


@st.composite
def tables(draw: st.DrawFn, columns: Mapping[str, pa.DataType], *, time: tuple[str, pa.DataType] | None = None,
           max_rows: int = 10) -> pa.Table:
    """A table of ``columns``, in front of them a sorted time column with many ties if ``time`` names one."""
    size = draw(st.one_of(st.integers(max_rows // 2, max_rows), st.integers(0, max_rows)))
    data = {name: draw(arrays(type_, size)) for name, type_ in columns.items()}
    if time is not None:
        moments = draw(st.lists(st.integers(-2, 12), min_size=size, max_size=size))
        # One step of time is a second in every unit, so that columns of different units meet.
        step = 10**9 // _PER_TICK[time[1].unit] if pa.types.is_timestamp(time[1]) else 1
        data = {time[0]: array([m * step for m in sorted(moments)], time[1])} | data
    return pa.table(data)


@st.composite
def windows(draw: st.DrawFn, time: pa.DataType | None = None) -> RandomWindows:
    """Windows of ROWS, of RANGE, and of both, the same for both streams or not. ``time``: the time column's type."""
    one = _window(time)
    first = draw(one)
    if draw(st.booleans()):
        return RandomWindows(first[0], first[1:], first[1:])
    second = draw(one)
    spec: WindowSpec = (first[0], second[0]) if draw(st.booleans()) else {"r": first[0], "s": second[0]}
    return RandomWindows(spec, first[1:], second[1:])


@st.composite
def _window(draw: st.DrawFn, time: pa.DataType | None) -> tuple[str, int | None, int | None]:
    rows = draw(st.integers(1, 7))
    shape = "ROWS" if time is None else draw(st.sampled_from(["ROWS", "RANGE", "RANGE", "ROWS RANGE", "RANGE ROWS"]))
    if shape == "ROWS":
        return f"ROWS {rows}", rows, None
    steps = draw(st.integers(0, 6))
    if pa.types.is_date(time):
        text, length = f"RANGE {steps} DAYS", steps
    elif pa.types.is_timestamp(time):
        text, length = draw(st.sampled_from([(f"RANGE {steps} SECONDS", steps * 10**9),
                                             (f"range {steps * 1500} milliseconds", steps * 1500 * 10**6)]))
    else:
        text, length = f"RANGE {steps}", steps
    if shape == "RANGE":
        return text, None, length
    return (f"ROWS {rows} {text}" if shape == "ROWS RANGE" else f"{text} ROWS {rows}"), rows, length


def orders() -> st.SearchStrategy[str]:
    """Every output order, with small precisions."""
    return st.one_of(st.sampled_from(["none", "total", "outer"]), st.integers(1, 5).map("outer({})".format),
                     st.integers(1, 3).map("inner({})".format))


def predicates(r: Mapping[str, pa.DataType] | pa.Schema, s: Mapping[str, pa.DataType] | pa.Schema,
               ) -> st.SearchStrategy[str]:
    """SQL conditions of the whole supported language over the columns of R and S."""
    return conditions(r, s).map(lambda c: c.sql)


@st.composite
def scenario(draw: st.DrawFn, *, type_: pa.DataType | None = None, max_rows: int = 10) -> Scenario:
    """A random join: tables, condition, windows, time column, order. ``type_``: of the only column of each stream."""
    r = draw(schemas("x"))
    # Often the same types on both sides: else most columns could only be compared with literals.
    s = draw(st.one_of(st.just({f"a{i}": t for i, t in enumerate(r.values())}), schemas("a")))
    if type_ is not None:
        r, s = {"x0": type_}, {"a0": type_}
    types = draw(st.one_of(st.none(), st.sampled_from(TIME_TYPES)))
    left = draw(tables(r, time=types and ("ts", types[0]), max_rows=max_rows))
    right = draw(tables(s, time=types and ("ts", types[1]), max_rows=max_rows))
    return Scenario(left, right, draw(conditions(r, s)), draw(windows(types and types[0])), types and "ts",
                    draw(orders()))
