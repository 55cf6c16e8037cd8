"""Identical rows of a table, which SQL's GROUP BY over the whole row puts into one group: base tuples as one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.engines.device import PAIR
from splitjoin.lang.types import plain

from .decided_bases import DecidedBases


def identical_rows(table: pa.Table) -> Ints | None:
    """For each row of ``table`` the first one with the same values: int64 (n,); None if all rows differ.

    NULL is like NULL, NaN like NaN and -0.0 like 0.0, as in SQL's GROUP BY.
    """
    size, rows = len(table), _suspects(table)
    if not len(rows):
        return None
    codes, count = np.zeros(len(rows), np.int64), min(1, len(rows))
    if len(rows) < len(table):
        table = table.take(rows)
    for column in table.columns:
        codes, count = _numbered(pa.array(codes * (len(rows) + 1) + _numbered(_comparable(column))[0]))
        if count == len(rows):
            return None
    if count == len(rows):
        return None
    # The codes are in the order in which they first occur.
    first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    found = np.arange(size)
    found[rows] = rows[first[codes]]
    return found


def _suspects(table: pa.Table) -> Ints:
    """The rows of ``table`` that may have the same values as others, by their columns of numbers and times alone."""
    rows, words = np.arange(len(table)), list[Ints]()
    for word in (_word(plain(of)) for of in table.columns):
        if word is None:
            continue
        words.append(word)
        same = word[1:] == word[:-1]
        if len(rows) == len(table) and 2 * np.count_nonzero(same) < len(same) and bool((word[1:] >= word[:-1]).all()):
            # Rows with equal values are neighbours.
            rows = np.flatnonzero(np.append(same, False) | np.append(False, same))
            if not len(rows):
                return rows  # such as numbers of rows
    if len(words) < 2:
        return rows
    mixed = np.zeros(len(rows), np.uint64)
    for word in words:
        mixed = (mixed ^ word.view(np.uint64)[rows]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    ordered = np.sort(mixed)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return rows[:0]
    return rows if len(twice) > len(rows) // 4 else rows[twice[np.minimum(
        np.searchsorted(twice, mixed), len(twice) - 1)] == mixed]


def _word(column: pa.ChunkedArray) -> Ints | None:
    """A number of 64 bits for each value of a ``column`` of numbers or times, the same for the same values; None for
    columns of others.
    """
    of = column.type
    numbers = pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_temporal(of)
    if not numbers or pa.types.is_interval(of):
        return None
    flat = _comparable(column)
    whole = flat if pa.types.is_integer(flat.type) else flat.view(f"int{of.bit_width}")
    word: Ints = whole.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return word


def _numbered(values: pa.Array) -> tuple[Ints, int]:
    """A number for each of ``values``, in the order in which different ones first occur; and how many there are."""
    found = values.dictionary_encode(null_encoding="encode")
    return found.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(found.dictionary)


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    """The values of ``column`` in a type by whose values Arrow can number them; nested ones as text."""
    column = plain(column)
    if pa.types.is_floating(column.type):
        values = column.to_numpy() if not column.null_count else column.combine_chunks().fill_null(0.0).to_numpy(
            zero_copy_only=False)
        bits = np.where(np.isnan(values), np.nan, values + 0.0).astype(np.float64).view(np.int64)
        return pa.array(bits, mask=column.is_null().to_numpy())
    if pa.types.is_nested(column.type) or pa.types.is_interval(column.type) or pa.types.is_null(column.type):
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    flat = column.combine_chunks()
    return flat if isinstance(flat, pa.Array) else pa.concat_arrays(flat.chunks)


def merged_bases(decided: DecidedBases, groups: Ints, *, lacking: bool) -> DecidedBases:
    """``decided`` with one base tuple for all of a group: the first that is decided, with the partners of all of them,
    by arrival.

    ``groups``: as of `identical_rows`. ``lacking``: True if a tuple without partners brings a row of NULL, as in SQL's
    LEFT JOIN: a partner -1, before all others.
    """
    lengths, partners = decided.lengths, decided.partners
    if lacking and (lone := np.flatnonzero(lengths == 0)).size:
        partners = np.insert(partners, np.cumsum(lengths)[lone], -1)
        lengths = np.maximum(lengths, 1)
    _, first, member = np.unique(groups[decided.bases], return_index=True, return_inverse=True)
    # Base tuples are decided in the order of their row ids, and groups come in the order of their first ones here.
    order = np.argsort(first)
    first, member = first[order], np.argsort(order)[member]
    group = np.repeat(member, lengths)
    order = np.lexsort((partners, group))
    others = np.ones(len(decided.bases), np.bool_)
    others[first] = False
    rows = np.flatnonzero(decided.items["kind"] == PAIR)
    return DecidedBases(np.delete(decided.items, rows[others]), decided.bases[first],
                        np.bincount(group, minlength=len(first)), partners[order])
