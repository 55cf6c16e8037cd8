"""``@splitjoin.aggregate`` and ``@splitjoin.function``: classes and functions that are compiled with the conditions."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from splitjoin.base.errors import PredicateError

from .. import build
from ..conversions import to_float
from ..fold import AggregateCall, Argument, Fold, Program, Slot, Width, scaled, signed, unsigned
from ..fold_laws import check_laws
from ..ir import Arith, Case, Col, Expr, Lit, check_depth, columns
from ..properties import denominator, may_be_null, value_range
from ..types import EXACT, FLOAT64, Bool, Float, Int, is_exact
from .source import Source
from .statements import Execution
from .values import Value, lift
from .variables import StateRecord, Variables, is_traced

__all__ = ["AggregateClass", "aggregate", "function"]

_INT64 = Int(64).range


class AggregateClass:
    """A compiled class. Called with values such as ``"s.price"``, one for each parameter of ``add``, it is an aggregate
    for ``aggregate=`` of joins. Made by `aggregate`.

    Attributes: ``fold``, the compiled definition; ``definition``, the class itself.
    """

    def __init__(self, definition: type, fold: Fold):
        self.definition, self.fold = definition, fold
        self.__name__, self.__doc__, self.__module__ = definition.__name__, definition.__doc__, definition.__module__

    def __call__(self, *values: str) -> AggregateCall:
        """The aggregate of ``values``, SQL texts over ``r`` and ``s``."""
        return AggregateCall(self.fold, values)

    def __repr__(self) -> str:
        return f"<aggregate {self.fold.name}({', '.join(a.name for a in self.fold.arguments)})>"


@typing.overload
def aggregate(definition: type) -> AggregateClass: ...


@typing.overload
def aggregate(*, ordered: bool = False) -> Callable[[type], AggregateClass]: ...


def aggregate(definition: type | None = None, *, ordered: bool = False) -> Any:
    """Compile a class into an aggregate: the state is its annotated attributes, ``add`` takes in a partner.

    ``init`` sets the state before the first partner (else all is 0), ``result`` returns the value. ``merge(self,
    other)`` takes in the state of later partners, ``remove`` undoes an ``add``; both may be left out. With ``ordered``
    ``merge`` depends on which state is the earlier one.

    Raises `PredicateError` that points at the line that is not compiled, and for a ``merge`` or ``remove`` that gives
    something else than ``add`` does.
    """
    frame = sys._getframe(1)
    known = {**frame.f_globals, **frame.f_locals}

    def compiled(of: type) -> AggregateClass:
        if not isinstance(of, type):
            raise PredicateError(f"@splitjoin.aggregate must stand above a class, not {type(of).__name__}")
        return AggregateClass(of, _Compiler(of, known).fold(ordered=ordered))

    return compiled if definition is None else compiled(definition)


def function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark ``fn`` for use in conditions and aggregates, where it is compiled, with its ``if``.

    Called with numbers, it is the function itself. Its value has the types that its arguments give it; annotations are
    for readers.
    """
    if not callable(fn):
        raise PredicateError(f"@splitjoin.function must stand above a function, not {type(fn).__name__}")
    source = Source.of(fn, getattr(fn, "__name__", "function"))

    @functools.wraps(fn)
    def called(*args: Any, **named: Any) -> Any:
        if not is_traced([*args, *named.values()]):
            return fn(*args, **named)
        bound = inspect.signature(fn).bind(*args, **named)
        bound.apply_defaults()
        return Execution(source).run(bound.arguments)

    called.splitjoin_source = source  # type: ignore[attr-defined]  # executions follow it
    return called


