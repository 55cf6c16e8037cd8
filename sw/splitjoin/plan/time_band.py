"""`time_band`: the bounds that a condition itself sets to the event times of a pair, such as ``s.ts <= r.ts + 10``."""

from __future__ import annotations

from collections.abc import Iterator

from splitjoin.lang.ir import Col, Expr, Within
from splitjoin.lang.schema import Side
from splitjoin.lang.time_columns import TimeColumns

from .linear import ExactRelation, LinearTerm
from .passes.pipeline import make_plan

__all__ = ["time_band"]


def time_band(predicate: Expr, time: TimeColumns) -> dict[Side, int | None]:
    """The lengths that windows must have to lose no pair of ``predicate``: for each stream the most ticks by which the
    other stream's tuple may come after its own one, at least 0; None where the condition does not say.

    Only bounds count that every pair must keep: comparisons of the two time columns themselves and a constant, alone or
    in a conjunction. Columns in different units give no bounds.
    """
    least: list[int] = []  # of R's time less S's
    most: list[int] = []
    for relation in _required(predicate):
        if not (_is_time(relation.r, "r", time) and _is_time(relation.s, "s", time)):
            continue
        factor = relation.g * relation.r[0].factor  # positive or negative; of S it must be the opposite
        if factor + relation.h * relation.s[0].factor or relation.r[0].expr.type != relation.s[0].expr.type:
            continue
        ends_above = relation.op == "=" or (relation.op == "<=") == (factor > 0)
        ends_below = relation.op == "=" or not ends_above
        # factor · (R − S) + c op 0
        if ends_above:
            most.append(-relation.c // factor)
        if ends_below:
            least.append(-(relation.c // factor))
    return {"r": max(-max(least), 0) if least else None, "s": max(min(most), 0) if most else None}


def _required(predicate: Expr) -> Iterator[ExactRelation]:
    """The relations of whole numbers that every pair fulfils."""
    plan = make_plan(predicate)
    for j in plan.required:
        yield from (x for x in plan.tests[j].relations if isinstance(x, ExactRelation))


def _is_time(terms: tuple[LinearTerm, ...], side: Side, time: TimeColumns) -> bool:
    if len(terms) != 1 or terms[0].scale != 1:
        return False
    e = terms[0].expr
    e = e.a if isinstance(e, Within) else e
    return isinstance(e, Col) and e.name == time.name(side)
