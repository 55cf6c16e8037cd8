"""Intervals of one table as sets of points: united, numbered, cut, and what they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import OptionError, first_line
from splitjoin.tables.inputs import Rows

from .columns import Intervals, Numbers, intervals_of, overlapping, whole_number, with_column


def merge(a: Rows, *, by: str | Sequence[str] | None = None, start: str = "start", end: str = "end",
          closed: bool = False, gap: int | None = 0, name: str = "count") -> pa.Table:
    """The union of the intervals of ``a``: those that overlap, or are at most ``gap`` apart, become one.

    Args:
        a: A table, in whatever form `splitjoin.join` takes it.
        by: The columns of the group, such as ``"chrom"``.
        start: The column in which intervals begin, of both tables: whole numbers, dates, times or durations.
        end: The column in which they end, of the same type.
        closed: True if the end belongs to an interval (GFF, VCF), False if not (BED).
        gap: How far apart they may be, in the unit of the bounds: with 0, intervals that touch are united too; with
            None, only those that overlap.
        name: The column with the number of intervals.

    Returns:
        The columns of ``by``, the bounds, and ``name`` (int64), how many intervals each is made of; by groups in the
        order in which they come first, then by start. Rows with NULL in one of the columns are left out.
    """
    (found,) = intervals_of([(a, "a")], by, start, end, closed)
    _, low, high, first, count = united(found, _checked(gap))
    names = [by] if isinstance(by, str) else list(by or ())
    groups = found.table.select(names).take(pa.array(found.rows[first]))
    columns = {**{name: groups.column(name) for name in names}, **found.as_columns(low, high)}
    return with_column(pa.table(columns), name, pa.array(count))


def cluster(a: Rows, *, by: str | Sequence[str] | None = None, start: str = "start", end: str = "end",
            closed: bool = False, gap: int | None = 0, name: str = "cluster") -> pa.Table:
    """The rows of ``a`` with the number of the interval of `merge` that each belongs to, in the column ``name`` (int64;
    NULL for rows without an interval).
    """
    (found,) = intervals_of([(a, "a")], by, start, end, closed)
    order, opens = _openings(found, _checked(gap))
    number = np.zeros(len(found.table), np.int64)
    number[found.rows[order]] = np.cumsum(opens) - 1
    alone = np.ones(len(number), bool)
    alone[found.rows] = False
    return with_column(found.table, name, pa.array(number, mask=alone))


def subtract(a: Rows, b: Rows, *, by: str | Sequence[str] | None = None, start: str = "start", end: str = "end",
             closed: bool = False) -> pa.Table:
    """The rows of ``a``, cut to what the intervals of ``b`` leave of them: none, one or several rows for each.

    The arguments are those of `overlaps`. Rows of ``a`` with NULL in a bound or in ``by`` stay as they are.
    """
    left, right = intervals_of([(a, "a"), (b, "b")], by, start, end, closed)
    group, low, high, _, _ = united(right, 0)
    count = np.arange(len(group))
    mine, cuts = overlapping(left, Intervals(right.table, start, end, closed, count, group, low, high))
    place = np.full(len(left.table), -1, np.int64)
    place[left.rows] = np.arange(len(left.rows))
    # A row has a piece before each cut, and one behind the last.
    rows = np.concatenate([mine, left.rows])
    cut = np.concatenate([cuts, np.full(len(left.rows), len(group))])
    order = np.lexsort((cut, rows))
    rows, cut = rows[order], cut[order]
    own = place[rows]
    begins, ends = np.append(low, 0)[cut], np.append(high, 0)[cut]
    last = cut == len(group)
    first = np.append(True, rows[1:] != rows[:-1])
    upper = np.where(last, left.high[own], begins)
    lower = np.where(first, left.low[own], np.append(0, ends[:-1]))
    keep = (lower < upper) | (first & last)
    without = np.setdiff1d(np.arange(len(left.table)), left.rows)
    pieces = left.with_bounds(rows[keep], lower[keep], upper[keep])
    if not len(without):
        return pieces
    whole = pa.concat_tables([pieces, left.table.take(pa.array(without)).cast(pieces.schema)])
    return whole.take(pa.array(np.argsort(np.concatenate([rows[keep], without]), kind="stable")))


def complement(a: Rows, within: Mapping[Any, tuple[Any, Any]] | tuple[Any, Any], *, by: str | None = None,
               start: str = "start", end: str = "end", closed: bool = False) -> pa.Table:
    """What the intervals of ``a`` leave free of ``within``.

    Args:
        a: A table, in whatever form `splitjoin.join` takes it.
        within: The bounds of the whole, as ``(start, end)``; with ``by``, a mapping from each of its values to them:
            ``{"chr1": (0, 248_956_422)}``. Groups that it does not name are left out.
        by: The column of the group.
        start: The column in which intervals begin, of both tables: whole numbers, dates, times or durations.
        end: The column in which they end, of the same type.
        closed: True if the end belongs to an interval (GFF, VCF), False if not (BED).

    Returns:
        The column ``by`` and the bounds of the gaps, in the order of ``within``, then by start.
    """
    (found,) = intervals_of([(a, "a")], by, start, end, closed)
    if isinstance(within, Mapping) != (by is not None):
        raise OptionError("within must be (start, end), and with by= a mapping from its values to (start, end), but is "
                          f"{type(within).__name__} {'with' if by else 'without'} by=")
    parts: dict[Any, tuple[Any, Any]] = dict(within) if isinstance(within, Mapping) else {None: within}
    schema = found.table.schema
    try:
        bounds = pa.table({start: pa.array([low for low, _ in parts.values()], schema.field(start).type),
                           end: pa.array([high for _, high in parts.values()], schema.field(end).type)})
        if by is not None:
            bounds = bounds.add_column(0, by, pa.array(list(parts), schema.field(by).type))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(f"within must have bounds of the type {schema.field(start).type}, as the intervals have, and "
                          f"values of by=: {first_line(error)}") from error
    intervals_of([(bounds, "within")], by, start, end, closed)  # tells of an end before its start
    return subtract(bounds, found.table, by=by, start=start, end=end, closed=closed)


def united(found: Intervals, gap: int | None) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """The union: group, low, high, the index of the first interval in ``found``, and how many there are in each."""
    order, opens = _openings(found, gap)
    at = np.flatnonzero(opens)
    high = np.maximum.reduceat(found.high[order], at) if len(at) else found.high[:0]
    count = np.diff(np.append(at, len(order)))
    return found.group[order][at], found.low[order][at], high, order[at], count


def _openings(found: Intervals, gap: int | None) -> tuple[Numbers, np.ndarray[Any, np.dtype[np.bool_]]]:
    """The intervals by group and start, and which of them begin a new union."""
    order = np.lexsort((found.high, found.low, found.group))
    group, low, high = found.group[order], found.low[order], found.high[order]
    if not len(order):
        return order, np.zeros(0, bool)
    # The greatest end so far within the group: ranks of ends, above those of all groups before.
    ends, rank = np.unique(high, return_inverse=True)
    reached = np.maximum.accumulate(group * len(ends) + rank)[:-1]
    until = ends[np.clip(reached - group[1:] * len(ends), 0, len(ends) - 1)]
    apart = low[1:] >= until if gap is None else low[1:].astype(object) - until > gap if _wide(low, until, gap) else (
        low[1:] - until > gap)
    return order, np.append(True, (group[1:] != group[:-1]) | apart)


def _wide(low: Numbers, until: Numbers, gap: int) -> bool:
    """True if a difference could leave 64 bits."""
    return bool(len(until)) and max(abs(int(low.min())), abs(int(low.max())), abs(int(until.max()))) + gap >= 2**62


def _checked(gap: int | None) -> int | None:
    return None if gap is None else whole_number(gap, "gap", 0)
