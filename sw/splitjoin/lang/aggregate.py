"""Aggregates over the partners of each base tuple, as the user writes them (semantics, section 8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from splitjoin.base.errors import OptionError, PredicateError

from .aggregate_functions import (
    DISTINCT_FUNCTIONS,
    FUNCTIONS,
    SAME_OF_DISTINCT,
    USAGES,
    AggregateFunction,
    Pick,
    Term,
    UserFunction,
    definition_of,
)
from .categories import holds_order, place, without_order
from .fold import AggregateCall, Fold, Width
from .ir import Arith, Expr, Lit, check_depth
from .properties import denominator
from .schema import Schema
from .sql.parser import SqlReader, parse_tree
from .types import EXACT, Float, OrderedText, is_exact, is_number

#: User-defined aggregates by the names, in small letters, that SQL calls them by.
UserAggregates = Mapping[str, Fold]
#: Aggregates that count partners in which the value is NULL.
_TAKE_NULL = {"first", "last", "list"}
#: The aggregates that take each value once, in words.
_ONCE = f"{', '.join([*DISTINCT_FUNCTIONS][:-1])} and {[*DISTINCT_FUNCTIONS][-1]}"


@dataclass(frozen=True)
class Aggregate:
    """A result column: the aggregate that ``definition`` makes of the values that ``args`` have for the partners of a
    base tuple.

    ``args``: over the base tuple and its partner; of a user-defined one the whole numbers without their points, or
    floats. ``text``: the user's text.
    """

    name: str
    definition: AggregateFunction
    args: tuple[Expr, ...]
    text: str

    @property
    def function(self) -> str:
        """The name of the definition."""
        return self.definition.name

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms that engines fold; none if it needs all partners' values at once."""
        return self.definition.terms(self.args)

    @property
    def reads_ranges(self) -> bool:
        """True if ranges of S sorted by keys tell the value, as of `Term.reads_ranges`."""
        return bool(self.terms) and all(term.reads_ranges for term in self.terms)

    @property
    def nullable(self) -> bool:
        """False if no value is NULL."""
        return self.definition.nullable

    @property
    def ordered(self) -> bool:
        """True if the order of the partners counts, or may count."""
        return self.definition.ordered

    @property
    def digest_text(self) -> str:
        """The stable text of the aggregate."""
        return f"{self.name} {self.function}({', '.join(map(str, self.args))}){self.definition.digest_text}"


def parse_aggregates(given: Any, r: Schema, s: Schema) -> tuple[Aggregate, ...]:
    """The aggregates of a mapping of names to texts such as ``"max(s.price)"``. Raises a `SplitJoinError` that names
    the wrong part.
    """
    if not isinstance(given, Mapping) or not given:
        raise OptionError(f"aggregate must be a mapping of names to aggregates, such as {{'n': 'count(*)'}}, not "
                          f"{given!r}")
    found = []
    for name, text in given.items():
        if isinstance(name, str) and isinstance(text, AggregateCall):
            found.append(_called(text, r, s, name))
            continue
        if not isinstance(name, str) or not isinstance(text, str):
            raise OptionError(f"aggregate must have texts for names and aggregates, such as {{'n': 'count(*)'}}, or "
                              f"calls of classes under @splitjoin.aggregate, but it has {name!r}: {text!r}")
        tree = parse_tree(text)
        made = read_aggregate(tree, SqlReader(text, {"r": r, "s": s}, quoting=True), name, text)
        if made is None:
            raise PredicateError(f"{text!r} is no aggregate; write one of {USAGES}")
        found.append(made)
    return tuple(found)


def named_folds(given: Any) -> UserAggregates:
    """User-defined aggregates by name, as ``splitjoin.sql`` takes them. Raises `OptionError` for other things."""
    found = {}
    for name, value in (given or {}).items() if isinstance(given, Mapping) or not given else [("?", given)]:
        fold = getattr(value, "fold", None)
        if not isinstance(name, str) or not isinstance(fold, Fold) or isinstance(value, AggregateCall):
            raise OptionError(f"aggregates must be a mapping of names to classes under @splitjoin.aggregate, not "
                              f"{given!r}")
        found[name.lower()] = fold
    return found


def is_aggregate(tree: exp.Expr, known: Collection[str] = ()) -> bool:
    """True if ``tree`` is an aggregate by its form; ``known``: the names of user-defined ones."""
    while isinstance(tree, (exp.Paren, exp.Filter)):
        tree = tree.this
    return definition_of(tree) is not None or (isinstance(tree, exp.Anonymous) and str(tree.this).lower() in known)


