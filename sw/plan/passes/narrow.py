"""Pass ``narrow``: what must hold for every match bounds the columns, so that keys of the other terms need fewer bits.

``r.x BETWEEN 0 AND 99 AND abs(r.x - s.a) <= 10`` compares keys of r.x from 0 to 99 and of s.a from −10 to 109. A tuple
with another value matches nothing: there, its column counts as NULL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ...lang.denominator import denominator
from ...lang.ir import Abs, Cmp, Col, Expr, Lit, Within
from ...lang.nulls import causes
from ...lang.ranges import Range, value_range
from ...lang.traversal import rebuilt, sides
from ...lang.types import Date, Decimal, Duration, Int, Timestamp, is_exact
from ..linear import Total

__all__ = ["narrow"]

#: How often bounds are drawn from other bounds: a chain of columns gets one further each time.
_ROUNDS = 3


def narrow(conjuncts: Sequence[Expr]) -> list[Expr]:
    """``conjuncts``, all of which must hold, with the columns of those that read both streams narrowed.

    Selections stay as they are: they are what makes the narrowing right, or bounds of both streams are.
    """
    totals = [t for c in conjuncts if isinstance(c, Cmp) for t in _totals(c)]
    known: dict[Expr, Range] = {}
    for _ in range(_ROUNDS):
        before = dict(known)
        for total in totals:
            _bound(total, known)
        if known == before:
            break
    return [_narrowed(c, known) if len(sides(c)) == 2 else c for c in conjuncts]


def _totals(cmp: Cmp) -> Iterator[Total]:
    """Totals that are at most 0 where ``cmp`` is true."""
    if cmp.op == "<>" or not _is_whole(cmp.a) or any(isinstance(c, Lit) for c in (*causes(cmp.a), *causes(cmp.b))):
        return  # a NULL among the literals is never true
    total, op = Total.compared(cmp)
    for t in (total,) if op == "<=" else (total, total.times(-1)):
        signs = [e for e in t.terms if isinstance(e, Abs)]
        if len(signs) == 1 and t.terms[signs[0]] > 0:
            inner, f = Total.of(signs[0].a), t.terms[signs[0]]
            yield from (t.without(*signs).plus(inner, sign * f) for sign in (1, -1))
        else:
            yield t


def _is_whole(e: Expr) -> bool:
    return is_exact(e.type) or isinstance(e.type, (Date, Timestamp, Duration))


def _bound(total: Total, known: dict[Expr, Range]) -> None:
    """Draw from ``total <= 0`` what the others' least values leave for each column."""
    least = {e: min(f * v for v in known.get(e, value_range(e))) for e, f in total.terms.items()}
    for e, f in total.terms.items():
        if not isinstance(e, Col) or not isinstance(e.type, (Int, Decimal, Date, Timestamp, Duration)):
            continue
        most = -(total.constant + sum(least.values()) - least[e]) / f  # of the column: an upper end for f > 0
        low, high = known.get(e, value_range(e))
        low, high = (low, min(high, most)) if f > 0 else (max(low, most), high)
        if low <= high:  # else nothing matches, and the conjunct says so itself
            known[e] = low, high


def _narrowed(e: Expr, known: Mapping[Expr, Range]) -> Expr:
    if isinstance(e, Col) and e in known:
        unit, full = denominator(e), value_range(e)
        low, high = math.ceil(known[e][0] * unit), math.floor(known[e][1] * unit)
        before = int((full[1] - full[0]) * unit) + e.nullable
        # NULL needs a code: that may be as many bits as before.
        worth = low <= high and (high - low + 1).bit_length() < before.bit_length()
        return Within(e.type, e, low, high) if worth else e
    return rebuilt(e, [_narrowed(c, known) for c in e.children])
