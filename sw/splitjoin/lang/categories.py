"""Columns of ordered categories (an Enum of Polars or DuckDB, an ordered Categorical of pandas, an ordered dictionary
of Arrow): equal as text, and less or greater by the order of their categories.

In the IR, the place in that order is a CASE over the text, so every engine has it without knowing of categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from splitjoin.base.errors import PredicateError

from .ir import Case, Cmp, Col, Expr, Lit, rebuilt, walk
from .types import BOOL, EXACT, STRING, OrderedText, String

#: The most categories of a column that is compared by their order: each is a comparison for each tuple.
MAX_CATEGORIES = 256


def holds_order(e: Expr) -> bool:
    """True if ``e`` is text, and computed from a column of ordered categories."""
    return isinstance(e.type, String) and any(isinstance(c, Col) and isinstance(c.type, OrderedText) for c in walk(e))


def places(a: Expr, b: Expr, at: str) -> tuple[Expr, Expr]:
    """``a`` and ``b``, which are compared by ``<``, with the places of categories in place of these.

    Raises `PredicateError` where the order is not known, or is not that of both.
    """
    if not holds_order(a) and not holds_order(b):
        return a, b
    lists = [x.type.categories for x in (a, b) if isinstance(x.type, OrderedText) and x.type.categories]
    return place(a, lists, at), place(b, lists, at)


def place(e: Expr, lists: Sequence[tuple[str, ...]], at: str) -> Expr:
    """The place of ``e``, a column of ordered categories or one of them as a constant, in their order.

    ``lists``: the categories that ``e`` is compared by, which must be one list. Raises `PredicateError`.
    """
    if isinstance(e, Lit) and e.value is None:
        return Lit(EXACT, None)
    need = f"{at!r}: ordered categories are compared by their order"
    advice = "or compare as text with CAST(… AS VARCHAR), .cast('string') in Python"
    categories = lists[0] if lists else ()
    if any(other != categories for other in lists):
        raise PredicateError(f"{need}, which both columns must have, but these have {_shown(lists[0])} and "
                             f"{_shown(next(o for o in lists if o != categories))}; give both the same categories, "
                             f"{advice}")
    if len(categories) > MAX_CATEGORIES:
        raise PredicateError(f"{need}, of up to {MAX_CATEGORIES} of them, but there are {len(categories)}; compare a "
                             f"column of their numbers, {advice}")
    if isinstance(e, Lit) and isinstance(e.value, str):
        if categories and e.value not in categories:
            raise PredicateError(f"{need}, so a constant must be one of {_shown(categories)}, not {e.value!r}; write "
                                 f"one of them, {advice}")
        return Lit(EXACT, categories.index(e.value) if categories else None)
    if not isinstance(e, Col) or not isinstance(e.type, OrderedText):
        raise PredicateError(f"{need} with columns of the same categories and with one of them as a constant only, not "
                             f"with '{e}'; {advice.removeprefix('or ')}")
    if e.type.categories is None:
        raise PredicateError(f"{need}, but that of {e.side}.{e.name} is not known: it is in the rows, not in a schema, "
                             f"and must be the same in all of them; {advice.removeprefix('or ')}")
    text = replace(e, type=STRING)
    return Case(EXACT, tuple(Cmp(BOOL, "=", text, Lit(STRING, c)) for c in categories),
                tuple(Lit(EXACT, n) for n in range(len(categories))), Lit(EXACT, None)) if categories else (
        Lit(EXACT, None))


def without_order(e: Expr) -> Expr:
    """``e`` with text in place of ordered text, as engines have it, which compare by places."""
    if not any(isinstance(x.type, OrderedText) for x in walk(e)):
        return e
    made = rebuilt(e, [without_order(child) for child in e.children])
    return replace(made, type=STRING) if isinstance(made.type, OrderedText) else made


def _shown(categories: Sequence[str]) -> str:
    return ", ".join(map(repr, categories[:5])) + (", …" if len(categories) > 5 else "")
