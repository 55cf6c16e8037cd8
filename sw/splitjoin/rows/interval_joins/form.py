"""The form of a query that an interval-join engine can run, or the reason why none can, also in words.

An engine of this package looks partners up by an equality of keys within an interval of arrival order, and folds them
without making pairs. So every term of the condition must be an equality between the streams or a selection on one of
them, and what is aggregated must belong to S alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.equalities import Equalities
from splitjoin.lang.fold import Width
from splitjoin.lang.ir import Expr, sides, text
from splitjoin.lang.properties import denominator, value_range
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Bool, Date, Duration, Float, Timestamp, is_exact

from .user_form import UserWay, user_way


@dataclass(frozen=True)
class Feed:
    """A number of each S tuple that primitives fold: of ``value``, valid where it and ``also`` are not NULL.

    ``mode``: ``"order"`` for a whole number with the order of the values, ``"number"`` for the one to be summed, a
    whole number over a common denominator or the bits of a float64, ``"valid"`` if only NULL matters, ``"argument"``
    for an argument of a user-defined aggregate, of this ``width``; ``beside``: its other arguments and their widths, of
    which the validity tells too.
    """

    value: Expr
    mode: Literal["order", "number", "valid", "argument"]
    also: Expr | None = None
    width: Width | None = None
    beside: tuple[tuple[Expr, Width], ...] = ()


@dataclass(frozen=True)
class Primitive:
    """A term that an engine folds: ``kind`` is one of ``"count"``, ``"int sum"``, ``"float sum"``, ``"least"``,
    ``"greatest"``, ``"distinct"``; ``feed`` its number in `IntervalForm.feeds`.
    """

    kind: str
    feed: int


@dataclass(frozen=True)
class UserPrimitive:
    """The term of a user-defined aggregate, the numbers of its arguments' feeds, and how engines fold it."""

    term: FoldTerm
    feeds: tuple[int, ...]
    way: UserWay


@dataclass(frozen=True)
class IntervalForm:
    """A query as an interval join.

    Attributes:
        query: The query.
        keys: The pairs of expressions, R's and S's, that must be equal; none if all tuples have one key.
        selections: The terms over R alone, and over S alone.
        feeds: The numbers of S tuples that are folded.
        primitives: What is folded.
        of: For each aggregate of the query, the numbers of the primitives for its terms, −1 for those that every engine
            has: how many partners there are, the first, and the last one. For a user-defined one, its number in
            ``users``.
        users: The user-defined aggregates.
    """

    query: Query
    keys: tuple[tuple[Expr, Expr], ...]
    selections: Mapping[Side, tuple[Expr, ...]]
    feeds: tuple[Feed, ...]
    primitives: tuple[Primitive, ...]
    of: tuple[tuple[int, ...], ...]
    users: tuple[UserPrimitive, ...] = ()

    @property
    def by_arrival(self) -> bool:
        """True if an aggregate depends on the order of the partners."""
        kinds = {term.kind for a in self.query.aggregates for term in a.terms}
        return not kinds <= {"rows", "count", "distinct", "sum"}

    @property
    def needs_ends(self) -> bool:
        """True if an aggregate is of the first or the last partner."""
        return any(term.kind in ("first", "last") for a in self.query.aggregates for term in a.terms)


def interval_form(query: Query) -> IntervalForm | str:
    """``query`` as an interval join; a text with the reason where it is none."""
    if not query.aggregates:
        return "the query has no aggregates"
    equal = Equalities.of(query.predicate)
    if equal.rest:
        return f"{text(equal.rest[0])} is neither an equality between r and s nor a condition on one of them"
    feeds: list[Feed] = []
    primitives: list[Primitive] = []
    of_each: list[tuple[int, ...]] = []
    users: list[UserPrimitive] = []
    for aggregate in query.aggregates:
        if any("r" in sides(e) for e in aggregate.args):
            return f"{aggregate.text!r} reads columns of r"
        if not aggregate.terms or not all(term.slides for term in aggregate.terms):
            return f"{aggregate.text!r} is folded from pairs alone"
        of_terms = []
        for one in aggregate.terms:
            number = (_user_number(one, feeds, users) if isinstance(one, FoldTerm) else
                      _primitive_number(one, feeds, primitives))
            if number is None and isinstance(one, FoldTerm):
                return f"{aggregate.text!r} needs numbers of more than 64 bits"
            if number is None:
                return f"{aggregate.text!r} needs values that fit 64 bits, but these are {one.arguments[0].type}"
            of_terms.append(number)
        of_each.append(tuple(of_terms))
    return IntervalForm(query, equal.keys, equal.selections, tuple(feeds), tuple(primitives), tuple(of_each),
                        tuple(users))


