"""Texts of whole tables by rank: keys for comparisons that the first eight bytes do not decide."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.ir import Expr
from splitjoin.lang.schema import SIDES, Side
from splitjoin.plan.keys import Codes, PrefixKey, prefixes, texts_of
from splitjoin.plan.plan import Plan

from ..arrival import Arrivals
from .sorting import stable_order

__all__ = ["with_ranked_texts"]

#: Texts of more bytes keep their prefixes as keys.
_MOST_BYTES = 256


@dataclass(frozen=True)
class _RankKey:
    """A text of a whole table by its rank among all that it is compared with; 0 for NULL."""

    side: Side
    expr: Expr
    ranks: Codes = field(compare=False, repr=False)
    nullable: bool = True
    width: int = 32

    def values(self, table: pa.Table, texts: object = None) -> Vector:
        """The ranks, for every row of the table."""
        return Vector(self.ranks, self.ranks != 0)

    def encode(self, values: Vector) -> Codes:
        """The ranks themselves."""
        return values.values


def with_ranked_texts(plan: Plan, incoming: Arrivals) -> Plan:
    """``plan`` with ranks as the keys of texts, where some are longer than its keys and none is very long."""
    ranked = [(side, n, slot.key) for side in SIDES for n, slot in enumerate(plan.slots(side))
              if isinstance(slot.key, PrefixKey) and not slot.key.exact]
    texts = [texts_of(key.expr, incoming.table(side)) for side, _, key in ranked]
    if not texts:
        return plan
    sizes = [pc.fill_null(pc.binary_length(data), 0).to_numpy() for data in texts]
    longest = max((int(size.max(initial=0)) for size in sizes), default=0)
    if not min(key.bytes_ for *_, key in ranked) < longest <= _MOST_BYTES:
        return plan
    # Equal parts of eight bytes, with zeros behind the end, are of different texts only if their lengths differ.
    parts = [np.concatenate([prefixes(data, 8, start) for data in texts]) for start in range(0, longest, 8)]
    parts.append(np.concatenate(sizes).astype(np.uint64))
    order = np.arange(len(parts[0]))
    for part in reversed(parts):
        order = order[stable_order(part[order])]
    rises = np.zeros(len(order), np.bool_)
    for part in parts:
        rises[1:] |= part[order[1:]] != part[order[:-1]]
    ranks = np.empty(len(order), np.uint64)
    ranks[order] = np.cumsum(rises).astype(np.uint64) + np.uint64(1)
    slots = {side: list(plan.slots(side)) for side in SIDES}
    begin = 0
    for (side, n, key), data in zip(ranked, texts, strict=True):
        mine = ranks[begin:begin + len(data)]
        begin += len(data)
        if data.null_count:
            mine = np.where(data.is_valid().to_numpy(), mine, np.uint64(0))
        slots[side][n] = replace(slots[side][n], key=_RankKey(key.side, key.expr, mine))  # type: ignore[arg-type]  # for this plan only
    return replace(plan, slots_r=tuple(slots["r"]), slots_s=tuple(slots["s"]))
