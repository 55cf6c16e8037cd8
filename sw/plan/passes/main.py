"""Pass ``main``: the test by which an index core finds candidates, so that it need not look at every stored tuple.

It must hold for every match: one in the outermost AND. Best is a test of which a probe asks a single key (an equality),
by hash; else one whose intervals hold a small part of the keys, by buckets of neighbouring keys.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..keys import ExactKey, Key, UnitKey, WideKey
from ..linear import ExactRelation
from ..plan import Main, Plan, Test
from ..relations import FloatBand, FloatOrder, Relation, WideRelation

__all__ = ["choose_main"]

#: Of the keys, the part that an interval may hold at most for buckets to save work.
_MOST = Fraction(1, 4)
#: What is assumed of float bands, whose keys are not spread evenly.
_FLOATS = Fraction(1, 64)


def choose_main(plan: Plan) -> Plan:
    """``plan`` with its main test chosen."""
    return replace(plan, main=_main(plan))


def _main(plan: Plan) -> Main:
    known = [j for j in plan.required if not isinstance(plan.slots_s[plan.tests[j].s].key, UnitKey)]
    if not known:
        return Main(None, None, "no test must hold for every match")
    points = [j for j in known if plan.tests[j].is_point]
    if points:
        best = max(points, key=lambda j: _codes(_keys(plan, plan.tests[j])[1]))
        others = f", of {len(points)} the one with most keys" if len(points) > 1 else ""
        return Main(best, "hash", f"T{best}: a probe asks for one key{others}")
    parts = {j: _part(plan, plan.tests[j]) for j in known}
    best = min(known, key=lambda j: parts[j])
    part = parts[best]
    if part > _MOST:
        return Main(None, None, f"T{best}: an interval may hold {'all keys' if part == 1 else 'too many'}"
                                f"{'' if part == 1 else f' of the keys, {float(part):.0%}'}")
    share = "a small part of the floats" if part == _FLOATS else f"{float(part):.2g} of the keys at most"
    return Main(best, "bucket", f"T{best}: an interval holds {share}")


def _keys(plan: Plan, test: Test) -> tuple[Key, Key]:
    return plan.slots_r[test.r].key, plan.slots_s[test.s].key


def _codes(key: Key) -> int:
    return key.high - key.low + 1 if isinstance(key, ExactKey) else 2**key.width


def _part(plan: Plan, test: Test) -> Fraction:
    """The largest part of the other stream's keys that a probe of either stream may ask for."""
    parts = []
    for side, key in zip(("r", "s"), _keys(plan, test), strict=True):
        if isinstance(key, (ExactKey, WideKey)):
            parts.append(_exact_part(test.relations, side, key))
        else:
            ops = {x.op for x in test.relations if isinstance(x, (FloatBand, FloatOrder))}
            both = bool(ops & {"<", "<="}) and bool(ops & {">", ">="})
            parts.append(_FLOATS if both or "=" in ops else Fraction(1))
    return max(parts)


def _exact_part(relations: tuple[Relation, ...], side: str, key: ExactKey | WideKey) -> Fraction:
    """As `_part`, of the keys of stream ``side``: the interval between parallel bounds from below and from above."""
    exact = key.exact if isinstance(key, WideKey) else key
    ends: dict[tuple[Fraction, bool], Fraction] = {}
    for x in relations:
        linear = x.exact if isinstance(x, WideRelation) else x
        if not isinstance(linear, ExactRelation) or linear.op == "=":
            continue
        mine, theirs = linear.factors(side)  # mine·key + theirs·probe + c op 0: key op' slope·probe + at
        slope, at = Fraction(-theirs, mine), Fraction(-linear.c, mine)
        upper = (linear.op == "<=") == (mine > 0)
        tighter = min if upper else max
        ends[slope, upper] = tighter(ends.get((slope, upper), at), at)
    lengths = [ends[slope, True] - low + 1 for (slope, upper), low in ends.items()
               if not upper and (slope, True) in ends]
    return min([Fraction(1), *(length / (exact.high - exact.low + 1) for length in lengths)])
