"""Errors for operations that conditions written in Python do not support; they quote the user's own text.

Without them, Python would raise a TypeError that names an internal class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from splitjoin.base.errors import PredicateError

from .operations import functions, operators

_OPERATORS = " ".join(o.name for o in operators() if o.name not in "&|")
_METHODS = ", ".join(f".{o.name}({'other' * (o.operands - 1)})" for o in functions())
_SUPPORTED = (f"columns, constants, + - * / // %, abs(), == != < <= > >=, & | ~ (of conditions, and of integers, as "
              f"{_OPERATORS} << >>), .between(lo, hi), .isin(values), .starts_with(prefix), .like(pattern), .sqrt(), "
              f".round(places), "
              f"{_METHODS}, .cast(type), .is_null(), .is_not_null(), "
              f".is_distinct_from(other), math.floor(), math.ceil(), and splitjoin.least, "
              f"greatest, where, coalesce, date_diff and date_trunc")

#: Letters of a text that errors quote.
_LONGEST = 10_000


class Refusing:
    """Base of traced values: raises `PredicateError` for every operation that a subclass does not define.

    Attributes:
        text: The user's text of the value.
    """

    __slots__ = ("_atom", "text")

    def __init__(self, text: str, *, atom: bool):
        # Texts that hold others several times, in loops, would grow without end.
        self.text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        self._atom = atom  # an atom needs no parentheses as an operand

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        raise PredicateError(f"{self.text!r} has no truth value before the join runs: write & | ~ instead of and, or, "
                             f"not, each comparison in parentheses; two comparisons instead of a chain such as "
                             f"1 < r.x < 5; .isin(values) instead of in; splitjoin.where, least and greatest instead "
                             f"of if, min and max")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise PredicateError(f"'{operand_text(self)}.{name}' is not supported in a condition; it may hold {_SUPPORTED}")


def refuse(part: str) -> NoReturn:
    """Raise the `PredicateError` that says that ``part`` of the user's text is not supported."""
    raise PredicateError(f"{part!r} is not supported in a condition; it may hold {_SUPPORTED}")


def text_of(x: Any) -> str:
    """The user's text of ``x`` if it is a traced value, else its ``repr``."""
    if isinstance(x, Refusing):
        return x.text
    try:
        return repr(x)
    except ValueError:  # Python prints no ints of more than 4300 digits
        return f"<{type(x).__name__}>"


def operand_text(x: Any) -> str:
    """The text of ``x`` as an operand, in parentheses where it needs them."""
    return text_of(x) if not isinstance(x, Refusing) or x._atom else f"({x.text})"


def _refuse_binary(symbol: str) -> tuple[Callable[[Refusing, Any], NoReturn], Callable[[Refusing, Any], NoReturn]]:
    def forward(a: Refusing, b: Any, *_: Any) -> NoReturn:
        refuse(f"{operand_text(a)} {symbol} {operand_text(b)}")

    def reflected(b: Refusing, a: Any, *_: Any) -> NoReturn:
        refuse(f"{operand_text(a)} {symbol} {operand_text(b)}")

    return forward, reflected


def _refuse_call(name: str) -> Callable[[Refusing], NoReturn]:
    def call(a: Refusing, *_: Any) -> NoReturn:
        refuse(f"{name}({a.text})")

    return call


for _method, _symbol in (("pow", "**"), ("matmul", "@")):
    _forward, _reflected = _refuse_binary(_symbol)
    setattr(Refusing, f"__{_method}__", _forward)
    setattr(Refusing, f"__r{_method}__", _reflected)
for _method, _call in (("round", "round"), ("float", "float"), ("int", "int"), ("complex", "complex"),
                       ("index", "index"), ("trunc", "trunc"), ("floor", "floor"), ("ceil", "ceil"), ("len", "len"),
                       ("iter", "iter"), ("hash", "hash"), ("divmod", "divmod"), ("rdivmod", "divmod"),
                       ("getitem", "index"), ("contains", "in"), ("call", "call"), ("str", "str"), ("format", "format"),
                       ("bytes", "bytes")):
    setattr(Refusing, f"__{_method}__", _refuse_call(_call))
