"""Aggregates over the partners of each base tuple, as the user writes them (semantics, section 8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from sqlglot import exp

from splitjoin.base.errors import InputError, PredicateError

from .categories import holds_order, place, without_order
from .fold import AggregateCall, Fold, Width
from .ir import Arith, Expr, Lit, check_depth
from .properties import denominator
from .schema import Schema
from .sql.parser import Reader, parse_tree
from .types import EXACT, Bool, Duration, Float, OrderedText, is_exact

__all__ = ["AGGREGATES", "Aggregate", "AggregateFunction", "UserAggregates", "is_aggregate", "named_folds",
           "parse_aggregates", "read_aggregate"]

AggregateFunction = Literal["count", "count distinct", "sum", "avg", "min", "max", "first", "last", "argmin", "argmax",
                            "user"]
#: User-defined aggregates by the names, in small letters, that SQL calls them by.
UserAggregates = Mapping[str, Fold]

_FUNCTIONS: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.First: "first",
    exp.Last: "last", exp.ArgMin: "argmin", exp.ArgMax: "argmax",
}
#: What errors say an aggregate may be.
AGGREGATES = ("count(*), count(x), count(DISTINCT x), sum(x), avg(x), min(x), max(x), first(x), last(x), argmin(x, by) "
              "and argmax(x, by)")


@dataclass(frozen=True)
class Aggregate:
    """A result column: the aggregate ``function`` of the values that ``args`` have for the partners of a base tuple.

    ``args``: none for ``count(*)``, two for argmin and argmax (the value, and by what it is chosen), else one; over
    the base tuple and its partner. ``text``: the user's text. ``fold``: the definition of a ``user`` function, of whose
    arguments ``args`` are the whole numbers without their points, or floats.
    """

    name: str
    function: AggregateFunction
    args: tuple[Expr, ...]
    text: str
    fold: Fold | None = None

    @property
    def digest_text(self) -> str:
        """The stable text of the aggregate."""
        made = f"{self.name} {self.function}({', '.join(map(str, self.args))})"
        return made if self.fold is None else f"{made} {self.fold.digest_text}"


def parse_aggregates(given: Any, r: Schema, s: Schema) -> tuple[Aggregate, ...]:
    """The aggregates of a mapping of names to texts such as ``"max(s.price)"``. Raises a `SplitJoinError` that names
    the wrong part.
    """
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"aggregate must be a mapping of names to aggregates, such as {{'n': 'count(*)'}}, not "
                         f"{given!r}")
    found = []
    for name, text in given.items():
        if isinstance(name, str) and isinstance(text, AggregateCall):
            found.append(_called(text, r, s, name))
            continue
        if not isinstance(name, str) or not isinstance(text, str):
            raise InputError(f"aggregate must have texts for names and aggregates, such as {{'n': 'count(*)'}}, or "
                             f"calls of classes under @splitjoin.aggregate, but it has {name!r}: {text!r}")
        tree = parse_tree(text)
        made = read_aggregate(tree, Reader(text, {"r": r, "s": s}, quoting=True), name, text)
        if made is None:
            raise PredicateError(f"{text!r} is no aggregate; write one of {AGGREGATES}")
        found.append(made)
    return tuple(found)


def named_folds(given: Any) -> UserAggregates:
    """User-defined aggregates by name, as ``splitjoin.sql`` takes them. Raises `InputError` for other things."""
    found = {}
    for name, value in (given or {}).items() if isinstance(given, Mapping) or not given else [("?", given)]:
        fold = getattr(value, "fold", None)
        if not isinstance(name, str) or not isinstance(fold, Fold) or isinstance(value, AggregateCall):
            raise InputError(f"aggregates must be a mapping of names to classes under @splitjoin.aggregate, not "
                             f"{given!r}")
        found[name.lower()] = fold
    return found


def is_aggregate(tree: exp.Expr, known: Collection[str] = ()) -> bool:
    """True if ``tree`` is an aggregate by its form; ``known``: the names of user-defined ones."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return type(tree) in _FUNCTIONS or (isinstance(tree, exp.Anonymous) and str(tree.this).lower() in known)


