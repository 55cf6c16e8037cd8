"""The way in which interval-join engines fold a user-defined aggregate, and the reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from splitjoin.lang.fold import Fold, scaled
from splitjoin.lang.ir import Arith, Case, Cmp, Col, Expr, Extreme, Lit
from splitjoin.lang.properties import value_range
from splitjoin.lang.types import EXACT

Range = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class UserWay:
    """``kind``: ``"remove"``, ``"merge"`` (two stacks) or ``"recompute"``. ``limit``: the number of partners up to
    which no state leaves its width, whatever they are; with more, the partners are folded anew. ``why``: in words.
    """

    kind: str
    limit: int
    why: str


def user_way(fold: Fold) -> UserWay | None:
    """The way for ``fold``; None if its numbers need more than 64 bits.

    ``remove`` and ``merge`` see states that the reference does not see, which checks the state after each partner. So
    they serve where a bound on the number of partners keeps all states within their widths.
    """
    from .user_source import compiles  # here, as numba takes a third of a second to import

    if not compiles(fold, "add"):
        return None
    limit = _limit(fold)
    for kind, program in (("remove", fold.remove), ("merge", fold.merge)):
        if program is not None and limit > 0 and compiles(fold, kind):
            how = "subtracted by remove" if kind == "remove" else "merged by two stacks"
            few = f", up to {limit:,} partners" if limit < 2**62 else ""
            return UserWay(kind, limit, how + few)
    why = ("it has neither remove nor merge" if fold.merge is None and fold.remove is None else
           "its state may leave its width in one order of partners and not in another")
    return UserWay("recompute", 0, f"folded anew for every base tuple, as {why}")


def _limit(fold: Fold) -> int:
    """The number of partners up to which no slot can leave its width; 2^62 if none ever does, 0 if it is not known."""
    limit = 2**62
    for slot, e in zip(fold.slots, fold.add.outputs, strict=True):
        low, high = slot.width.range
        least, most = value_range(e)
        if low <= least <= most <= high:
            continue
        per = 2**slot.width.fraction
        change = _Changes(slot.column("r"), per, dict(fold.add.steps)).of(e)
        if change is None:
            return 0
        down, up = change
        if up > 0:
            limit = min(limit, math.floor((high - slot.init) / up))
        if down < 0:
            limit = min(limit, math.floor((slot.init - low) / -down))
    return max(limit, 0)


class _Changes:
    """Bounds of differences to the slot ``column``, whose value is a whole number over ``per``."""

    def __init__(self, column: Col, per: int, steps: Mapping[Col, Expr]):
        self._column, self._per, self._steps = column, per, steps
        self._value = scaled(column, per)

    def of(self, e: Expr, true: frozenset[Expr] = frozenset()) -> Range | None:
        """The difference between the whole number ``e`` and the column, where the conditions ``true`` hold; None if it
        is not known.
        """
        if e == self._column:
            return Fraction(0), Fraction(0)
        if isinstance(e, Col) and e in self._steps:
            return self.of(self._steps[e], true)
        if isinstance(e, Case):
            return self._branches(e, true, self.of)
        if isinstance(e, Arith) and e.op == "//" and e.b == Lit(EXACT, Fraction(1, self._per)):
            change = self._of_value(e.a, true)  # what is rounded down is a whole number and the change
            return None if change is None else (Fraction(math.floor(change[0] * self._per)),
                                                Fraction(math.floor(change[1] * self._per)))
        return self._of_value(e, true) if self._per == 1 else None

    def _of_value(self, e: Expr, true: frozenset[Expr]) -> Range | None:
        """The difference between ``e`` and the slot's value."""
        if e == self._value:
            return Fraction(0), Fraction(0)
        if isinstance(e, Col) and e in self._steps:
            return self._of_value(self._steps[e], true)
        if isinstance(e, Arith) and e.op in ("+", "-"):
            (low, high), change = value_range(e.b), self._of_value(e.a, true)
            if change is not None:
                return (change[0] + low, change[1] + high) if e.op == "+" else (change[0] - high, change[1] - low)
            (low, high), change = value_range(e.a), self._of_value(e.b, true) if e.op == "+" else None
            return None if change is None else (change[0] + low, change[1] + high)
        if isinstance(e, Case):
            return self._branches(e, true, self._of_value)
        if isinstance(e, Extreme):
            return _hull([self._of_value(argument, true) for argument in e.args])
        return None

    def _branches(self, e: Case, true: frozenset[Expr],
                  of: Callable[[Expr, frozenset[Expr]], Range | None]) -> Range | None:
        parts: list[Range | None] = []
        for when, then in zip(e.when, e.then, strict=True):
            if when in true:  # as in an item of a tuple that is read and written by one index
                return _hull([*parts, of(then, true)])
            if not any(_excludes(known, when) for known in true):
                parts.append(of(then, true | {when}))
        return _hull([*parts, of(e.otherwise, true)])


def _excludes(known: Expr, when: Expr) -> bool:
    """True if ``when`` cannot be true where ``known`` is: two constants for one value."""
    return (isinstance(known, Cmp) and isinstance(when, Cmp) and known.op == when.op == "=" and known.a == when.a
            and isinstance(known.b, Lit) and isinstance(when.b, Lit) and known.b.value != when.b.value)


def _hull(parts: list[Range | None]) -> Range | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
