"""Python function → IR: the function is called once with stand-ins for the two tuples, which record what it does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from splitjoin.base.errors import PredicateError, SplitJoinError

from .. import build
from ..ir import Expr
from ..locations import located
from ..schema import Schema
from .values import Row, Value


def trace(fn: Callable[[Any, Any], Any], r: Schema, s: Schema) -> Expr:
    """The IR of the condition that ``fn(r, s)`` computes, by calling it once with a `Row` of each stream.

    Raises `PredicateError` that quotes the part which is not supported or ill-typed; an exception of the function's own
    is its cause. `SchemaError` for columns.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # some builtins have none; calling them will tell
        signature = None
    if signature is not None:
        try:
            signature.bind(None, None)
        except TypeError:
            raise PredicateError(f"the condition must be a function of two parameters (r, s), not "
                                 f"{_name(fn)}{signature}") from None
    try:
        result = fn(Row(r), Row(s))
    except SplitJoinError as error:
        raise located(error, fn) from None
    except Exception as error:
        raise PredicateError(f"the condition {_name(fn)} must not raise when it is called with r and s, but it raised "
                             f"{type(error).__name__}: {error}") from error
    if isinstance(result, Value):
        return build.condition(result.expr, result.text)
    if result is None:
        hint = "; is its return missing?"
    elif isinstance(result, bool) or type(result).__name__ == "bool":
        hint = ("; Python computed that without looking at a tuple, as 'is' does (write .is_null() for 'is None'; a "
                "constant condition can be given as SQL, 'TRUE')")
    else:
        hint = ""
    raise PredicateError(f"the condition {_name(fn)} must return a comparison of columns, not {result!r}{hint}")


def _name(fn: Callable[..., Any]) -> str:
    name = getattr(fn, "__name__", type(fn).__name__)
    return "lambda" if name == "<lambda>" else str(name)
