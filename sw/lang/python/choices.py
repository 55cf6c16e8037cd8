"""Functions for conditions written in Python, where the language's own ``if``, ``min`` and ``max`` cannot be traced."""

from __future__ import annotations

from typing import Any, Literal

from ...errors import PredicateError
from .. import functions
from ..refusals import text_of
from .values import Value, lift

__all__ = ["coalesce", "greatest", "least", "where"]


def least(*values: Any) -> Value:
    """The least of the values that are not NULL, as SQL's ``least``; NaN is greater than every number."""
    return _extreme("least", values)


def greatest(*values: Any) -> Value:
    """The greatest of the values that are not NULL, as SQL's ``greatest``; NaN is greater than every number."""
    return _extreme("greatest", values)


def where(condition: Any, then: Any, otherwise: Any) -> Value:
    """``then`` where ``condition`` is true, else (also where it is NULL) ``otherwise``: SQL's ``CASE``."""
    at = _called("where", (condition, then, otherwise))
    made = functions.case([lift(condition, at)], [lift(then, at)], lift(otherwise, at), at)
    return Value(made, at, atom=True)


def coalesce(*values: Any) -> Value:
    """The first of the values that is not NULL."""
    at = _called("coalesce", values)
    return Value(functions.coalesce([lift(v, at) for v in values], at), at, atom=True)


def _extreme(kind: Literal["least", "greatest"], values: tuple[Any, ...]) -> Value:
    at = _called(kind, values)
    return Value(functions.extreme(kind, [lift(v, at) for v in values], at), at, atom=True)


def _called(name: str, values: tuple[Any, ...]) -> str:
    at = f"splitjoin.{name}({', '.join(map(text_of, values))})"
    if not any(isinstance(v, Value) for v in values):
        raise PredicateError(f"{at!r}: one value at least must be a column, or be computed from columns, of r or s")
    return at
