"""`with_sums_inside`: least and greatest over both streams outside of sums, where comparisons take them apart.

``least(r.b, s.b) - greatest(r.a, s.a) >= 75``, intervals that overlap by 75, becomes
``least(r.b - r.a, r.b - s.a, s.b - r.a, s.b - s.a) >= 75``: four comparisons, all of which must be true. As CASE, which
any other condition becomes, it would be cases that each need a join of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from splitjoin.lang.ir import And, Arith, Case, Cmp, Expr, Extreme, Not, Or, rebuilt, sides
from splitjoin.lang.types import EXACT, Exact, is_exact

__all__ = ["with_sums_inside"]

#: Operands of least and greatest that a sum or difference of such may expand to.
_MOST = 16
_OTHER: Mapping[Literal["least", "greatest"], Literal["least", "greatest"]] = {"least": "greatest", "greatest": "least"}


def with_sums_inside(e: Expr) -> Expr:
    """Condition ``e``, the same in three-valued logic, with sums and differences of whole numbers inside of least and
    greatest over both streams.
    """
    if len(sides(e)) < 2:
        return e
    if isinstance(e, (And, Or, Not, Case)):
        return rebuilt(e, [with_sums_inside(c) for c in e.children])
    return rebuilt(e, [_distributed(c) for c in e.children]) if isinstance(e, Cmp) else e


def _distributed(e: Expr) -> Expr:
    """A value with its outermost sums inside; an operand that is NULL makes its sums NULL, which are left out too."""
    if not (isinstance(e, Arith) and e.op in ("+", "-") and isinstance(e.type, Exact) and len(sides(e)) == 2):
        return e
    a, b = _distributed(e.a), _distributed(e.b)
    if isinstance(a, Extreme) and _is_mixed(a):
        kind, parts = a.kind, [(x, b) for x in a.args]
    elif isinstance(b, Extreme) and _is_mixed(b):
        kind, parts = b.kind if e.op == "+" else _OTHER[b.kind], [(a, x) for x in b.args]
    else:
        return e
    made = [_distributed(replace(e, a=x, b=y)) for x, y in parts]
    flat = tuple(y for x in made for y in (x.args if isinstance(x, Extreme) and x.kind == kind else (x,)))
    return Extreme(EXACT, kind, flat) if len(flat) <= _MOST else e


def _is_mixed(e: Expr) -> bool:
    return len(sides(e)) == 2 and is_exact(e.type)
