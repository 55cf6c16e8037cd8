"""Event times of whole tables as integers in the same order, of all types that have an order, and with NULL.

Times that count something keep their distances. Those that do not, floats and text, have codes: a float those of its
bits, which are ordered as integers are (IEEE 754, section 5.10), and text its rank among all texts of both tables.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.arrays import Array, Ints
from splitjoin.base.errors import InputError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.time_columns import TimeColumns
from splitjoin.lang.types import Binary, Decimal, Float, Int, String, plain

from .arrival import Arrivals, ticks_of
from .sorting import ordered_bits

#: The time of rows that have none, which no other time follows.
LAST = 2**63 - 1


def whole_times(time: TimeColumns, tables: Mapping[Side, pa.Table]) -> dict[Side, Ints]:
    """The times of both tables as integers in their order: int64 (n,); `LAST` for NULL.

    Raises `InputError` for times that do not fit 64 bits.
    """
    columns: dict[Side, pa.ChunkedArray] = {side: plain(tables[side].column(time.name(side))) for side in SIDES}
    if isinstance(time.type, (String, Binary)):
        codes = _ranks(columns)
    else:
        shift = time.type == Int(64, signed=False) and _exceeds_int64(time, columns)
        codes = {side: _code(time, side, column, shift) for side, column in columns.items()}
    for side, column in columns.items():
        if column.null_count:
            codes[side] = np.where(column.is_null().to_numpy(), LAST, codes[side])
    return codes


def _code(time: TimeColumns, side: Side, column: pa.ChunkedArray, shift: bool) -> Ints:
    name = f"{side}.{time.name(side)}"
    if pa.types.is_null(column.type):
        return np.full(len(column), LAST)
    if isinstance(time.type, Float):
        try:
            floats = column if pa.types.is_floating(column.type) else column.cast(pa.float64())
        except pa.ArrowInvalid:
            raise InputError(f"the time column {name} must hold whole numbers that floats, those of the other time "
                             f"column, do not round, up to 2^53; cast both to one type") from None
        return ordered_bits(pc.fill_null(floats, 0.0).to_numpy().astype(np.float64))
    if isinstance(time.type, Decimal):
        return _unscaled(pc.fill_null(column, 0), time.type.scale, name)
    if shift:
        shifted: Ints = pc.fill_null(column, 0).to_numpy().astype(np.uint64).view(np.int64) ^ np.int64(-2**63)
        return shifted
    if column.null_count:
        filling = pa.scalar(0, pa.int64()).cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
        column = pc.fill_null(column, filling.cast(column.type))
    return ticks_of(column, time.tick, name)


def _exceeds_int64(time: TimeColumns, columns: Mapping[Side, pa.ChunkedArray]) -> bool:
    """True if a number of a uint64 column is 2^63 or more. Raises `InputError` if another one is negative then."""
    most = max((pc.max(c).as_py() or 0 for c in columns.values()), default=0)
    least = min((pc.min(c).as_py() or 0 for c in columns.values()), default=0)
    if most >= 2**63 and least < 0:
        raise InputError(f"the time columns r.{time.r} and s.{time.s} must have times within 64 bits, but hold "
                         f"{least} and {most}; subtract the same number from both")
    return bool(most >= 2**63)


def _unscaled(column: pa.ChunkedArray, scale: int, name: str) -> Ints:
    """Decimals as whole numbers of 10^−scale."""
    parts = [np.empty(0, np.int64)]
    try:
        for chunk in column.cast(pa.decimal128(38, scale)).chunks:
            words = np.frombuffer(chunk.buffers()[1], np.int64)[2 * chunk.offset:2 * (chunk.offset + len(chunk))]
            low, high = words[::2], words[1::2]
            if (high != low >> 63).any():
                raise pa.ArrowInvalid("too large")
            parts.append(low)
    except pa.ArrowInvalid:
        raise InputError(f"the time column {name} holds numbers that do not fit 64 bits with {scale} digits behind the "
                         f"point, the more of the two time columns; cast both to fewer") from None
    return np.concatenate(parts)


def _ranks(columns: Mapping[Side, pa.ChunkedArray]) -> dict[Side, Ints]:
    """The ranks of the values of both columns, equal ones equal."""
    type_ = next((c.type for c in columns.values() if not pa.types.is_null(c.type)), pa.large_string())
    both = pa.chunked_array([chunk.cast(type_) for side in SIDES for chunk in columns[side].chunks], type_)
    ranks = pc.rank(both, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    n = len(columns["r"])
    return {"r": ranks[:n], "s": ranks[n:]}


def distances(times: Array, others: Array) -> Array:
    """The distance of each of ``times`` to that of ``others`` at its place; to NaN it is infinite."""
    if times.dtype == np.float64:
        with np.errstate(invalid="ignore"):
            apart = np.abs(times - others)
        same = (times == others) | (np.isnan(times) & np.isnan(others))
        return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
    # As unsigned numbers, since the difference of two times may not fit 64 bits with a sign.
    behind = times.view(np.uint64) - others.view(np.uint64)
    return np.where(times >= others, behind, -behind)


def decided_by_times(query: Query, incoming: Arrivals) -> bool:
    """True if event times tell the order of the rows of a ``query`` for nearest partners, without all positions."""
    rows = query.window_r.rows
    return incoming.is_timed and query.order.kind != "left" and (rows is None or rows >= len(incoming.r))
