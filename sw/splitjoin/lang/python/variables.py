"""Values that a compiled Python function assigns, and the states that hold some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..ir import Expr, check_depth
from .values import Value

#: Letters of a text by which errors call a kept value.
_TEXT = 80


class Variables:
    """Keeps values of assignments as they are. ``place``: file and line of the statement that is executed."""

    place: tuple[str, int] = ("", 0)

    def kept(self, value: Value, name: str = "") -> Value:
        """``value`` in the form in which it is used from now on; ``name``: of what is assigned to.

        Errors call it by its text, or, where that is long, by its name: texts that hold others grow without end.
        """
        text = value.text if len(value.text) <= _TEXT else name or f"{value.text[:_TEXT]}…"
        return Value(self.stored(value.expr), text, atom=True)

    def stored(self, e: Expr) -> Expr:
        """``e`` in the form in which it is used from now on. Raises `PredicateError` if it is too large."""
        check_depth(e)  # here, as types and ranges of what uses it are computed by passing over all of it
        return e

    def whole(self, value: Value) -> Value:
        """``value`` in the form in which bit operations take it."""
        return value


class StateRecord:
    """The stand-in for ``self``, or for another state: attributes that hold values, or lists of values.

    ``assign(name, value, at)`` returns what attribute ``name`` has once ``value`` is assigned; None: read only.
    """

    def __init__(self, name: str, values: Mapping[str, Any], assign: Callable[[str, Any, str], Value] | None = None):
        self.name, self.values, self.assign = name, dict(values), assign


class Struct(list[Any]):
    """The values of a named tuple; ``of``: its class."""

    def __init__(self, of: Any, values: Iterable[Any]):
        super().__init__(values)
        self.of = of


def is_struct(of: Any) -> bool:
    """True for a class that is a named tuple."""
    return isinstance(of, type) and issubclass(of, tuple) and hasattr(of, "_fields")


def like(items: Any, values: Iterable[Any]) -> list[Any]:
    """``values`` as a struct or a list, as ``items`` are."""
    return Struct(items.of, values) if isinstance(items, Struct) else list(values)


def item_names(name: str, items: Any) -> list[str]:
    """The names of ``items``, which are those of ``name``."""
    return ([f"{name}.{field}" for field in items.of._fields] if isinstance(items, Struct) else
            [f"{name}[{n}]" for n in range(len(items))])


def is_traced(value: Any) -> bool:
    """True if ``value`` depends on the tuples."""
    return isinstance(value, Value) or (isinstance(value, (list, tuple)) and any(map(is_traced, value)))
