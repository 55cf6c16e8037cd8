"""Pass ``width``: interval tests whose intervals are all as wide need the low end alone, for circuits that scan.

A band of whole numbers, ``|x − y| <= c``, becomes one subtraction and a comparison with a constant; an equality a
comparison for being equal. Half of what a probe brings and holds is saved.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...plan.keys import ExactKey
from ...plan.linear import ExactRelation
from ...plan.plan import Plan, Test
from ...plan.relations import Relation
from ..delays import equality, width_digits
from ..plan import CircuitPlan

__all__ = ["constant_widths"]

#: Bits of a key, at most: a low end has one more, and records are made of numbers of 64.
_BITS = 63


def constant_widths(plan: CircuitPlan, clock: float | None) -> CircuitPlan:
    """``plan`` with its `CircuitPlan.widths`.

    Only tests of cores that scan have any: an index needs both ends of its intervals. And none has where ``clock``, in
    MHz, is too high for it, as comparisons can be cut into parts and this cannot.
    """
    if plan.core.index:
        return plan
    return replace(plan, widths=tuple(_width(plan, t, clock) for t in plan.tests))


def _width(plan: Plan, test: Test, clock: float | None) -> int | None:
    slots = plan.slots_r[test.r], plan.slots_s[test.s]
    bits = [slot.key.width for slot in slots]
    period = 1000 / clock if clock else math.inf
    if max(bits) > _BITS:
        return None
    if test.is_point:
        return 0 if equality(max(bits) + 1).ns <= period else None
    # A stored NULL has code 0, which intervals that begin further down would hold.
    if any(slot.null_code or not isinstance(slot.key, ExactKey) for slot in slots):
        return None
    found = _constant(test.relations)
    if found is None or found >= 2**min(bits) or width_digits(max(bits) + 1).ns > period:
        return None
    return found


def _constant(relations: tuple[Relation, ...]) -> int | None:
    """How much more than its low end the high end of every interval is, if that is always the same."""
    exact = [x for x in relations if isinstance(x, ExactRelation)]
    if len(relations) != 2 or len(exact) != 2 or {x.op for x in exact} != {"<=", ">="}:
        return None
    below, above = sorted(exact, key=lambda x: x.op)
    if (below.g, below.h) != (above.g, above.h) or abs(below.g) != 1 or abs(below.h) != 1:
        return None
    wide = above.c - below.c
    return wide if wide >= 0 else None