def read_aggregate(tree: exp.Expr, reader: SqlReader, name: str, text: str,
                   known: UserAggregates | None = None) -> Aggregate | None:
    """The aggregate of sqlglot's ``tree``; None if it is none. Raises `PredicateError` for arguments that it cannot
    have. ``known``: user-defined ones.
    """
    while isinstance(tree, exp.Paren):
        tree = tree.this
    condition = None
    if isinstance(tree, exp.Filter):
        tree, condition = tree.this, tree.expression.this
    if isinstance(tree, exp.Anonymous) and known and (fold := known.get(str(tree.this).lower())) is not None:
        if condition is not None:
            raise PredicateError(f"{text!r}: FILTER belongs to built-in aggregates; give {fold.name} the condition as "
                                 f"a value")
        return _user(fold, [reader.expr(one) for one in tree.expressions], name, text)
    definition = definition_of(tree)
    if definition is None:
        return None
    trees = _arguments(tree)
    once = [one for one in (tree.this, *tree.expressions) if isinstance(one, exp.Distinct)]
    if once:
        distinct = definition if definition.name in SAME_OF_DISTINCT else DISTINCT_FUNCTIONS.get(definition.name)
        if distinct is None or len(once[0].expressions) != 1 or once[0].args.get("on"):
            raise PredicateError(f"{text!r}: DISTINCT belongs to {_ONCE}, of one value; leave it out")
        definition, trees = distinct, [*once[0].expressions, *(trees or ())[1:]]
    if trees is None or len(trees) not in definition.arities:
        raise PredicateError(f"{text!r}: an aggregate must be one of {USAGES}")
    if condition is not None:
        trees = _filtered(definition, trees, condition, text)
    args = []
    for one in trees:
        arg = reader.expr(one)
        check_depth(arg)
        args.append(arg)
    if isinstance(definition, Pick) and holds_order(args[-1]):
        by = args[-1]
        categories = [by.type.categories] if isinstance(by.type, OrderedText) and by.type.categories else []
        args = [args[0], place(by, categories, text)]
        definition = FUNCTIONS["argmax" if definition.greatest else "argmin"]
    elif definition.compares and holds_order(args[0]):
        raise PredicateError(f"{text!r}: {definition.name} takes no ordered categories; give a column of their "
                             f"numbers, or compare as text with CAST(… AS VARCHAR)")
    args = [without_order(arg) for arg in args]
    definition.check(args, text)
    return Aggregate(name, definition, tuple(args), text)


def _filtered(definition: AggregateFunction, trees: Sequence[exp.Expr], condition: exp.Expr,
              text: str) -> list[exp.Expr]:
    """The arguments ``trees`` of an aggregate of the partners of which ``condition`` is true: NULL of all others."""
    if definition.name in _TAKE_NULL:
        raise PredicateError(f"{text!r}: FILTER belongs to aggregates that leave NULL out, and {definition.name} does "
                             f"not; put the condition into the join, or filter the rows before it")
    first = trees[0] if trees else exp.Literal.number(1)
    return [exp.Case(ifs=[exp.If(this=condition, true=first)]), *trees[1:]]


def _arguments(tree: exp.Expr) -> list[exp.Expr] | None:
    """The arguments that ``tree`` calls an aggregate with; None if it has parts that no aggregate has."""
    if isinstance(tree, (exp.Anonymous, exp.List)):
        return list(tree.expressions)
    if isinstance(tree, exp.Count) and isinstance(tree.this, exp.Star):
        return [] if not tree.args.get("expressions") else None
    names = ("this", "expression", "quantile", "separator")
    if any(value for key, value in tree.args.items() if key not in (*names, "big_int")):
        return None
    return [tree.args[name] for name in names if tree.args.get(name) is not None]


def _called(call: AggregateCall, r: Schema, s: Schema, name: str) -> Aggregate:
    if not all(isinstance(value, str) for value in call.values):
        raise OptionError(f"{call.text}: the values of an aggregate must be texts, such as 's.price', not "
                          f"{next(v for v in call.values if not isinstance(v, str))!r}")
    args = [SqlReader(value, {"r": r, "s": s}, quoting=True).expr(parse_tree(value)) for value in call.values]
    return _user(call.fold, args, name, call.text)


def _user(fold: Fold, args: Sequence[Expr], name: str, text: str) -> Aggregate:
    if len(args) != len(fold.arguments):
        raise PredicateError(f"{text!r}: {fold.name} takes {len(fold.arguments)} values "
                             f"({', '.join(a.name for a in fold.arguments)}), not {len(args)}")
    made = []
    for argument, arg in zip(fold.arguments, args, strict=True):
        check_depth(arg)
        made.append(_whole(arg, argument.width, f"{argument.name} of {text!r}"))
    return Aggregate(name, UserFunction(fold=fold, text=text), tuple(made), text)


def _whole(e: Expr, width: Width, what: str) -> Expr:
    """``e`` without the point of ``width``, rounded down; a float as it is."""
    if isinstance(e.type, Float) and width.fraction:
        return e
    if not is_exact(e.type) or (not width.fraction and denominator(e) != 1):
        more = "; declare it as fixed(bits, fraction), which rounds down" if is_number(e.type) else ""
        raise PredicateError(f"{what} must be {width}, but {e} is {e.type}{more}")
    if denominator(e) == 1 and not width.fraction:
        return e
    return Arith(EXACT, "//", e, Lit(EXACT, Fraction(1, 2**width.fraction)))