class _Steps(Variables):
    """Keeps values as columns that are computed before they are read, so that no expression grows deep."""

    def __init__(self) -> None:
        self.steps: list[tuple[Col, Expr]] = []
        self._known: dict[Expr, Expr] = {}

    def stored(self, e: Expr) -> Expr:
        """``e`` as a column, or that times a constant."""
        return self.column(e)

    def whole(self, value: Value) -> Value:
        """``value`` with an integer type. Raises `PredicateError` for fractions and more than 64 bits."""
        if isinstance(value.expr.type, Int):
            return value
        if not is_exact(value.expr.type) or denominator(value.expr) != 1:
            raise PredicateError(f"{value.text!r}: shifts and bit operations need whole numbers; multiply by a power "
                                 f"of two instead, or write // 1")
        atom = self.kept(value)
        if not isinstance(atom.expr, Lit) and not isinstance(atom.expr.type, Int):
            low, high = map(int, value_range(value.expr))
            raise PredicateError(f"{value.text!r}: shifts and bit operations need whole numbers of 64 bits, but this "
                                 f"can be {low} to {high}; bound it with min and max")
        return atom

    def column(self, e: Expr) -> Expr:
        """``e`` as a column."""
        check_depth(e)
        if isinstance(e, (Col, Lit)) or (isinstance(e, Arith) and isinstance(e.a, Col) and e == scaled(
                e.a, denominator(e))):
            return e
        if e not in self._known:
            self._known[e] = self._new(e)
        return self._known[e]

    def _new(self, e: Expr) -> Expr:
        name, nullable = f"${len(self.steps)}", may_be_null(e)
        if isinstance(e.type, (Bool, Float)):
            column = Col(e.type, "s", name, nullable)
            self.steps.append((column, e))
            return column
        per = denominator(e)
        quotient = e if per == 1 else Arith(EXACT, "//", e, Lit(EXACT, Fraction(1, per)))
        low, high = map(int, value_range(quotient))
        fits = _INT64[0] <= low <= high <= _INT64[1]
        column = Col(Int(64) if fits else EXACT, "s", name, nullable, (low, high))
        self.steps.append((column, quotient))
        return scaled(column, per)

    def raw(self, e: Expr, width: Width) -> Expr:
        """The whole number, without the point, that ``e`` is in ``width``: rounded down."""
        per = 2**width.fraction
        if isinstance(e, Lit):
            assert isinstance(e.value, (int, Fraction))
            return Lit(EXACT, e.value * per // 1)
        if per == 1:
            return e
        if isinstance(e, Arith) and isinstance(e.a, Col) and e == scaled(e.a, per):
            return e.a
        return self.column(Arith(EXACT, "//", e, Lit(EXACT, Fraction(1, per))))


class _Compiler:
    """Compiles the class ``of``; ``known``: the names where it is defined."""

    def __init__(self, of: type, known: Mapping[str, Any]):
        outer = next((v.__globals__ for v in vars(of).values() if inspect.isfunction(v)), {})
        self._of, self._known = of, {**outer, **known, **vars(of)}
        self._fields = {name: self._width(f"{of.__name__}.{name}", hint, many=True)
                        for name, hint in inspect.get_annotations(of).items()}
        if not self._fields:
            raise PredicateError(f"{of.__name__} must declare its state, such as 'n: splitjoin.unsigned(20)'")
        valued = [name for name in self._fields if repr(vars(of).get(name, 0)) != "0"]
        if valued:
            raise PredicateError(f"{of.__name__}.{valued[0]} must have no value but 0 where it is declared, not "
                                 f"{vars(of)[valued[0]]!r}; the state begins with 0, or with what init(self) sets")
        self._slots = [(name if count is None else f"{name}[{n}]", width)
                       for name, (width, count) in self._fields.items() for n in range(count or 1)]

    def fold(self, *, ordered: bool) -> Fold:
        """The definition."""
        of = self._of
        unknown = [n for n, v in vars(of).items() if inspect.isfunction(v) and not hasattr(v, "splitjoin_source")
                   and n not in ("init", "add", "merge", "remove", "result")]
        if unknown:
            raise PredicateError(f"{of.__name__}.{unknown[0]} is not compiled; the methods are init, add, merge, "
                                 f"remove and result; other functions stand outside the class, under "
                                 f"@splitjoin.function")
        add, result = self._source("add"), self._source("result")
        if add is None or result is None:
            raise PredicateError(f"{of.__name__} must have the methods add and result")
        arguments = self._arguments(add)
        init = self._init()
        slots = tuple(Slot(name, width, init[name]) for (name, width) in self._slots)
        remove, merge = self._source("remove"), self._source("merge")
        if remove is not None and [a.name for a in self._arguments(remove)] != [a.name for a in arguments]:
            raise PredicateError(f"{of.__name__}.remove must have the parameters of add")
        takes = {a.name: Value(scaled(a.column, 2**a.width.fraction), a.name, atom=True) for a in arguments}
        value, width = self._result(result)
        fold = Fold(of.__name__, slots, arguments, self._method(add, takes), value,
                    None if merge is None else self._merge(merge),
                    None if remove is None else self._method(remove, takes), width, ordered)
        check_laws(fold)
        return fold

    def _source(self, name: str) -> Source | None:
        fn = getattr(self._of, name, None)
        return None if fn is None else Source.of(fn, f"{self._of.__name__}.{name}")

    def _width(self, name: str, hint: Any, *, many: bool = False) -> Any:
        """The width that an annotation gives; with ``many``, and the length of a tuple, or None."""
        if isinstance(hint, str):
            try:
                hint = eval(hint, dict(self._known))  # the user's annotation, as typing evaluates it
            except NameError as error:
                raise PredicateError(f"the annotation of {name} must be known where it is defined: {error}") from None
        if typing.get_origin(hint) is typing.Annotated:
            hint = next((x for x in typing.get_args(hint)[1:] if isinstance(_declared(x), (Width, tuple))), hint)
        hint = _declared(hint)
        if many and isinstance(hint, (tuple, list)) and hint and all(h == hint[0] for h in hint) and isinstance(
                _declared(hint[0]), Width):
            return _declared(hint[0]), len(hint)
        if not isinstance(hint, Width):
            raise PredicateError(f"{name} must be annotated with splitjoin.signed(bits), unsigned(bits) or fixed(bits, "
                                 f"fraction){', or a tuple of one of them' * many}, not {hint!r}")
        return (hint, None) if many else hint

    def _arguments(self, source: Source) -> tuple[Argument, ...]:
        parameters = list(inspect.signature(source.fn).parameters.values())[1:]
        arguments = []
        for p in parameters:
            if p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty:
                raise PredicateError(f"{source.name} must have plain parameters, without defaults, not {p}")
            hint = None if p.annotation is p.empty else p.annotation
            arguments.append(Argument(p.name, self._width(f"parameter {p.name} of {source.name}", hint)))
        return tuple(arguments)

    def _state(self, name: str, side: Any, steps: _Steps | None) -> StateRecord:
        """The stand-in for a state; with ``steps`` one that is assigned to."""
        def value(slot: str, width: Width) -> Value:
            return Value(scaled(Slot(slot, width).column(side), 2**width.fraction), f"{name}.{slot}", atom=True)

        values = {field: value(field, width) if count is None else [value(f"{field}[{n}]", width)
                                                                    for n in range(count)]
                  for field, (width, count) in self._fields.items()}
        return StateRecord(name, values, None if steps is None else self._assigner(steps))

    def _assigner(self, steps: _Steps) -> Callable[[str, Any, str], Value]:
        widths = dict(self._slots)

        def assign(slot: str, value: Any, at: str) -> Value:
            width, e = widths[slot], lift(value, at)
            if isinstance(e.type, Bool):
                e = Case(EXACT, (e,), (Lit(EXACT, 1),), Lit(EXACT, 0))
            if not is_exact(e.type):
                raise PredicateError(f"{at!r} is {width}, but {e.type} is assigned to it; '/' is for result() alone: "
                                     f"multiply by a constant, or write //")
            if may_be_null(e):
                raise PredicateError(f"{at!r} must have a value, but what is assigned is NULL where a divisor is 0; "
                                     f"divide by a constant")
            if not width.fraction and denominator(e) != 1:
                raise PredicateError(f"{at!r} is {width}, but what is assigned may have a fraction; write // 1, which "
                                     f"rounds down, or declare it as fixed(bits, fraction)")
            raw = steps.raw(e, width)
            stored = raw if isinstance(raw, Lit) else steps.column(raw)
            if isinstance(stored, Lit):
                assert isinstance(stored.value, int)
                exact = Fraction(stored.value, 2**width.fraction)
                return Value(Lit(EXACT, build.whole(exact)), at, atom=True)
            return Value(scaled(stored, 2**width.fraction), at, atom=True)

        return assign

    def _init(self) -> dict[str, int]:
        source, init = self._source("init"), dict.fromkeys((name for name, _ in self._slots), 0)
        if source is None:
            return init
        steps = _Steps()
        state = self._state("self", "r", steps)
        zero = Value(Lit(EXACT, 0), "0", atom=True)
        state.values = {n: [zero] * len(v) if isinstance(v, list) else zero for n, v in state.values.items()}
        (own,) = inspect.signature(source.fn).parameters
        execution = Execution(source, steps)
        execution.run({own: state})
        end = execution.value(own)
        for name, width in self._slots:
            e = _slot(end, name).expr
            start = steps.raw(e, width)
            assert isinstance(start, Lit)
            assert isinstance(start.value, int)
            low, high = width.range
            if not low <= start.value <= high:
                raise PredicateError(f"{self._of.__name__}.init: {name} must fit {width}, but is "
                                     f"{width.shown(start.value)}")
            init[name] = start.value
        return init

    def _method(self, source: Source, takes: Mapping[str, Value | StateRecord]) -> Program:
        """The program of a method that changes the state; ``takes``: what comes in, by the names of its parameters."""
        steps = _Steps()
        own, *others = inspect.signature(source.fn).parameters
        execution = Execution(source, steps)
        if execution.run({own: self._state(own, "r", steps), **dict(zip(others, takes.values(), strict=True))
                          }) is not None:
            raise PredicateError(f"{source.name} must return nothing; assign to attributes of {own}")
        end = execution.value(own)
        outputs = tuple(steps.raw(_slot(end, name).expr, width) for name, width in self._slots)
        return pruned(Program(tuple(steps.steps), outputs))

    def _merge(self, source: Source) -> Program:
        names = list(inspect.signature(source.fn).parameters)
        if len(names) != 2:
            raise PredicateError(f"{source.name} must have the parameters self and other")
        return self._method(source, {names[1]: self._state(names[1], "s", None)})

    def _result(self, source: Source) -> tuple[Program, Width | None]:
        steps = _Steps()
        parameters = list(inspect.signature(source.fn).parameters)
        if len(parameters) != 1:
            raise PredicateError(f"{source.name} must have the parameter self alone")
        result = Execution(source, steps).run({parameters[0]: self._state("self", "r", None)})
        if result is None or isinstance(result, (list, tuple, StateRecord)):
            raise PredicateError(f"{source.name} must return one number")
        e = lift(result, source.name)
        hint = _declared(inspect.signature(source.fn).return_annotation)
        if isinstance(hint, str) and hint not in ("float", "int", "bool"):
            hint = self._width(f"the result of {source.name}", hint)
        width = None
        if (hint in (int, "int") and not (is_exact(e.type) and denominator(e) == 1)) or (
                hint in (bool, "bool") and not isinstance(e.type, Bool)):
            raise PredicateError(f"{source.name} is to return {hint if isinstance(hint, str) else hint.__name__}, but "
                                 f"returns {e.type}")
        if hint in (float, "float"):
            e = to_float(e, FLOAT64, source.name)
        elif isinstance(hint, Width) or typing.get_origin(hint) is typing.Annotated:
            width = self._width(f"the result of {source.name}", hint)
            e = self._fitted(e, width, source.name, steps)
        elif hint not in (inspect.Signature.empty, int, "int", bool, "bool", typing.Any):
            raise PredicateError(f"the result of {source.name} must be annotated with splitjoin.signed, unsigned or "
                                 f"fixed, float, int or bool, not {hint!r}")
        return pruned(Program(tuple(steps.steps), (e,))), width

    @staticmethod
    def _fitted(e: Expr, width: Width, name: str, steps: _Steps) -> Expr:
        if isinstance(e.type, Bool):
            e = Case(EXACT, (e,), (Lit(EXACT, 1),), Lit(EXACT, 0))
        if not is_exact(e.type):
            raise PredicateError(f"{name} is to return {width}, but returns {e.type}; annotate it with float")
        if width.fraction > 0 and width.bits > 53:
            raise PredicateError(f"{name} must return up to 53 bits in fixed point, which float64 holds, not {width}")
        if not width.fraction and denominator(e) != 1:
            raise PredicateError(f"{name} is to return {width}, but what it returns may have a fraction; write // 1, "
                                 f"which rounds down")
        return steps.raw(e, width)


def _declared(hint: Any) -> Any:
    """``hint``, or the width that it is as a shape of Amaranth, as ``amaranth.unsigned(16)`` gives."""
    if type(hint).__module__.partition(".")[0] != "amaranth":
        return hint
    bits, is_signed = getattr(hint, "width", None), getattr(hint, "signed", None)
    if type(bits) is not int or type(is_signed) is not bool:  # an enumeration, a layout
        return hint
    return signed(bits) if is_signed else unsigned(bits)


def _slot(state: StateRecord, name: str) -> Value:
    field, _, index = name.partition("[")
    value = state.values[field]
    return typing.cast(Value, value[int(index[:-1])] if index else value)


def pruned(program: Program) -> Program:
    """``program`` without steps that no output needs."""
    needed = {c.name for e in program.outputs for c in columns(e) if c.side == "s"}
    kept = []
    for column, e in reversed(program.steps):
        if column.name in needed:
            kept.append((column, e))
            needed |= {c.name for c in columns(e) if c.side == "s"}
    return Program(tuple(reversed(kept)), program.outputs)
