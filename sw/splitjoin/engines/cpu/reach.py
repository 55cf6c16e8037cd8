"""How far as-of joins look by conditions on floats: tested on chosen partners, as nearer ones pass if any does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from splitjoin.lang.ir import And, Arith, Cast, Cmp, Col, Expr, Lit
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.time_columns import TimeColumns
from splitjoin.lang.types import BOOL, Float

from ..arrival import Arrivals
from .pairs import PairTest, column_arrays

__all__ = ["Reach"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reach:
    """The terms of an as-of join's condition that hold of a partner if they hold of one farther away in time: ``<=`` of
    a number and the difference of both time columns, which are floats. Subtraction of floats does not fall.

    Attributes:
        query: The query without them.
        terms: Their conjunction; None if there are none.
    """

    query: Query
    terms: Expr | None

    @classmethod
    def of(cls, query: Query) -> Reach:
        """The reach of ``query``."""
        times, predicate = query.time, query.predicate
        if not query.kind.is_asof or times is None or not isinstance(times.type, Float):
            return cls(query, None)
        conjuncts = predicate.args if isinstance(predicate, And) else (predicate,)
        mine = [term for term in conjuncts if _is_reach(term, times)]
        others = tuple(term for term in conjuncts if term not in mine)
        rest = Lit(BOOL, True) if not others else others[0] if len(others) == 1 else And(BOOL, others)
        return cls(replace(query, predicate=rest), And(BOOL, tuple(mine)) if mine else None)

    def within(self, incoming: Arrivals, partners: Rows) -> Rows:
        """``partners`` of each tuple of R, (r,), or several (r, k), where −1 takes the place of those too far away."""
        if self.terms is None:
            return partners
        columns = {side: column_arrays(self.terms, side, incoming.table(side)) for side in SIDES}
        places = np.nonzero(partners >= 0)
        found = partners.copy()
        near = PairTest(self.terms).true("r", columns["r"], places[0], columns["s"], partners[places])
        found[places] = np.where(near, partners[places], -1)
        return found


def _is_reach(term: Expr, times: TimeColumns) -> bool:
    if not (isinstance(term, Cmp) and term.op == "<=" and isinstance(term.b, Lit)):
        return False
    apart, limit = term.a, term.b.value
    while isinstance(apart, Cast):
        apart = apart.a
    if not isinstance(apart, Arith) or apart.op != "-" or isinstance(limit, (str, bytes)) or limit is None or not (
            limit >= 0):
        return False
    sides = [e.a if isinstance(e, Cast) else e for e in (apart.a, apart.b)]
    return {(e.side, e.name) for e in sides if isinstance(e, Col)} == {("r", times.r), ("s", times.s)}
