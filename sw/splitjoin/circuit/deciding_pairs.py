"""The choice of the pairs that a circuit gives for a join of kind semi, anti or as-of: those that decide its rows.

For a tuple of R, the partners that were stored before it are folded in the circuit: to whether there are some, or to
the row id of the newest or the oldest one. Of those that come later, only the first one leaves where it decides. The
host decides the rows from these pairs as it does from all (`splitjoin.rows.kinds`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang import build
from splitjoin.lang.ir import CmpOp, Expr
from splitjoin.lang.kind import Kind
from splitjoin.lang.query import Query

from .fold_parts import FoldPart, FoldValue, empty_part, extreme_part
from .folding import FoldChoice, StoredValue, check_folds
from .parameters import CircuitParameters
from .plan import CircuitPlan
from .wire import ROW_BITS

#: What of the earlier partners of a tuple of R is folded, in words.
_FOLDED = {"": "whether there is one", "max": "the newest one", "min": "the oldest one"}


@dataclass(frozen=True)
class DecidingPairs:
    """The way in which a circuit gives the pairs that decide.

    ``query``: the inner join that it runs, with windows and a condition narrowed to what can decide. ``partner``: of
    the earlier partners of each tuple of R the "max" or "min" row id is folded; "" for whether there is one.
    ``first``: of the later ones only the first one leaves. ``later``: which of the later ones leave, in words.
    """

    query: Query
    partner: str
    first: bool
    later: str = "the first one leaves"

    @property
    def folding(self) -> FoldChoice:
        """The fold that the circuit computes."""
        if not self.partner:
            return FoldChoice((), (empty_part(),), ())
        row: FoldPart = extreme_part(0, 0, 2**ROW_BITS - 1, self.partner)
        return FoldChoice((StoredValue(None, FoldValue(ROW_BITS, False, False, row=True)),), (row,), ())

    def __str__(self) -> str:
        return (f"of the partners that come before a tuple of R, {_FOLDED[self.partner]} leaves; of those that come "
                f"after it, {self.later}")


def deciding_pairs(query: Query) -> DecidingPairs:
    """The deciding pairs of ``query``, which `Query.needs_few_pairs`."""
    kind = query.kind
    if not kind.is_asof:
        return DecidingPairs(query.pairs, "", True)
    narrow = query.narrowed.pairs
    if query.time is not None and not kind.allow_exact:
        narrow = replace(narrow, predicate=build.and_([query.predicate, _times_apart(query, kind)], "the condition"))
    # Later partners precede, and earlier ones follow, a tuple of R by event time only where both have the same.
    if kind.direction == "backward":
        some = query.time is not None and kind.allow_exact
        return DecidingPairs(narrow, "max", False, "those of the same time leave" if some else "none decides")
    if kind.direction == "forward":
        return DecidingPairs(narrow, "min", True)
    # Of later partners at the same time the last one is the nearest, so that no first one can stand for them.
    if query.time is not None and kind.allow_exact:
        return DecidingPairs(narrow, "max", False, "all leave")
    return DecidingPairs(narrow, "max", True)


def check_decides(found: DecidingPairs, plan: CircuitPlan, parameters: CircuitParameters) -> None:
    """Raise `UnsupportedError`, with the reason, if no circuit with ``parameters`` and ``plan`` gives these pairs."""
    try:
        check_folds(plan, parameters)
    except UnsupportedError as error:
        raise UnsupportedError(f"{error}; so all pairs leave") from error


def _times_apart(query: Query, kind: Kind) -> Expr:
    assert query.time is not None
    r, s = build.column(query.r, query.time.r), build.column(query.s, query.time.s)
    operators: dict[str, CmpOp] = {"backward": "<", "forward": ">", "nearest": "<>"}
    return build.compare(operators[kind.direction], s, r, "the times")
