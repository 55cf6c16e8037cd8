"""Values of expressions of a Python function that is executed with stand-ins.

They are computed with the stand-ins of conditions (`splitjoin.lang.python.values`), so their types, their rules and
most of their errors are those of conditions.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from splitjoin.base.errors import PredicateError, SplitJoinError

from ..functions import case
from ..ir import Arith, Expr, Lit
from ..properties import denominator, value_range
from ..refusals import text_of
from ..types import EXACT, Bool, Int, is_exact
from .choices import greatest, least, where
from .loops import ABSENT
from .source import FunctionSource
from .values import Value, lift
from .variables import StateRecord, Struct, Variables, is_struct, is_traced, item_names, like

#: Functions that call each other are followed so deep.
_CALLS = 20
#: Values that an unrolled loop may have.
UNROLLED = 256

#: The most places that a value is shifted by.
_PLACES = 63

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod),
    ast.LShift: ("<<", operator.lshift), ast.RShift: (">>", operator.rshift), ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_), ast.BitXor: ("^", operator.xor), ast.Pow: ("**", operator.pow),
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}
_BITWISE = (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: Builtins that are called where all arguments are known before the run.
_CONSTANT = {builtins.len, builtins.range, builtins.round, builtins.int, builtins.float, builtins.tuple, builtins.list,
             builtins.enumerate, builtins.zip, builtins.reversed, builtins.sum, builtins.min, builtins.max,
             builtins.abs, builtins.bool, Fraction}


class Expressions(ABC):
    """The expressions of the function of ``source``. ``places`` keeps assigned values."""

    #: Rounds that a loop may have.
    most_rounds = UNROLLED

    def __init__(self, source: FunctionSource, places: Variables | None = None, depth: int = 0):
        self._source, self._places, self._depth = source, places or Variables(), depth
        closure = inspect.getclosurevars(source.fn)
        self._outer = {**closure.builtins, **closure.globals, **closure.nonlocals}
        self._env: dict[str, Any] = {}

    @abstractmethod
    def run(self, arguments: Mapping[str, Any]) -> Any:
        """The value that the function returns; None if it returns none. Raises a `SplitJoinError` with the line."""

    @abstractmethod
    def _assign(self, target: ast.expr, value: Any) -> None:
        """Let ``target`` have ``value``."""

    def _located(self, error: SplitJoinError, node: ast.AST) -> SplitJoinError:
        if getattr(error, "placed", False):
            return error
        located = self._source.located(error, node)
        located.placed = True  # type: ignore[attr-defined]  # of this error only
        return located

    def _chosen(self, condition: Value, a: Any, b: Any, name: str = "") -> Any:
        if a is b or b is ABSENT:
            return a
        if a is ABSENT:
            return b
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            if len(a) != len(b):
                raise PredicateError(f"both branches of an if must give tuples of one length, not {len(a)} and "
                                     f"{len(b)}")
            names = item_names(name, a) if name else [""] * len(a)
            return like(a if isinstance(b, Struct) else b, [self._chosen(condition, x, y, of) for x, y, of in zip(
                a, b, names, strict=True)])
        if not is_traced(a) and not is_traced(b) and type(a) is type(b) and a == b:
            return a
        if any(isinstance(x, (list, tuple, StateRecord)) for x in (a, b)):
            raise PredicateError("both branches of an if must give numbers, or tuples of one length")
        at = f"{text_of(a)} if {condition.text} else {text_of(b)}"
        if a is None or b is None:
            null = Value(Lit(EXACT, None), "None", atom=True)
            then, other = (null if x is None else x for x in (a, b))
            choice = case([condition.expr], [_lifted(then, at)], _lifted(other, at), at)
            return self._places.kept(Value(choice, at, atom=True), name)
        if _is_condition(a) and _is_condition(b):
            return self._places.kept((condition & a) | (~condition & b), name)
        return self._places.kept(where(condition, a, b), name)

    def _value(self, node: ast.expr) -> Any:
        try:
            return self._evaluated(node)
        except SplitJoinError as error:
            raise self._located(error, node) from None
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise self._located(PredicateError(f"{self._source.text(node)!r} cannot be computed: {error}"),
                                node) from None

    def _evaluated(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                if isinstance(node.value, (int, float, type(None))) or node.value is ABSENT:
                    return node.value
                self._refuse(node, "values are numbers")
            case ast.Name():
                if node.id in self._env:
                    return self._env[node.id]
                if node.id in self._outer:
                    return self._outer[node.id]
                self._refuse(node, f"{node.id!r} has no value here, or has one in one branch of an if only")
            case ast.BinOp():
                return self._binary(node, node.op, self._value(node.left), self._value(node.right))
            case ast.UnaryOp(op=ast.Not()):
                condition = self._condition(node.operand)
                return ~condition if isinstance(condition, Value) else not condition
            case ast.UnaryOp():
                a = self._value(node.operand)
                if isinstance(node.op, ast.Invert) and isinstance(a, Value):
                    a = a if isinstance(a.expr.type, Bool) else self._places.whole(a)
                return _UNARY[type(node.op)](a)
            case ast.BoolOp():
                return self._connected(node)
            case ast.Compare():
                return self._compared(node)
            case ast.IfExp():
                condition = self._condition(node.test)
                if not isinstance(condition, Value):
                    return self._value(node.body if condition else node.orelse)
                return self._chosen(self._places.kept(condition), self._value(node.body), self._value(node.orelse))
            case ast.Tuple():
                return tuple(self._value(e) for e in node.elts)
            case ast.List():
                return [self._value(e) for e in node.elts]
            case ast.ListComp(generators=[one]) | ast.GeneratorExp(generators=[one]):
                return self._listed(node.elt, one)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node, self._value(node.value))
            case ast.Call():
                return self._call(node)
        self._refuse(node, f"{self._source.text(node)!r} is not compiled")
        return None

    def _subscript(self, node: ast.Subscript, of: Any) -> Any:
        """The item of ``of`` that ``node`` names."""
        items = self._items(node, of)
        index = self._index(node, self._value(node.slice), len(items))
        if isinstance(index, int):
            return items[index]
        whole = self._places.whole(index)
        if isinstance(whole.expr.type, Int):
            return self._selected(items, whole)
        chosen = items[-1]
        for n in reversed(range(len(items) - 1)):
            chosen = where(index == n, items[n], chosen)
        return self._places.kept(chosen) if isinstance(chosen, Value) else chosen

    def _selected(self, items: list[Any], index: Value) -> Any:
        """The one of ``items`` at ``index``: by its highest bit one of two halves, and so on."""
        if len(items) == 1:
            return items[0]
        bit = (len(items) - 1).bit_length() - 1
        low, high = (self._selected(half, index) for half in (items[:1 << bit], items[1 << bit:]))
        return self._chosen(self._places.kept((index >> bit) & 1 == 1), high, low)

    def _listed(self, element: ast.expr, of: ast.comprehension) -> list[Any]:
        """The values of a comprehension, whose rounds and conditions are known before the run."""
        outer, found = dict(self._env), []
        for item in self._rounds(of.iter):
            self._assign(of.target, item)
            wanted = [self._condition(c) for c in of.ifs]
            if any(isinstance(c, Value) for c in wanted):
                self._refuse(of.ifs[0], "a condition of a comprehension must be known before the run")
            if all(wanted):
                found.append(self._value(element))
        self._env = outer
        return found

    def _rounds(self, node: ast.expr) -> list[Any]:
        """The values over which a loop goes."""
        items = self._value(node)
        if is_traced(items) and not isinstance(items, (list, tuple)):
            self._refuse(node, "a loop needs a number of rounds that is known before the run, such as range(8)")
        rounds = list(items)
        if len(rounds) > self.most_rounds:
            self._refuse(node, f"a loop is unrolled, so it may have up to {self.most_rounds} rounds, not {len(rounds)}")
        return rounds

    def _attribute(self, node: ast.Attribute) -> Any:
        of = self._value(node.value)
        if isinstance(of, StateRecord):
            if node.attr not in of.values:
                self._refuse(node, unknown(of, node.attr))
            return of.values[node.attr]
        if isinstance(of, Struct):
            if node.attr not in of.of._fields:
                self._refuse(node, f"{of.of.__name__} has no {node.attr!r}; it has {', '.join(of.of._fields)}")
            return of[of.of._fields.index(node.attr)]
        if is_traced(of):
            self._refuse(node, f"{self._source.text(node)!r} is not compiled: a number has no attributes")
        return getattr(of, node.attr)

    def _items(self, node: ast.Subscript, of: Any) -> list[Any]:
        if not isinstance(of, (list, tuple)):
            self._refuse(node, f"{self._source.text(node.value)} is no tuple")
        return list(of)

    def _index(self, node: ast.Subscript, index: Any, size: int) -> int | Value:
        if isinstance(index, Value):
            e = index.expr
            if not is_exact(e.type) or denominator(e) != 1:
                self._refuse(node.slice, "an index must be a whole number")
            low, high = value_range(e)
            if low < 0 or high >= size:
                self._refuse(node.slice, f"an index must lie within 0 and {size - 1}, but this one can be {low} to "
                                         f"{high}; write min(max(…, 0), {size - 1})")
            return self._places.kept(index)
        if not isinstance(index, int) or not -size <= index < size:
            self._refuse(node.slice, f"an index must lie within 0 and {size - 1}, not {index!r}")
        return int(index) % size

    def _binary(self, node: ast.AST, op: ast.operator, a: Any, b: Any) -> Any:
        symbol, function = _BINARY.get(type(op), ("@", operator.matmul))
        if isinstance(op, ast.Pow) and is_traced((a, b)):
            self._refuse(node, "a power is not compiled; write products, or 1 << n for a power of two")
        if isinstance(op, ast.Mult) and isinstance(a, (list, tuple)) and isinstance(b, int):
            return a * b
        if any(isinstance(x, (StateRecord, list, tuple, type(None))) for x in (a, b)):
            self._refuse(node, f"{symbol!r} needs numbers")
        if isinstance(op, (ast.LShift, ast.RShift)) and isinstance(b, Value):
            return self._shifted(node, function, a, b)
        if isinstance(op, _BITWISE):
            a, b = (self._places.whole(x) if isinstance(x, Value) else x for x in (a, b))
        if isinstance(op, ast.FloorDiv) and is_traced((a, b)):
            x, y = lift(a, "//"), lift(b, "//")
            if is_exact(x.type) and is_exact(y.type) and max(denominator(x), denominator(y)) > 1:
                # Of numbers in fixed point, too, the quotient is rounded down.
                return Value(Arith(EXACT, "//", x, y), self._source.text(node) if isinstance(node, ast.expr) else "//")
        return function(a, b)

    def _shifted(self, node: ast.AST, function: Callable[[Any, Any], Any], a: Any, places: Value) -> Any:
        """``a`` shifted by a number of places that is computed."""
        places = self._places.whole(places)
        low, high = value_range(places.expr)
        if low < 0 or high > _PLACES:
            self._refuse(node, f"the number of places to shift by must be 0 to {_PLACES}, but {places.text!r} can be "
                               f"{low} to {high}; bound it with min and max, or & {_PLACES}")
        return function(self._places.whole(a) if isinstance(a, Value) else a, places)

    def _connected(self, node: ast.BoolOp) -> Any:
        is_and, joined = isinstance(node.op, ast.And), None
        for part in node.values:
            condition = self._condition(part)
            if not isinstance(condition, Value):
                if condition is not is_and:
                    return condition
                continue
            joined = condition if joined is None else (joined & condition) if is_and else (joined | condition)
        return is_and if joined is None else joined

    def _compared(self, node: ast.Compare) -> Any:
        values = [self._value(node.left), *map(self._value, node.comparators)]
        truth: Any = True
        for op, a, b in zip(node.ops, values, values[1:], strict=False):
            if type(op) not in _COMPARED:
                self._refuse(node, "numbers are compared with == != < <= > >=")
            if any(isinstance(x, (StateRecord, list, tuple, type(None))) for x in (a, b)):
                self._refuse(node, "numbers are compared, not tuples, states or None")
            one = _COMPARED[type(op)](a, b)
            if not isinstance(one, (Value, bool, np.bool_)):
                self._refuse(node, "a comparison gives true or false")
            truth = one if truth is True else truth & one if isinstance(one, Value) else truth if one else False
            if truth is False:
                return False
        return truth

    def _condition(self, node: ast.expr) -> Value | bool:
        value = self._value(node)
        if isinstance(value, Value):
            if not isinstance(value.expr.type, Bool):
                self._refuse(node, f"a condition must be a comparison, not a number; write {self._source.text(node)} "
                                   f"!= 0")
            return value
        if not isinstance(value, (bool, np.bool_)):
            self._refuse(node, "a condition must be a comparison")
        return bool(value)

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "_replace" and isinstance(
                of := self._value(node.func.value), Struct):
            function = partial(of.of, **dict(zip(of.of._fields, of, strict=True)))
        else:
            function = self._value(node.func)
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self._refuse(node, "arguments are given one by one")
        args = [self._value(a) for a in node.args]
        named = {str(k.arg): self._value(k.value) for k in node.keywords}
        if is_struct(function) or isinstance(function, partial):
            made = function(*args, **named)
            return Struct(type(made), made)
        inner = self._compiled(function)
        if inner is not None:
            return self._inlined(node, inner, args, named)
        traced = is_traced([*args, *named.values()])
        if function in (least, greatest, where) and not named:
            return function(*args) if traced else self._refuse(node, "one argument at least must be computed")
        if function in (builtins.min, builtins.max) and traced and not named:
            values = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
            return values[0] if len(values) == 1 else (least if function is builtins.min else greatest)(*values)
        if function is builtins.abs and traced:
            return abs(*args)
        if function is builtins.sum and traced and not named:
            total = args[1] if len(args) > 1 else 0
            for item in args[0]:
                total = total + item
            return total
        containers = (builtins.len, builtins.enumerate, builtins.zip, builtins.reversed, builtins.tuple, builtins.list)
        known = isinstance(function, type) or callable(function)
        if known and (function in _CONSTANT and (not traced or function in containers)):
            result = function(*args, **named)
            return list(result) if function in containers and function is not builtins.len else result
        if function is builtins.range:
            self._refuse(node, "range needs numbers that are known before the run; write the most rounds that there "
                               "can be, and end them: 'for n in range(16):' with 'if n >= …: break'")
        self._refuse(node, f"{self._source.text(node.func)!r} is not compiled; functions are min, max, abs, sum, len, "
                           f"range, zip, enumerate, splitjoin.where, least and greatest, and those that "
                           f"@splitjoin.function marks")
        return None

    def _compiled(self, function: Any) -> FunctionSource | None:
        """The source of ``function`` if calls of it are executed, too."""
        return getattr(function, "splitjoin_source", None)

    def _inlined(self, node: ast.Call, inner: FunctionSource, args: list[Any], named: dict[str, Any]) -> Any:
        if self._depth >= _CALLS:
            self._refuse(node, f"functions must not call each other more than {_CALLS} deep, nor themselves")
        try:
            bound = inspect.signature(inner.fn).bind(*args, **named)
        except TypeError as error:
            raise PredicateError(f"{self._source.text(node)!r}: {error}") from None
        bound.apply_defaults()
        return type(self)(inner, self._places, self._depth + 1).run(bound.arguments)

    def _refuse(self, node: ast.AST, what: str) -> Any:
        raise self._located(PredicateError(what), node)


def _lifted(value: Any, at: str) -> Expr:
    return value.expr if isinstance(value, Value) else lift(value, at)


def unknown(record: StateRecord, name: str) -> str:
    return f"{record.name} has no {name!r}; it has {', '.join(record.values)}"


def _is_condition(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, Value) and isinstance(value.expr.type, Bool))
