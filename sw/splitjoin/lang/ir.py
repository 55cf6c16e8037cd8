"""The typed expression IR, which every front end produces and every back end reads, and functions that traverse it.

Nodes are immutable and typed; `splitjoin.lang.build` constructs them and checks types. `text` is the stable text form.
Evaluation is SQL's three-valued logic (semantics, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal

from splitjoin.base.errors import PredicateError

from .calendar import CalendarUnit
from .schema import Side
from .types import BOOL, Bool, Date, Duration, Exact, Int, String, Timestamp, Type

#: ``/`` is for floats. For whole numbers, ``div`` rounds towards zero and ``mod`` has the dividend's sign (SQL), ``//``
#: rounds down and ``%`` has the divisor's sign (Python); with a divisor of 0 all four are NULL. ``<<`` multiplies by a
#: power of two; ``>>`` divides by one and rounds down.
ArithOp = Literal["+", "-", "*", "/", "div", "mod", "//", "%", "<<", ">>"]
#: Functions of a float; ``round`` takes halves away from zero.
FloatFunction = Literal["sqrt", "floor", "ceil", "round"]
CmpOp = Literal["=", "<>", "<", "<=", ">", ">="]

#: ``a op b`` is ``b MIRRORED[op] a``.
MIRRORED: dict[CmpOp, CmpOp] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: ``a NEGATED[op] b`` is false where ``a op b`` is true, and true where that is false.
NEGATED: dict[CmpOp, CmpOp] = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Expr:
    """Base of all nodes; ``type`` is the type of the value."""

    type: Type

    @property
    def children(self) -> tuple[Expr, ...]:
        """Operands, left to right."""
        return ()

    def __getstate__(self) -> dict[str, object]:
        # What a condition carries besides, such as its plan, stays in this process: pickles are compared and kept.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        return text(self)


@dataclass(frozen=True)
class Unary(Expr):
    """Base of the nodes with one operand, ``a``."""

    a: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a,)


@dataclass(frozen=True)
class Col(Expr):
    """A column of one stream.

    ``range``: the least and the greatest value that was declared or measured; None for the limits of the type. Both are
    whole numbers: decimals without their point, times in the column's unit.
    """

    side: Side
    name: str
    nullable: bool
    range: tuple[int, int] | None = None


@dataclass(frozen=True)
class Lit(Expr):
    """A constant.

    ``value`` is ``int`` or ``Fraction`` for exact types, ``int`` for dates, timestamps and durations (in the type's
    unit), ``float`` for floats, ``bool``, ``str``, ``bytes``; None is NULL.
    """

    value: int | Fraction | float | bool | str | bytes | None


@dataclass(frozen=True)
class Arith(Expr):
    """``a op b``: exact on exact types, IEEE 754 in ``type`` on floats (both operands have that type).

    Floats have ``+ - * /`` and ``mod`` only.
    """

    op: ArithOp
    a: Expr
    b: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class Neg(Unary):
    """``-a``."""


@dataclass(frozen=True)
class Abs(Unary):
    """``abs(a)``."""


@dataclass(frozen=True)
class Cast(Unary):
    """``a`` as a float, as an integer type that holds it, or, if it is a time, in a finer unit."""


@dataclass(frozen=True)
class Cmp(Expr):
    """``a op b``; both operands are of one kind: exact, float of one width, date, timestamp or duration of one unit,
    bool, string, or binary.
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
class Not(Unary):
    """Negation."""


@dataclass(frozen=True)
class IsNull(Unary):
    """``a IS NULL``; never NULL itself."""


@dataclass(frozen=True)
class Case(Expr):
    """The value in ``then`` of the first condition in ``when`` that is true, else ``otherwise``; all of one type."""

    when: tuple[Expr, ...]
    then: tuple[Expr, ...]
    otherwise: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (*(e for pair in zip(self.when, self.then, strict=True) for e in pair), self.otherwise)


