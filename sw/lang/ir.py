"""The typed expression IR that every front end produces and every back end reads.

Nodes are immutable and typed; `splitjoin.lang.build` constructs them and checks types. `text` is the stable text form.
Evaluation is SQL's three-valued logic (semantics, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from .schema import Side
from .types import Bool, Date, Duration, Exact, String, Timestamp, Type

__all__ = [
    "MIRRORED",
    "Abs", "And", "Arith", "ArithOp", "Cast", "Cmp", "CmpOp", "Col", "Expr", "IsNull", "Lit", "Neg", "Not", "Or",
    "columns", "sides", "text", "walk",
]

ArithOp = Literal["+", "-", "*"]
CmpOp = Literal["=", "<>", "<", "<=", ">", ">="]

#: ``a op b`` is ``b MIRRORED[op] a``.
MIRRORED: dict[CmpOp, CmpOp] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Expr:
    """Base of all nodes; ``type`` is the type of the value."""

    type: Type

    @property
    def children(self) -> tuple[Expr, ...]:
        """Operands, left to right."""
        return ()

    def __str__(self) -> str:
        return text(self)


@dataclass(frozen=True)
class Col(Expr):
    """A column of one stream."""

    side: Side
    name: str
    nullable: bool


@dataclass(frozen=True)
class Lit(Expr):
    """A constant.

    ``value`` is ``int`` or ``Fraction`` for exact types, ``int`` for dates, timestamps and durations (in the type's
    unit), ``float`` for floats, ``bool``, ``str``; None is NULL.
    """

    value: int | Fraction | float | bool | str | None


@dataclass(frozen=True)
class Arith(Expr):
    """``a op b``: exact on exact types, IEEE 754 in ``type`` on floats (both operands have that type)."""

    op: ArithOp
    a: Expr
    b: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class Neg(Expr):
    """``-a``."""

    a: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a,)


@dataclass(frozen=True)
class Abs(Expr):
    """``abs(a)``."""

    a: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a,)


@dataclass(frozen=True)
class Cast(Expr):
    """``a`` in another type: exact or float32 to a float, or a time to a finer unit (exact)."""

    a: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a,)


@dataclass(frozen=True)
class Cmp(Expr):
    """``a op b``; both operands are of one kind: exact, float of one width, date, timestamp or duration of one unit,
    bool, or string (then op is ``=`` or ``<>``).
    """

    op: CmpOp
    a: Expr
    b: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class And(Expr):
    """Conjunction of two or more conditions, flattened."""

    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True)
class Or(Expr):
    """Disjunction of two or more conditions, flattened."""

    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True)
class Not(Expr):
    """Negation."""

    a: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a,)


@dataclass(frozen=True)
class IsNull(Expr):
    """``a IS NULL``; never NULL itself."""

    a: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a,)


def walk(e: Expr) -> Iterator[Expr]:
    """``e`` and all nodes below it, parents first."""
    yield e
    for child in e.children:
        yield from walk(child)


def columns(e: Expr) -> tuple[Col, ...]:
    """The distinct columns of ``e``, in order of appearance."""
    return tuple(dict.fromkeys(n for n in walk(e) if isinstance(n, Col)))


def sides(e: Expr) -> frozenset[Side]:
    """The streams whose columns ``e`` reads."""
    return frozenset(c.side for c in columns(e))


def _literal(e: Lit) -> str:
    if e.value is None:
        return "NULL"
    if isinstance(e.type, String):
        return "'" + str(e.value).replace("'", "''") + "'"
    if isinstance(e.type, Bool):
        return "TRUE" if e.value else "FALSE"
    if isinstance(e.type, (Date, Timestamp, Duration)):
        return f"{e.type}:{e.value}"
    if isinstance(e.type, Exact):
        return str(e.value)
    return f"{e.type}:{e.value!r}"


def text(e: Expr) -> str:
    """The stable text form: fully parenthesised, one line, equal for equal trees."""
    match e:
        case Col():
            return f"{e.side}.{e.name}"
        case Lit():
            return _literal(e)
        case Arith() | Cmp():
            return f"({text(e.a)} {e.op} {text(e.b)})"
        case Neg():
            return f"(- {text(e.a)})"
        case Abs():
            return f"abs({text(e.a)})"
        case Cast():
            return f"cast({text(e.a)} as {e.type})"
        case And():
            return "(" + " AND ".join(map(text, e.args)) + ")"
        case Or():
            return "(" + " OR ".join(map(text, e.args)) + ")"
        case Not():
            return f"(NOT {text(e.a)})"
        case IsNull():
            return f"({text(e.a)} IS NULL)"
    raise TypeError(f"not an IR node: {e!r}")
