"""Stand-ins for tuples and values in a condition written in Python: they record what is done with them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, NoReturn

import numpy as np

from splitjoin.base.errors import PredicateError

from .. import build, functions
from ..casts import cast, named_type
from ..ir import Expr, Lit
from ..operations import Operation, functions as integer_functions, operators
from ..refusals import Refusing, operand_text, refuse, text_of
from ..schema import Schema
from ..types import Bool, Exact, Int


class Row:
    """The tuple of one stream in a traced function: ``r.x`` or ``r["x"]`` is column x."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Schema):
        self._schema = schema

    def __getattr__(self, name: str) -> Value:
        # Python and NumPy look for such names to learn what an object can do.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Value:
        if not isinstance(name, str):
            raise PredicateError(f"'{self}[{name!r}]': a column is chosen by its name, not by {name!r}")
        column = build.column(self._schema, name)
        return Value(column, str(column), atom=True)

    def __repr__(self) -> str:
        return self._schema.side

    def _no(self, *_: object) -> NoReturn:
        raise PredicateError(f"'{self}' is a whole tuple; a condition uses its columns, such as "
                             f"{self}.{next(iter(self._schema.names), 'x')}")

    __bool__ = __iter__ = __len__ = __hash__ = __float__ = __int__ = __neg__ = __abs__ = __invert__ = _no
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _no
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __and__ = __rand__ = __or__ = __ror__ = _no


#: Makes the expression of an operation on two expressions, which the user wrote as the text.
_Rule = Callable[[Expr, Expr, str], Expr]
_Operator = Callable[[Any, Any], "Value"]


def _both(operator: _Operator) -> tuple[_Operator, _Operator]:
    """Two special methods of ``operator``: with the value on the left, and on the right."""
    return (lambda self, other: operator(self, other)), (lambda self, other: operator(other, self))


def _operator(symbol: str, rule: _Rule) -> tuple[_Operator, _Operator]:
    def operate(a: Any, b: Any) -> Value:
        at = f"{operand_text(a)} {symbol} {operand_text(b)}"
        return Value(rule(lift(a, at), lift(b, at), at), at)

    return _both(operate)


def _whole_constant(e: Expr) -> int | None:
    """The value of an integer that is known before the join runs, such as a state that a constant was assigned to."""
    return e.value if isinstance(e, Lit) and isinstance(e.type, Exact) and isinstance(e.value, int) else None


def _condition(x: Any, at: str) -> Expr:
    e = lift(x, at)
    if not isinstance(e.type, Bool):
        # 'a < 1 & b > 2' means 'a < (1 & b) > 2' to Python.
        raise PredicateError(f"{at!r}: & | ~ need conditions, but {text_of(x)} has type {e.type}; put each comparison "
                             f"in parentheses, such as (r.x < 1) & (s.a > 2)")
    return e


def _connect(symbol: Literal["&", "|"], a: Any, b: Any) -> Value:
    at = f"{operand_text(a)} {symbol} {operand_text(b)}"
    x, y = lift(a, at), lift(b, at)
    constants = all(_whole_constant(e) is not None for e in (x, y))
    if constants or (any(isinstance(e.type, Int) for e in (x, y))
                     and all(isinstance(e.type, (Int, Exact)) for e in (x, y))):
        return Value(functions.operation(symbol, (x, y), at), at)
    args = [_condition(a, at), _condition(b, at)]
    return Value(build.and_(args, at) if symbol == "&" else build.or_(args, at), at)