@dataclass(frozen=True)
class Extreme(Expr):
    """The least or the greatest of ``args`` (two or more of one kind) that are not NULL; NULL if all are."""

    kind: Literal["least", "greatest"]
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True)
class StartsWith(Unary):
    """True where the text or binary ``a`` begins with ``prefix``."""

    prefix: str | bytes


@dataclass(frozen=True)
class Like(Unary):
    """True where the text ``a`` fits ``pattern``, in which % stands for any characters and _ for one."""

    pattern: str


@dataclass(frozen=True)
class FloatCall(Unary):
    """``function`` of the float ``a``, in its type. All of them are exact, or rounded as IEEE 754 says.

    ``places``: for ``round``, the decimal places that are kept; a negative number rounds to tens, hundreds, ….
    """

    function: FloatFunction
    places: int = 0


@dataclass(frozen=True)
class UnitNumber(Unary):
    """The number of the calendar unit in which the date or timestamp ``a`` lies, from that of 1970-01-01 as 0."""

    unit: CalendarUnit


@dataclass(frozen=True)
class UnitStart(Unary):
    """The timestamp at which the calendar unit begins in which the date or timestamp ``a`` lies."""

    unit: CalendarUnit


@dataclass(frozen=True)
class Call(Expr):
    """Operation ``op`` of `splitjoin.lang.operations` on integers ``args``, whose common type is ``of``."""

    op: str
    of: Int
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True)
class Isqrt(Unary):
    """The integer square root of the integer part of ``a``; −1 for negative numbers. Made by passes only."""


@dataclass(frozen=True)
class NextFloat(Unary):
    """The next float above ``a`` (``up``) or below it; for NaN, infinity of that sign. Made by passes only."""

    up: bool


@dataclass(frozen=True)
class Within(Unary):
    """``a`` if it lies between ``low`` and ``high``, both included, else NULL. Made by passes only.

    ``low`` and ``high`` are whole numbers like those of `Col.range`.
    """

    a: Col
    low: int
    high: int


#: Fields of nodes that are no properties.
_OPERANDS = {"type", "a", "b", "args", "when", "then", "otherwise"}


def _literal(e: Lit) -> str:
    if e.value is None:
        return "NULL"
    if isinstance(e.value, bytes):
        return f"X'{e.value.hex().upper()}'"
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
    """The stable text form of ``e``: fully parenthesised, in one line, and equal for equal trees."""
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
        case Case():
            branches = " ".join(f"WHEN {text(w)} THEN {text(t)}" for w, t in zip(e.when, e.then, strict=True))
            return f"(CASE {branches} ELSE {text(e.otherwise)} END)"
        case Extreme():
            return f"{e.kind}({', '.join(map(text, e.args))})"
        case StartsWith():
            return f"starts_with({text(e.a)}, {_literal(Lit(e.a.type, e.prefix))})"
        case Like():
            return f"({text(e.a)} LIKE {_literal(Lit(e.a.type, e.pattern))})"
        case FloatCall():
            return f"{e.function}({text(e.a)}{f', {e.places}' if e.places else ''})"
        case UnitNumber():
            return f"{e.unit}s({text(e.a)})"
        case UnitStart():
            return f"date_trunc('{e.unit}', {text(e.a)})"
        case Call(args=(a, b)) if not e.op.isidentifier():
            return f"({text(a)} {e.op} {text(b)})"
        case Call():
            return f"{e.op}({', '.join(map(text, e.args))})"
        case Isqrt():
            return f"isqrt({text(e.a)})"
        case NextFloat():
            return f"{'above' if e.up else 'below'}({text(e.a)})"
        case Within():
            return f"within({text(e.a)}, {e.low}, {e.high})"
    raise TypeError(f"not an IR node: {e!r}")


def walk(e: Expr) -> Iterator[Expr]:
    """``e`` and all nodes below it, parents first."""
    yield e
    for child in e.children:
        yield from walk(child)


def columns(e: Expr) -> tuple[Col, ...]:
    """The distinct columns of ``e``, in order of appearance."""
    found: dict[Col, None] = {}
    seen: set[int] = set()

    def visit(node: Expr) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, Col):
                found[node] = None
            for child in node.children:
                visit(child)

    visit(e)
    return tuple(found)


