"""Pairs of intervals of two tables: those that overlap, and those that are nearest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import OptionError
from splitjoin.joins.join import join
from splitjoin.tables.inputs import Rows

from .columns import OVERLAP, Intervals, Numbers, bounds_of, intervals_of, overlapping, whole_number, with_column
from .sets import united

_HOW = ("inner", "left", "semi", "anti")


def overlaps(a: Rows, b: Rows, *, by: str | Sequence[str] | None = None, start: str = "start", end: str = "end",
             closed: bool = False, how: str = "inner", suffixes: tuple[str, str] = ("_a", "_b")) -> pa.Table:
    """Each pair of an interval of ``a`` and one of ``b`` that have a point in common.

    Args:
        a: The first table, in whatever form `splitjoin.join` takes it.
        b: The second one.
        by: The columns that must be equal, such as ``"chrom"``; NULL equals nothing.
        start: The column in which intervals begin, of both tables: whole numbers, dates, times or durations.
        end: The column in which they end, of the same type.
        closed: True if the end belongs to an interval (GFF, VCF), False if not (BED). A half-open interval that is
            empty, ``[5, 5)``, overlaps what it lies strictly within, as in bioframe.
        how: ``"inner"``; ``"left"``, also rows of ``a`` without a partner, with NULL; ``"semi"`` and ``"anti"``, the
            rows of ``a`` with and without one.
        suffixes: What names that are in both tables get.

    Returns:
        The columns of ``a``, then those of ``b``, in the order of the rows of ``a``, then of ``b``.

    Raises:
        SplitJoinError: If a column is missing, has another type, or an interval ends before it starts.
    """
    if how not in _HOW:
        raise OptionError(f"how must be one of {', '.join(_HOW)}, not {how!r}")
    left, right = intervals_of([(a, "a"), (b, "b")], by, start, end, closed)
    mine, theirs = overlapping(left, right)
    every = np.arange(len(left.table))
    if how in ("semi", "anti"):
        return left.table.take(pa.array(every[np.isin(every, mine) == (how == "semi")]))
    if how == "left":
        mine, theirs = _with_alone(mine, theirs, len(left.table))
    return _beside(left, right, mine, theirs, suffixes)


def count_overlaps(a: Rows, b: Rows, *, by: str | Sequence[str] | None = None, start: str = "start", end: str = "end",
                   closed: bool = False, name: str = "count") -> pa.Table:
    """The rows of ``a`` with the number of intervals of ``b`` that each overlaps, in the column ``name`` (int64).

    The other arguments are those of `overlaps`. No pair is made.
    """
    left, right = intervals_of([(a, "a"), (b, "b")], by, start, end, closed)
    count = np.zeros(len(left.table), np.int64)
    if len(left.rows) and len(right.rows):
        found = join(bounds_of(left, "n"), bounds_of(right, "n"), on=OVERLAP, how="left", by="r", order="none",
                     aggregate={"found": "count(*)"}).to_arrow()
        count[found.column("n").to_numpy()] = found.column("found").to_numpy()
    return with_column(left.table, name, pa.array(count))


def coverage(a: Rows, b: Rows, *, by: str | Sequence[str] | None = None, start: str = "start", end: str = "end",
             closed: bool = False, name: str = "coverage") -> pa.Table:
    """The rows of ``a`` with how much of each the intervals of ``b`` cover, in the column ``name``: int64, in the unit
    of the bounds. What several of them cover counts once. The other arguments are those of `overlaps`.
    """
    left, right = intervals_of([(a, "a"), (b, "b")], by, start, end, closed)
    group, low, high, _, _ = united(right, 0)
    covered = np.zeros(len(left.table), np.int64)
    for own, theirs in _same_groups(left.group, group):
        begins, ends = low[theirs], high[theirs]
        before = np.concatenate([[0], np.cumsum(ends - begins)])

        def up_to(place: Numbers, begins: Numbers = begins, ends: Numbers = ends, before: Numbers = before) -> Numbers:
            at = np.searchsorted(begins, place, side="right")
            last = np.maximum(at - 1, 0)
            return before[at] - np.where(at > 0, np.maximum(ends[last] - place, 0), 0)

        covered[left.rows[own]] = up_to(left.high[own]) - up_to(left.low[own])
    return with_column(left.table, name, pa.array(covered))


def closest(a: Rows, b: Rows, *, by: str | Sequence[str] | None = None, start: str = "start", end: str = "end",
            closed: bool = False, k: int = 1, direction: str = "both", overlap: bool = True,
            strand: str | None = None, suffixes: tuple[str, str] = ("_a", "_b"),
            name: str = "distance") -> pa.Table:
    """The ``k`` intervals of ``b`` that are nearest to each interval of ``a``, nearest first.

    The distance is the gap: 0 for intervals that overlap or touch, and for half-open ``[0, 10)`` and ``[12, 20)`` it is
    2, as in bioframe and bedtools' older versions; PyRanges counts one more. Equally near ones come in the order of the
    rows of ``b``.

    Args:
        a: The first table, in whatever form `splitjoin.join` takes it.
        b: The second one.
        by: The columns that must be equal, such as ``"chrom"``; NULL equals nothing.
        start: The column in which intervals begin, of both tables: whole numbers, dates, times or durations.
        end: The column in which they end, of the same type.
        closed: True if the end belongs to an interval (GFF, VCF), False if not (BED).
        k: The most partners of a row.
        direction: ``"both"``, ``"upstream"`` (also those that end before) or ``"downstream"`` (those that start
            behind); what overlaps counts with each.
        overlap: False to leave out those that overlap.
        strand: The column of ``a`` in which ``"-"`` says that upstream is behind; any other value counts as ``"+"``.
        suffixes: What names that are in both tables get.
        name: The column of the distance.

    Returns:
        The columns of ``a`` and of ``b``, and ``name`` (int64); NULL beside rows of ``a`` without a partner.
    """
    if direction not in ("both", "upstream", "downstream"):
        raise OptionError(f"direction must be both, upstream or downstream, not {direction!r}")
    k = whole_number(k, "k", 1)
    left, right = intervals_of([(a, "a"), (b, "b")], by, start, end, closed)
    flipped = _flipped(left, strand)
    mine, theirs = overlapping(left, right) if overlap else (np.zeros(0, np.int64),) * 2
    parts = [(mine, theirs, np.zeros(len(mine), np.int64))]
    for behind in (False, True):
        wanted = np.ones(len(left.rows), bool) if direction == "both" else flipped == (behind != (
            direction == "downstream"))
        parts.append(_beyond(left, right, np.flatnonzero(wanted), behind, k))
    mine, theirs, distance = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((theirs, distance, mine))
    mine, theirs, distance = mine[order], theirs[order], distance[order]
    # Two empty intervals at one place are both before and behind each other.
    once = np.append(True, (mine[1:] != mine[:-1]) | (theirs[1:] != theirs[:-1]))[:len(mine)]
    mine, theirs, distance = mine[once], theirs[once], distance[once]
    first = np.searchsorted(mine, mine, side="left")
    near = np.arange(len(mine)) - first < k
    mine, theirs, distance = mine[near], theirs[near], distance[near]
    count = len(mine)
    mine, theirs, where = _with_alone(mine, theirs, len(left.table), np.arange(count))
    gap = pa.array(np.append(distance, 0)[where], mask=where == count)
    return with_column(_beside(left, right, mine, theirs, suffixes), name, gap)


def _beyond(left: Intervals, right: Intervals, chosen: Numbers, behind: bool,
            k: int) -> tuple[Numbers, Numbers, Numbers]:
    """Rows of the ``chosen`` intervals, of the ``k`` nearest that start ``behind`` them or end before, distances."""
    if not len(chosen) or not len(right.rows):
        return (np.zeros(0, np.int64),) * 3
    own = left.high[chosen] if behind else left.low[chosen]
    other = right.low if behind else right.high
    # Of equal times, the last is nearest backward, and the first forward.
    order = np.lexsort((right.rows if behind else -right.rows, other))
    mine = np.argsort(own, kind="stable")
    r = pa.table({"t": own[mine], "g": left.group[chosen][mine], "n": left.rows[chosen][mine]})
    s = pa.table({"t": other[order], "g": right.group[order], "m": right.rows[order]})
    found = join(r, s, on="r.g = s.g", time="t", how="asof", direction="forward" if behind else "backward", k=k,
                 select=["r.t", "s.t", "n", "m"]).to_arrow()
    t_r, t_s, n, m = (column.to_numpy() for column in found.columns)
    return n, m, np.abs(t_s - t_r)


def _flipped(left: Intervals, strand: str | None) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if strand is None:
        return np.zeros(len(left.rows), bool)
    if strand not in left.table.column_names:
        raise OptionError(f"strand must be a column of a, which has {', '.join(left.table.column_names)}, not "
                          f"{strand!r}")
    return np.array([value == "-" for value in left.table.column(strand).to_pylist()], bool)[left.rows]


def _with_alone(mine: Numbers, theirs: Numbers, size: int, *more: Numbers) -> tuple[Numbers, ...]:
    """Rows of pairs and, in their places, the rows that have none, with −1 (in ``more``: the number of pairs)."""
    alone = np.setdiff1d(np.arange(size), mine)
    order = np.argsort(np.concatenate([mine, alone]), kind="stable")
    fill = (-1, *[len(mine)] * len(more))
    return (np.concatenate([mine, alone])[order],
            *(np.concatenate([column, np.full(len(alone), value)])[order]
              for column, value in zip((theirs, *more), fill, strict=True)))


def _beside(left: Intervals, right: Intervals, mine: Numbers, theirs: Numbers, suffixes: tuple[str, str]) -> pa.Table:
    """The rows of both tables side by side; −1 is a row of NULL."""
    if not isinstance(suffixes, (tuple, list)) or len(suffixes) != 2 or not all(isinstance(s, str) for s in suffixes):
        raise OptionError(f"suffixes must be two texts, one for a and one for b, not {suffixes!r}")
    taken = [left.table.take(pa.array(mine)), right.table.take(pa.array(theirs, mask=theirs < 0))]
    both = set(left.table.column_names) & set(right.table.column_names)
    names = [name + suffix if name in both else name for table, suffix in zip(taken, suffixes, strict=True)
             for name in table.column_names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(f"the columns of the result must have different names, but {', '.join(twice)} would be there "
                          f"twice; give other suffixes than {suffixes}")
    return pa.table([column for table in taken for column in table.columns], names=names)


def _same_groups(a: Numbers, b: Numbers) -> list[tuple[Numbers, slice]]:
    """For each group of ``a`` that ``b``, which is sorted, has too: where ``a`` has it, and the slice of ``b``."""
    order = np.argsort(a, kind="stable")
    groups, first = np.unique(a[order], return_index=True)
    last = np.append(first, len(a))[1:]
    begin, end = np.searchsorted(b, groups, "left"), np.searchsorted(b, groups, "right")
    return [(order[i:j], slice(m, n)) for i, j, m, n in zip(first, last, begin, end, strict=True) if m < n]