def read_aggregate(tree: exp.Expr, reader: Reader, name: str, text: str,
                   known: UserAggregates | None = None) -> Aggregate | None:
    """The aggregate of sqlglot's ``tree``; None if it is none. Raises `PredicateError` for arguments that it cannot
    have. ``known``: user-defined ones.
    """
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Anonymous) and known and (fold := known.get(str(tree.this).lower())) is not None:
        return _user(fold, [reader.expr(one) for one in tree.expressions], name, text)
    function = _FUNCTIONS.get(type(tree))
    if function is None:
        return None
    trees = [tree.this, *([tree.expression] if tree.args.get("expression") is not None else [])]
    unread = [key for key, value in tree.args.items() if value and key not in ("this", "expression", "big_int")]
    if isinstance(tree.this, exp.Distinct):
        if function != "count" or len(tree.this.expressions) != 1:
            raise PredicateError(f"{text!r}: DISTINCT belongs to count(DISTINCT x), of one value; leave it out")
        function, trees = "count distinct", list(tree.this.expressions)
    if function == "count" and isinstance(tree.this, exp.Star):
        trees = []
    expected = 2 if function in ("argmin", "argmax") else 1
    if unread or (len(trees) != expected and not (function == "count" and not trees)) or None in trees:
        raise PredicateError(f"{text!r}: an aggregate must be one of {AGGREGATES}")
    args = []
    for one in trees:
        arg = reader.expr(one)
        check_depth(arg)
        args.append(arg)
    if args and function in ("min", "max", "argmin", "argmax") and holds_order(args[-1]):
        by = args[-1]
        args[-1:] = [*([by] if function in ("min", "max") else []),
                     place(by, [by.type.categories] if isinstance(by.type, OrderedText) and by.type.categories else [],
                           text)]
        function = "argmin" if function in ("min", "argmin") else "argmax"
    args = [without_order(arg) for arg in args]
    kind = args[0].type if args else None
    numeric = kind is not None and (is_exact(kind) or isinstance(kind, Float))
    if (function == "avg" and not numeric) or (function == "sum" and not numeric and not isinstance(kind, Duration)):
        raise PredicateError(f"{text!r}: {function} needs numbers{' or durations' * (function == 'sum')}, but this is "
                             f"{kind}")
    if isinstance(kind, Bool) and function in ("min", "max"):
        raise PredicateError(f"{text!r}: {function} needs values with an order, but this is bool; write it with CASE")
    return Aggregate(name, function, tuple(args), text)


def _called(call: AggregateCall, r: Schema, s: Schema, name: str) -> Aggregate:
    if not all(isinstance(value, str) for value in call.values):
        raise InputError(f"{call.text}: the values of an aggregate must be texts, such as 's.price', not "
                         f"{next(v for v in call.values if not isinstance(v, str))!r}")
    args = [Reader(value, {"r": r, "s": s}, quoting=True).expr(parse_tree(value)) for value in call.values]
    return _user(call.fold, args, name, call.text)


def _user(fold: Fold, args: Sequence[Expr], name: str, text: str) -> Aggregate:
    """The user-defined aggregate ``fold`` of ``args``."""
    if len(args) != len(fold.arguments):
        raise PredicateError(f"{text!r}: {fold.name} takes {len(fold.arguments)} values "
                             f"({', '.join(a.name for a in fold.arguments)}), not {len(args)}")
    made = []
    for argument, arg in zip(fold.arguments, args, strict=True):
        check_depth(arg)
        made.append(_whole(arg, argument.width, f"{argument.name} of {text!r}"))
    return Aggregate(name, "user", tuple(made), text, fold)


def _whole(e: Expr, width: Width, what: str) -> Expr:
    """``e`` without the point of ``width``, rounded down; a float as it is."""
    if isinstance(e.type, Float) and width.fraction:
        return e
    if not is_exact(e.type) or (not width.fraction and denominator(e) != 1):
        more = "; declare it as fixed(bits, fraction), which rounds down" if isinstance(e.type, Float) or is_exact(
            e.type) else ""
        raise PredicateError(f"{what} must be {width}, but {e} is {e.type}{more}")
    if denominator(e) == 1 and not width.fraction:
        return e
    return Arith(EXACT, "//", e, Lit(EXACT, Fraction(1, 2**width.fraction)))
