"""Trees of columns and conditions of a SELECT over three or more tables, as its steps need them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

__all__ = ["Named", "all_of", "in_place_of", "looks_back", "named_column"]

#: A table's label and one of its columns.
Named = tuple[str, str]


def named_column(named: Named) -> exp.Column:
    """The tree of a column, by its table and its name."""
    label, name = named
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(label, quoted=True))


def in_place_of(node: exp.Expr, made: exp.Column) -> exp.Column:
    """``made``, which stands for the column ``node`` of the text, with its place."""
    made.meta["written"] = node.meta.get("written") or node.copy()
    for of, part in zip(node.find_all(exp.Identifier), made.find_all(exp.Identifier), strict=False):
        part.meta.update(of.meta)
    return made


def looks_back(term: exp.Expr, r: Named, s: Named) -> bool:
    """True if ``term`` says that the time ``r`` of R's rows is not below the time ``s``; both by table and name."""
    if not isinstance(term, (exp.GTE, exp.GT, exp.LTE, exp.LT)):
        return False
    pair = [term.this, term.expression][::1 if isinstance(term, (exp.GTE, exp.GT)) else -1]
    return [(one.table, one.name) for one in pair if isinstance(one, exp.Column)] == [r, s]


def all_of(terms: Sequence[exp.Expr]) -> exp.Expr | None:
    """The terms as one condition; None without any."""
    made: exp.Expr | None = None
    for term in terms:
        made = exp.Paren(this=term) if made is None else exp.And(this=made, expression=exp.Paren(this=term))
    return made