class Value(Refusing):
    """A value in a traced function: a column, or what was computed from columns.

    Supports ``+ - * / // %``, ``abs``, comparisons, ``& | ~``, bit operations on integers, and the methods below; the
    other operand may be a Python or NumPy scalar. All else raises `PredicateError`.
    """

    __slots__ = ("expr",)

    def __init__(self, expr: Expr, text: str, *, atom: bool = False):
        super().__init__(text, atom=atom)
        self.expr = expr

    def is_null(self) -> Value:
        """True where the value is NULL."""
        at = f"{operand_text(self)}.is_null()"
        return Value(build.is_null(self.expr, at), at, atom=True)

    def is_not_null(self) -> Value:
        """True where the value is not NULL."""
        at = f"{operand_text(self)}.is_not_null()"
        return Value(build.not_(build.is_null(self.expr, at), at), at, atom=True)

    def is_distinct_from(self, other: Any) -> Value:
        """``self != other``, but NULL equals NULL only, and the result is never NULL."""
        at = f"{operand_text(self)}.is_distinct_from({text_of(other)})"
        return Value(functions.distinct(self.expr, lift(other, at), at), at, atom=True)

    def between(self, lo: Any, hi: Any) -> Value:
        """``lo <= self <= hi``."""
        at = f"{operand_text(self)}.between({text_of(lo)}, {text_of(hi)})"
        return Value(build.between(self.expr, lift(lo, at), lift(hi, at), at), at, atom=True)

    def isin(self, values: Iterable[Any]) -> Value:
        """True where the value equals one of ``values``."""
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise PredicateError(f"'{operand_text(self)}.isin({text_of(values)})': values must be a list of values, "
                                 f"not {type(values).__name__}")
        items = list(values)
        at = f"{operand_text(self)}.isin([{', '.join(map(text_of, items))}])"
        return Value(functions.in_(self.expr, [lift(v, at) for v in items], at), at, atom=True)

    def starts_with(self, prefix: str | bytes) -> Value:
        """True where the text or binary begins with the constant ``prefix``."""
        at = f"{operand_text(self)}.starts_with({text_of(prefix)})"
        return Value(functions.starts_with(self.expr, lift(prefix, at), at), at, atom=True)

    def like(self, pattern: str) -> Value:
        """True where the text fits ``pattern``: % stands for any characters, _ for one."""
        at = f"{operand_text(self)}.like({text_of(pattern)})"
        return Value(functions.like(self.expr, lift(pattern, at), at), at, atom=True)

    def sqrt(self) -> Value:
        """The square root, in float64."""
        at = f"{operand_text(self)}.sqrt()"
        return Value(functions.square_root(self.expr, at), at, atom=True)

    def round(self, places: int = 0) -> Value:
        """The value rounded to ``places`` decimal places, tens, … if negative; halves away from zero as in SQL."""
        at = f"{operand_text(self)}.round({text_of(places)})"
        if places == 0 and isinstance(places, int):
            return Value(functions.rounded("round", self.expr, at), at, atom=True)
        return Value(functions.rounded_to(self.expr, lift(places, at), at), at, atom=True)

    def __round__(self, places: int | None = None) -> NoReturn:
        at = f"round({self.text}{'' if places is None else f', {text_of(places)}'})"
        method = f"{operand_text(self)}.round({'' if places is None else text_of(places)})"
        raise PredicateError(f"{at!r}: Python's round() takes halves to the even neighbour; write {method}, which "
                             f"takes them away from zero, as SQL does")

    def __floor__(self) -> Value:
        return self._rounded("floor")

    def __ceil__(self) -> Value:
        return self._rounded("ceil")

    def _rounded(self, name: Literal["floor", "ceil"]) -> Value:
        at = f"{name}({self.text})"
        return Value(functions.rounded(name, self.expr, at), at, atom=True)

    def cast(self, to: str) -> Value:
        """The value in the type of that SQL name, such as ``"bigint"`` or ``"decimal(9, 2)"``."""
        at = f"{operand_text(self)}.cast({text_of(to)})"
        return Value(cast(self.expr, named_type(to, at), at), at, atom=True)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Value:
        """Called by NumPy for ``np.float32(1) - r.y`` and ``np.abs(r.y)``."""
        operation = _UFUNCS.get(ufunc.__name__) if method == "__call__" and not options else None
        if operation is None:
            refuse(f"{ufunc.__name__}({', '.join(map(text_of, args))})")
        # A scalar may come as an array without dimensions.
        made: Value = operation(*(a[()] if isinstance(a, np.ndarray) else a for a in args))
        return made

    def __abs__(self) -> Value:
        at = f"abs({self.text})"
        return Value(build.abs_(self.expr, at), at, atom=True)

    def __neg__(self) -> Value:
        at = f"-{operand_text(self)}"
        return Value(build.neg(self.expr, at), at)

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        at = f"~{operand_text(self)}"
        if isinstance(self.expr.type, Int):
            return Value(functions.complement(self.expr, at), at)
        whole = _whole_constant(self.expr)
        if whole is not None:
            return Value(build.literal(~whole, at), at)
        return Value(build.not_(_condition(self, at), at), at)

    __add__, __radd__ = _operator("+", partial(build.arith, "+"))
    __sub__, __rsub__ = _operator("-", partial(build.arith, "-"))
    __mul__, __rmul__ = _operator("*", partial(build.arith, "*"))
    __truediv__, __rtruediv__ = _operator("/", build.divide)
    __floordiv__, __rfloordiv__ = _operator("//", partial(build.remainder, "//"))
    __mod__, __rmod__ = _operator("%", partial(build.remainder, "%"))
    __lshift__, __rlshift__ = _operator("<<", partial(functions.shift, "<<"))
    __rshift__, __rrshift__ = _operator(">>", partial(functions.shift, ">>"))
    __hash__ = Refusing.__hash__  # with an __eq__ of its own, a class inherits none
    __eq__ = _operator("==", partial(build.compare, "="))[0]  # type: ignore[assignment]  # builds a condition
    __ne__ = _operator("!=", partial(build.compare, "<>"))[0]  # type: ignore[assignment]  # builds a condition
    __lt__ = _operator("<", partial(build.compare, "<"))[0]
    __le__ = _operator("<=", partial(build.compare, "<="))[0]
    __gt__ = _operator(">", partial(build.compare, ">"))[0]
    __ge__ = _operator(">=", partial(build.compare, ">="))[0]
    __and__, __rand__ = _both(partial(_connect, "&"))
    __or__, __ror__ = _both(partial(_connect, "|"))


