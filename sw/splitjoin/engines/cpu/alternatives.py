"""A condition with OR over whole tables as several joins: each pair is of the first alternative that is true of it.

The alternatives of ``a = b OR lo <= x AND x < hi`` are the equality and the range, each of which has a range of sorted
keys, whereas the whole condition has none, and would have all pairs compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from splitjoin.lang.ir import And, Case, Expr, IsNull, Lit, Not, Or, sides
from splitjoin.lang.query import Query
from splitjoin.lang.types import BOOL

from ..arrival import Arrivals
from .condition import Condition
from .runs_of_keys import Groups
from .spans import Spans
from .table_work import Work
from .ways import Way, ways

__all__ = ["Alternative", "alternatives_of", "disjuncts"]

Rows = npt.NDArray[np.int64]

#: The most alternatives: each reads and sorts the keys anew.
_MOST = 6


@dataclass(frozen=True)
class Alternative:
    """A join whose pairs are some of those of a query: by ``way``, but those of ``earlier`` ones."""

    way: Way
    condition: Condition
    groups: Groups
    earlier: Sequence[Condition] = ()

    def own(self, r: Rows, s: Rows) -> tuple[Rows, Rows]:
        """Those of the pairs (n,), all of which are of this alternative, that are of no earlier one."""
        for condition in self.earlier:
            mine = ~(condition.possible_r[r] & condition.possible_s[s] & condition.true(r, s))
            r, s = r[mine], s[mine]
        return r, s


def alternatives_of(query: Query, incoming: Arrivals, visible: Spans, work: Work) -> list[Alternative]:
    """The alternatives of the condition of ``query``, each by its best way; none if it has no OR of both streams."""
    terms = [term for term in disjuncts(query.predicate) if not (isinstance(term, Lit) and not term.value)]
    if not 1 < len(terms) <= _MOST:
        return []
    found, earlier = list[Alternative](), list[Condition]()
    for term in terms:
        condition = Condition(replace(query, predicate=term), incoming, work)
        groups = condition.groups()
        found.append(Alternative(ways(condition, groups, visible, work)[0], condition, groups, tuple(earlier)))
        earlier.append(condition)
    return found


def disjuncts(e: Expr) -> list[Expr]:
    """Conditions of which at least one is true exactly where ``e`` is true. A condition of one stream stays whole."""
    if len(sides(e)) < 2:
        return [e]
    match e:
        case Or():
            return [term for arg in e.args for term in disjuncts(arg)]
        case And():
            split = [disjuncts(arg) for arg in e.args]
            at = next((n for n, terms in enumerate(split) if len(terms) > 1), None)
            if at is None:
                return [e]
            return [_all([*e.args[:at], term, *e.args[at + 1:]]) for term in split[at]]
        case Case():
            before, found = list[Expr](), list[Expr]()
            for when, then in zip(e.when, e.then, strict=True):
                found += disjuncts(_all([*before, when, then]))
                before.append(Or(BOOL, (Not(BOOL, when), IsNull(BOOL, when))))
            return found + disjuncts(_all([*before, e.otherwise]))
    return [e]


def _all(terms: Sequence[Expr]) -> Expr:
    """The conjunction of ``terms``; FALSE if one of them is never true."""
    parts = reduce(lambda made, e: (*made, *(e.args if isinstance(e, And) else (e,))), terms, tuple[Expr, ...]())
    if any(isinstance(part, Lit) and not part.value for part in parts):
        return Lit(BOOL, False)
    parts = tuple(part for part in parts if not isinstance(part, Lit))
    return Lit(BOOL, True) if not parts else parts[0] if len(parts) == 1 else And(BOOL, parts)
