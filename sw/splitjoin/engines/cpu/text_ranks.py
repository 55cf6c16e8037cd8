"""Texts of whole tables by rank: columns of whole numbers in the order of the texts that a condition compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

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


def with_ranked_texts(predicate: Expr, tables: Mapping[Side, pa.Table]) -> tuple[Expr, Mapping[Side, pa.Table]]:
    """``predicate`` with comparisons of whole numbers in place of those of texts of both streams by ``<`` and the like,
    and the ``tables`` with the columns of these: the rank of each text among all that are compared so, NULL for NULL.

    Both are as they were if there are no such comparisons, or if some text is very long.
    """
    nodes = [node for node, _ in distinct(predicate)]
    ranked = dict.fromkeys(e for node in nodes if isinstance(node, Cmp) and node.op not in ("=", "<>")
                           and _is_of_both(node) for e in (node.a, node.b))
    if not ranked:
        return predicate, tables
    texts = [texts_of(e, tables[next(iter(sides(e)))]) for e in ranked]
    ranks = _ranks(texts)
    if ranks is None:
        return predicate, tables
    with_ranks = dict(tables)
    made, begin = dict[Expr, Expr](), 0
    for n, (e, data) in enumerate(zip(ranked, texts, strict=True)):
        (side,) = sides(e)
        mine, begin = ranks[begin:begin + len(data)], begin + len(data)
        lacking = data.is_null().to_numpy() if data.null_count else None
        name = f"splitjoin rank {n}"
        with_ranks[side] = with_ranks[side].append_column(pa.field(name, pa.uint32()), pa.array(mine, mask=lacking))
        made[e] = Col(Int(32, signed=False), side, name, data.null_count > 0)
    return _compared_by(predicate, made), with_ranks


def _is_of_both(node: Cmp) -> bool:
    """True if ``node`` compares a text of one stream with one of the other."""
    of = sides(node.a), sides(node.b)
    return is_text(node.a.type) and is_text(node.b.type) and len(of[0]) == len(of[1]) == 1 and of[0] != of[1]


def _compared_by(predicate: Expr, columns: dict[Expr, Expr]) -> Expr:
    """``predicate`` with the ``columns`` in place of texts wherever two of these are compared."""
    made: list[Expr] = []
    for node, children in distinct(predicate):
        if isinstance(node, Cmp) and node.a in columns and node.b in columns:
            made.append(replace(node, a=columns[node.a], b=columns[node.b]))
        else:
            made.append(rebuilt(node, [made[i] for i in children]))
    return made[-1]


def _ranks(texts: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.uint32] | None:
    """The rank of each of ``texts``, one behind the other, by the order of bytes, from 0; None if one is too long."""
    sizes = np.concatenate([pc.fill_null(pc.binary_length(data), 0).to_numpy() for data in texts])
    longest = int(sizes.max(initial=0))
    if longest > _MOST_BYTES:
        return None
    # Equal parts of eight bytes, with zeros behind the end, are of different texts only if their lengths differ.
    parts = [np.concatenate([prefixes(data, 8, start) for data in texts]) for start in range(0, longest, 8)]
    parts = [part for part in (*parts, sizes.astype(np.uint64)) if len(part) and part.min() < part.max()]
    order: npt.NDArray[np.int64] | None = None
    for part in reversed(parts):
        order = stable_order(part) if order is None else order[stable_order(part[order])]
    ranks = np.zeros(len(sizes), np.uint32)
    if order is None:
        return ranks
    rises = np.zeros(len(order), np.bool_)
    for part in parts:
        sorted_part = part[order]
        rises[1:] |= sorted_part[1:] != sorted_part[:-1]
    ranks[order] = np.cumsum(rises, dtype=np.uint32)
    return ranks