def sides(e: Expr) -> frozenset[Side]:
    """The streams whose columns ``e`` reads."""
    found: set[Side] = set()
    seen: set[int] = set()
    waiting = [e]
    while waiting and len(found) < 2:
        node = waiting.pop()
        if isinstance(node, Col):
            found.add(node.side)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting += node.children
    return frozenset(found)


def distinct(e: Expr) -> list[tuple[Expr, tuple[int, ...]]]:
    """The distinct nodes of ``e``, operands first and ``e`` last, each with the positions of its operands in the list.

    Nodes are the same if their operands and all other fields are equal; 0.0 and −0.0 are not equal here.
    """
    nodes: list[tuple[Expr, tuple[int, ...]]] = []
    by_object: dict[int, int] = {}
    by_content: dict[object, int] = {}

    def visit(node: Expr) -> int:
        if id(node) not in by_object:
            operands = tuple(map(visit, node.children))
            content = type(node), node.type, operands, repr(node) if isinstance(node, Lit) else properties(node)
            if content not in by_content:
                by_content[content] = len(nodes)
                nodes.append((node, operands))
            by_object[id(node)] = by_content[content]
        return by_object[id(node)]

    visit(e)
    return nodes


def properties(e: Expr) -> tuple[Any, ...]:
    """The fields of the node ``e`` but its type and its operands."""
    return tuple(getattr(e, f.name) for f in fields(e) if f.name not in _OPERANDS)


def rebuilt(e: Expr, children: Sequence[Expr]) -> Expr:
    """``e`` with other operands, in the order of `Expr.children`."""
    match e:
        case Arith() | Cmp():
            return replace(e, a=children[0], b=children[1])
        case And() | Or() | Extreme() | Call():
            return replace(e, args=tuple(children))
        case Case():
            return replace(e, when=tuple(children[:-1:2]), then=tuple(children[1::2]), otherwise=children[-1])
        case Unary():
            return replace(e, a=children[0])
    return e


def as_case(e: Extreme) -> Case:
    """``least(a, b, …)`` as CASE WHEN b IS NULL OR a <= b THEN a ELSE b END, from the left."""
    op: CmpOp = "<=" if e.kind == "least" else ">="
    best = e.args[0]
    for other in e.args[1:]:
        first = Or(BOOL, (IsNull(BOOL, other), Cmp(BOOL, op, best, other)))
        best = Case(e.type, (first,), (best,), other)
    assert isinstance(best, Case)
    return best


#: The most levels that the IR of a condition may have.
MAX_DEPTH = 100


#: The most nodes that the IR of a condition may have with shared nodes written out, if these make it so many times as
#: large: compilers pass over each use of a shared node.
_MOST_NODES, _SHARED = 100_000, 4


def check_depth(e: Expr) -> None:
    """Raise `PredicateError` if ``e`` has more than `MAX_DEPTH` levels, or values that it uses again and again, each
    with others in it, make it too large to be compiled.
    """
    levels, level = 0, [e]
    while level:
        # A node may occur several times in a level, as front ends share nodes: it is followed once.
        levels, level = levels + 1, list({id(child): child for node in level for child in node.children}.values())
        if levels > MAX_DEPTH:
            raise too_deep()
    sizes: dict[int, int] = {}

    def size(node: Expr) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 1 + sum(map(size, node.children))
        return sizes[id(node)]

    if size(e) > max(_MOST_NODES, _SHARED * len(sizes)):
        raise PredicateError(f"the condition must not have more than {_MOST_NODES:,} operations with each value "
                             f"written out where it is used, but has {size(e):,}, as each step of a computation uses "
                             f"the one before more than once; compute the value as a column of the table first")


def too_deep() -> PredicateError:
    """The error for a condition beyond `MAX_DEPTH`."""
    return PredicateError(f"the condition must not be nested more than {MAX_DEPTH} levels deep; a sum of n terms has n "
                          f"levels, but a chain of ANDs or of ORs has only one; in SQL text, no more than some 40 "
                          f"parentheses should be within each other")
