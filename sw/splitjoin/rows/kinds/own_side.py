"""Tuples that their own side of the condition rules out, so that they are decided when they arrive (semantics,
section 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Mask
from splitjoin.lang.eval.vector import evaluate
from splitjoin.lang.ir import And, Cmp, Col, Expr, sides
from splitjoin.lang.properties import causes
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import plain


@dataclass(frozen=True)
class OwnSide:
    """The part of a query's condition that the tuples of one stream decide alone.

    Attributes:
        conditions: The terms of the condition that read no column of the other stream: each must be true.
        values: What comparisons with the other stream compute from this one's columns alone, as far as it can be NULL:
            none of it must be.
    """

    conditions: tuple[Expr, ...]
    values: tuple[Expr, ...]

    @classmethod
    def of(cls, query: Query, side: Side) -> OwnSide:
        """The part that tuples of stream ``side`` decide."""
        predicate = query.predicate
        terms = predicate.args if isinstance(predicate, And) else (predicate,)
        own = [term for term in terms if sides(term) <= {side}]
        values = [cause for term in terms if isinstance(term, Cmp) and not sides(term) <= {side}
                  for operand in term.children for cause in causes(operand) if sides(cause) <= {side}]
        return cls(tuple(own), tuple(dict.fromkeys(values)))

    def ruled_out(self, table: pa.Table) -> Mask:
        """True for each row of ``table``, tuples of the stream, that can be in no pair: bool (n,)."""
        found = np.zeros(len(table), np.bool_)
        for term in self.conditions if len(table) else ():
            vector = evaluate(term, table)
            found |= ~(vector.valid & vector.values.astype(np.bool_))
        for value in self.values if len(table) else ():
            if not isinstance(value, Col):
                found |= ~evaluate(value, table).valid
            elif (data := plain(table.column(value.name))).null_count:
                found |= data.is_null().to_numpy()
        return found