def _user_number(term: FoldTerm, feeds: list[Feed], users: list[UserPrimitive]) -> int | None:
    """The number of the user-defined aggregate, which is added; None if its numbers need more than 64 bits."""
    way = user_way(term.fold)
    if way is None:
        return None
    numbers, given = [], [(e, a.width) for e, a in zip(term.args, term.fold.arguments, strict=True)]
    for at, (e, width) in enumerate(given):
        feed = Feed(e, "argument", width=width, beside=() if at else tuple(given[1:]))
        if feed not in feeds:
            feeds.append(feed)
        numbers.append(feeds.index(feed))
    users.append(UserPrimitive(term, tuple(numbers), way))
    return len(users) - 1


def _primitive_number(term: Term, feeds: list[Feed], primitives: list[Primitive]) -> int | None:
    """The number of the primitive that folds ``term``, which is added if it is new; −1 for a term that every engine
    has, None if its values do not fit 64 bits.
    """
    of = term.of
    if of is None:
        return -1
    if term.kind == "count":
        # What is folded of a value anyway counts it too.
        for n, one in enumerate(primitives):
            if feeds[one.feed].value == of and feeds[one.feed].also is None:
                return n
        kind, feed = "count", Feed(of, "valid")
    elif not _has_order(of):
        return None
    elif term.kind == "sum":
        kind, feed = "float sum" if isinstance(of.type, Float) else "int sum", Feed(of, "number")
    else:
        kind, feed = term.kind, Feed(of, "order", None if term.value in (None, of) else term.value)
    if feed not in feeds:
        feeds.append(feed)
    primitive = Primitive(kind, feeds.index(feed))
    if primitive not in primitives:
        primitives.append(primitive)
    return primitives.index(primitive)


def _has_order(e: Expr) -> bool:
    """True if whole numbers of 64 bits have the order of the values of ``e``."""
    if is_exact(e.type):
        low, high = value_range(e)
        per = denominator(e)
        return low * per >= -(2**63) and high * per < 2**63
    return isinstance(e.type, (Float, Bool, Date, Timestamp, Duration))


def explain_engine(query: Query) -> str:
    """The engine that folds the aggregates of ``query`` on the CPU by default, and the reason."""
    form = interval_form(query)
    ranges = "; over whole tables by ranges of rows" if all(a.reads_ranges for a in query.aggregates) else ""
    if isinstance(form, str):
        decided = ", if equalities and one other key decide" if ranges else ""
        return f"pairs, which the host folds, as {form}{ranges}{decided}"
    anew = any(user.way.kind == "recompute" for user in form.users)
    why = "it makes no pairs" if anew else "it does the same work a tuple for every window and lateness"
    others = no_interval(query)
    beside = "key-oij and scale-oij could run it too" if not others else f"not key-oij or scale-oij, as {others}"
    return f"sliding, as {why}; {folding(form, 'sliding')}; {beside}{ranges}"


def no_interval(query: Query) -> str:
    """The reason why a base tuple has no interval of time; empty if it has one."""
    if query.time is None:
        return "the query has no time column"
    for side in ("r", "s"):
        window = query.window(side)
        if window.rows is not None or window.length is None:
            return f"{side.upper()}'s window is not RANGE alone"
    return ""


def folding(form: IntervalForm, name: str) -> str:
    """A sentence on how the engine ``name`` folds."""
    if name == "key-oij":
        return "all partners are folded anew for every base tuple"
    parts = []
    if form.primitives or not form.users:
        picks = any(p.kind in ("least", "greatest") for p in form.primitives)
        others = any(p.kind not in ("least", "greatest") for p in form.primitives)
        parts.append("aggregates are subtracted and added" if not picks else
                     "least and greatest values by two stacks" + ", others are subtracted and added" * others)
    parts += [f"{user.term.text} is {user.way.why}" for user in form.users]
    return "; ".join(parts)
