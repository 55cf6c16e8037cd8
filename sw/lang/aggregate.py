"""Aggregates over the partners of each base tuple, as the user writes them (semantics, section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

from ..errors import InputError, PredicateError
from .ir import Expr, check_depth
from .schema import Schema
from .sql.parser import Reader, parse_tree
from .types import Bool, Duration, Float, is_exact

__all__ = ["AGGREGATES", "Aggregate", "AggregateFunction", "is_aggregate", "parse_aggregates", "read_aggregate"]

AggregateFunction = Literal["count", "count distinct", "sum", "avg", "min", "max", "first", "last", "argmin", "argmax"]

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
    the base tuple and its partner. ``text``: the user's text.
    """

    name: str
    function: AggregateFunction
    args: tuple[Expr, ...]
    text: str


def parse_aggregates(given: Any, r: Schema, s: Schema) -> tuple[Aggregate, ...]:
    """The aggregates of a mapping of names to texts such as ``"max(s.price)"``. Raises a `SplitJoinError` that names
    the wrong part.
    """
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"aggregate must be a mapping of names to aggregates, such as {{'n': 'count(*)'}}, not "
                         f"{given!r}")
    found = []
    for name, text in given.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InputError(f"aggregate must have texts for names and aggregates, such as {{'n': 'count(*)'}}, but it "
                             f"has {name!r}: {text!r}")
        tree = parse_tree(text)
        made = read_aggregate(tree, Reader(text, {"r": r, "s": s}, quoting=True), name, text)
        if made is None:
            raise PredicateError(f"{text!r} is no aggregate; write one of {AGGREGATES}")
        found.append(made)
    return tuple(found)


def is_aggregate(tree: exp.Expr) -> bool:
    """True if ``tree`` is an aggregate by its form."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return type(tree) in _FUNCTIONS


def read_aggregate(tree: exp.Expr, reader: Reader, name: str, text: str) -> Aggregate | None:
    """The aggregate of sqlglot's ``tree``; None if it is none. Raises `PredicateError` for arguments that it cannot
    have.
    """
    while isinstance(tree, exp.Paren):
        tree = tree.this
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
    kind = args[0].type if args else None
    numeric = kind is not None and (is_exact(kind) or isinstance(kind, Float))
    if (function == "avg" and not numeric) or (function == "sum" and not numeric and not isinstance(kind, Duration)):
        raise PredicateError(f"{text!r}: {function} needs numbers{' or durations' * (function == 'sum')}, but this is "
                             f"{kind}")
    if isinstance(kind, Bool) and function in ("min", "max"):
        raise PredicateError(f"{text!r}: {function} needs values with an order, but this is bool; write it with CASE")
    return Aggregate(name, function, tuple(args), text)
