"""Pass ``prune``: leaves out tests that would exclude hardly any pair.

Where the host verifies a conjunct, its tests only spare it candidates. A test takes comparators in every core, and bits
in every record and stored tuple: it stays if by the ranges of its keys it excludes `LEAST` of the pairs. The share is
estimated for keys that are spread evenly over their ranges, and independent; it is not known for floats and texts,
whose tests stay.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np

from splitjoin.lang import build
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.properties import causes

from ..forms import TRUE, Compared, Form, Junction, OneSided, junction
from ..keys import ExactKey, WideKey
from ..linear import ExactRelation
from ..relations import Product, Unit, WideRelation, interval

#: The least share of the pairs that a test excludes. The tests of a 16-bit comparison take some 10 % of a small core's
#: LUTs, and add as much to a record as other keys; one more candidate in 32 costs less than that.
LEAST = Fraction(1, 32)
#: Keys that a share is estimated from.
_SAMPLES = 64


def pruned(form: Form) -> Form:
    """``form`` without tests that exclude less than `LEAST` of the pairs: it is true for a few pairs more."""
    if isinstance(form, Compared) and excluded(form) < LEAST:
        return junction("and", _present(form))
    if isinstance(form, Junction) and form.args:
        if form.op == "or" and excluded(form) < LEAST:
            return TRUE
        return junction(form.op, map(pruned, form.args))
    return form


def excluded(form: Form) -> Fraction:
    """The share of pairs for which ``form`` is false, estimated; 1 where nothing is known."""
    if isinstance(form, Junction):
        parts = [excluded(a) for a in form.args]
        if form.op == "and":
            return 1 - reduce(lambda a, b: a * (1 - b), parts, Fraction(1))
        return reduce(lambda a, b: a * b, parts, Fraction(1))
    return _excluded(form) if isinstance(form, Compared) else Fraction(1)


def _excluded(test: Compared) -> Fraction:
    """The share of pairs that ``test`` excludes, from the intervals of keys of R, spread over their range."""
    if not isinstance(test.r, (ExactKey, WideKey)) or not isinstance(test.s, (ExactKey, WideKey)) or not all(
            isinstance(x, (ExactRelation, WideRelation, Product, Unit)) for x in test.relations):
        return Fraction(1)
    r, s = (key.exact if isinstance(key, WideKey) else key for key in (test.r, test.s))
    count = r.high - r.low + 1
    some = [r.low + (2 * n + 1) * count // (2 * _SAMPLES) for n in range(_SAMPLES)] if count > _SAMPLES else [
        *range(r.low, r.high + 1)]
    values = np.array(some, np.int64 if r.low >= -(2**63) and r.high < 2**63 else object)
    probes = Vector(values, np.ones(len(some), np.bool_))
    ends = [interval(x, "r", probes, test.r, test.s) for x in test.relations]
    held = 0
    for lows, highs in zip(zip(*(low.tolist() for low, _ in ends), strict=True),
                           zip(*(high.tolist() for _, high in ends), strict=True), strict=True):
        held += max(0, min(highs) - max(lows) + 1)
    last, first = (int(test.s.code(np.array([end], object))[0]) for end in (s.high, s.low))
    return 1 - Fraction(held, len(some) * (last - first + 1))


def _present(test: Compared) -> tuple[OneSided, ...]:
    """The conditions that the values that ``test`` compares are not NULL, which it implies."""
    found: list[OneSided] = []
    for key in (test.r, test.s):
        terms = key.terms if isinstance(key, ExactKey) else key.exact.terms if isinstance(key, WideKey) else ()
        found += [OneSided(key.side, build.is_null(c, str(c)), frozenset(("false",))) for t in terms
                  for c in causes(t.expr)]
    return tuple(found)
