"""Texts of whole tables by rank: columns of whole numbers in the order of the texts that a condition compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.lang.ir import Cmp, Col, Expr, distinct, rebuilt, sides
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Int, is_text
from splitjoin.plan.keys import prefixes, texts_of

from .sorting import stable_order

__all__ = ["with_ranked_texts"]

#: Texts of more bytes keep their prefixes as keys.
_MOST_BYTES = 256
#: Texts of more bytes seldom differ in so few that these fit one number.
_PACKED_BYTES = 16

Codes = npt.NDArray[np.unsignedinteger[Any]]


def with_ranked_texts(predicate: Expr, tables: Mapping[Side, pa.Table]) -> tuple[Expr, Mapping[Side, pa.Table]]:
    """``predicate`` with comparisons of whole numbers in place of comparisons between texts of both streams, and the
    ``tables`` with the columns of these numbers, NULL for NULL.

    The number of a text is its rank among all that are compared by ``<`` and the like; if it is compared by ``=`` and
    ``<>`` alone, any number that equal texts share. Comparisons by rank stay as they are if a text is very long.
    """
    found = dict(tables)
    compared = [node for node, _ in distinct(predicate) if isinstance(node, Cmp) and _is_of_both(node)]
    ordered = dict.fromkeys(e for node in compared if node.op not in ("=", "<>") for e in (node.a, node.b))
    ranks = _columns(list(ordered), found, "rank", _ranks)
    others = dict.fromkeys(e for node in compared if node.op in ("=", "<>") and not {node.a, node.b} <= ordered.keys()
                           for e in (node.a, node.b))
    numbers = _columns(list(others), found, "number", _numbers)
    return (_compared_by(predicate, ranks, numbers), found) if ranks or numbers else (predicate, tables)


def _columns(texts: Sequence[Expr], tables: dict[Side, pa.Table], what: str,
             code: Callable[[Sequence[pa.ChunkedArray]], Codes | None]) -> dict[Expr, Expr]:
    """Columns of the ``tables``, to which they are added, for each of ``texts``, by what ``code`` makes of all values,
    one behind the other; none if it makes nothing.
    """
    values = [texts_of(e, tables[next(iter(sides(e)))]) for e in texts]
    codes = code(values) if values else None
    made, begin = dict[Expr, Expr](), 0
    for n, (e, data) in enumerate(zip(texts, values, strict=True) if codes is not None else ()):
        (side,) = sides(e)
        mine, begin = codes[begin:begin + len(data)], begin + len(data)  # type: ignore[index]  # there are some
        lacking = data.is_null().to_numpy() if data.null_count else None
        name = next(name for k in count(n) if (name := f"splitjoin {what} {k}") not in tables[side].column_names)
        column = pa.array(mine, mask=lacking)
        tables[side] = tables[side].append_column(pa.field(name, column.type), column)
        made[e] = Col(Int(column.type.bit_width, signed=False), side, name, data.null_count > 0)
    return made


def _is_of_both(node: Cmp) -> bool:
    """True if ``node`` compares a text of one stream with one of the other."""
    of = sides(node.a), sides(node.b)
    return is_text(node.a.type) and is_text(node.b.type) and len(of[0]) == len(of[1]) == 1 and of[0] != of[1]


def _compared_by(predicate: Expr, ranks: dict[Expr, Expr], numbers: dict[Expr, Expr]) -> Expr:
    """``predicate`` with columns in place of texts wherever two of these are compared that have ``ranks``, or for ``=``
    and ``<>`` ``numbers``.
    """
    made: list[Expr] = []
    for node, children in distinct(predicate):
        of = ranks if isinstance(node, Cmp) and {node.a, node.b} <= ranks.keys() else numbers
        if isinstance(node, Cmp) and {node.a, node.b} <= of.keys() and (of is ranks or node.op in ("=", "<>")):
            made.append(replace(node, a=of[node.a], b=of[node.b]))
        else:
            made.append(rebuilt(node, [made[i] for i in children]))
    return made[-1]


def _numbers(texts: Sequence[pa.ChunkedArray]) -> Codes | None:
    """A number for each of ``texts``, one behind the other, equal for equal ones; None if they are too many."""
    if (packed := _packed(texts)) is not None:
        return packed
    chunks = [chunk.cast(pa.large_binary()) for data in texts for chunk in data.chunks]
    if not chunks:
        return np.empty(0, np.uint32)
    try:
        found = pa.concat_arrays(chunks).dictionary_encode().indices
    except pa.ArrowException:  # more values than a dictionary has numbers
        return None
    numbers: npt.NDArray[np.uint32] = pc.fill_null(found, 0).to_numpy().astype(np.uint32)
    return numbers


def _parts(texts: Sequence[pa.ChunkedArray], most: int) -> list[npt.NDArray[np.uint64]] | None:
    """All values of ``texts`` as columns of uint64: eight bytes in each, with zeros behind the end, and last their
    lengths, which alone tell a text from one with further zeros. None if one has more than ``most`` bytes.
    """
    sizes = np.concatenate([pc.fill_null(pc.binary_length(data), 0).to_numpy() for data in texts])
    longest = int(sizes.max(initial=0))
    if longest > most:
        return None
    parts = [np.concatenate([prefixes(data, 8, start) for data in texts]) for start in range(0, longest, 8)]
    return [*parts, sizes.astype(np.uint64)]


def _packed(texts: Sequence[pa.ChunkedArray]) -> Codes | None:
    """The bytes of each of ``texts`` that differ at all, and its length, in one number; None if they do not fit."""
    parts = _parts(texts, _PACKED_BYTES)
    if parts is None:
        return None
    found, bits = np.zeros(len(parts[-1]), np.uint64), 0
    for part in parts:
        least = part.min(initial=2**64 - 1)
        above = part - least
        used = int(np.bitwise_or.reduce(above))
        if not used:
            continue
        end = (used & -used).bit_length() - 1  # bits that are 0 in all
        width = (used >> end).bit_length()
        bits += width
        if bits > 62:
            return None
        found = found << np.uint64(width) | above >> np.uint64(end)
    return found


def _ranks(texts: Sequence[pa.ChunkedArray]) -> Codes | None:
    """The rank of each of ``texts``, one behind the other, by the order of bytes, from 0; None if one is too long."""
    every = _parts(texts, _MOST_BYTES)
    if every is None:
        return None
    parts = [part for part in every if len(part) and part.min() < part.max()]
    order: npt.NDArray[np.int64] | None = None
    for part in reversed(parts):
        order = stable_order(part) if order is None else order[stable_order(part[order])]
    ranks = np.zeros(len(every[-1]), np.uint32)
    if order is None:
        return ranks
    rises = np.zeros(len(order), np.bool_)
    for part in parts:
        sorted_part = part[order]
        rises[1:] |= sorted_part[1:] != sorted_part[:-1]
    ranks[order] = np.cumsum(rises, dtype=np.uint32)
    return ranks