def lift(x: Any, at: str) -> Expr:
    """``x``, a value or a constant, as an expression."""
    if isinstance(x, Value):
        return x.expr
    if isinstance(x, Row):
        x._no()
    lit = build.literal(x, at)
    if lit.value is None:
        raise PredicateError(f"{at!r}: None compares with nothing, as NULL in SQL; write .is_null() or .is_not_null()")
    return lit


_UFUNCS: dict[str, Callable[..., Any]] = {
    "absolute": abs, "negative": operator.neg, "invert": operator.invert, "bitwise_not": operator.invert,
    "add": Value.__add__, "subtract": Value.__sub__, "multiply": Value.__mul__, "divide": Value.__truediv__,
    "floor_divide": Value.__floordiv__, "remainder": Value.__mod__, "equal": Value.__eq__, "not_equal": Value.__ne__,
    "less": Value.__lt__, "less_equal": Value.__le__, "greater": Value.__gt__, "greater_equal": Value.__ge__,
    "left_shift": Value.__lshift__, "right_shift": Value.__rshift__,
}


def _method(operation: Operation) -> Callable[..., Value]:
    def method(self: Value, *others: Any) -> Value:
        at = f"{operand_text(self)}.{operation.name}({', '.join(map(text_of, others))})"
        if len(others) != operation.operands - 1:
            refuse(at)
        args = [self.expr, *(lift(x, at) for x in others)]
        return Value(functions.operation(operation.name, args, at), at, atom=True)

    method.__name__, method.__doc__ = operation.name, f"{operation.help[0].upper()}{operation.help[1:]}."
    return method


for _operation in integer_functions():
    setattr(Value, _operation.name, _method(_operation))
for _operation in operators():
    if f"__{_operation.python}__" not in vars(Value):  # & and | are of conditions, too
        _forward, _reflected = _operator(_operation.name, partial(functions.operation_of_two, _operation.name))
        setattr(Value, f"__{_operation.python}__", _forward)
        setattr(Value, f"__r{_operation.python}__", _reflected)
    _UFUNCS[_operation.numpy] = getattr(Value, f"__{_operation.python}__")
