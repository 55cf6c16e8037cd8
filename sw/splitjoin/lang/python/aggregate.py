"""``@splitjoin.aggregate`` and ``@splitjoin.function``: classes and functions that are compiled with the conditions."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any

from splitjoin.base.errors import PredicateError

from ..conversions import to_float
from ..fold import AggregateCall, Fold, Program, Slot, Width, scaled
from ..fold_laws import check_laws
from ..ir import Case, Expr, Lit
from ..properties import denominator
from ..types import EXACT, FLOAT64, Bool, is_exact
from .classes import StatefulClass, declared, slot_values
from .function_statements import FunctionRun
from .source import FunctionSource
from .steps import Steps, pruned
from .values import Value, lift
from .variables import StateRecord, is_traced


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
    source = FunctionSource.of(fn, getattr(fn, "__name__", "function"))

    @functools.wraps(fn)
    def called(*args: Any, **named: Any) -> Any:
        if not is_traced([*args, *named.values()]):
            return fn(*args, **named)
        bound = inspect.signature(fn).bind(*args, **named)
        bound.apply_defaults()
        return FunctionRun(source).run(bound.arguments)

    called.splitjoin_source = source  # type: ignore[attr-defined]  # executions follow it
    return called


class _Compiler(StatefulClass):
    def fold(self, *, ordered: bool) -> Fold:
        of = self._of
        unknown = [n for n, v in vars(of).items() if inspect.isfunction(v) and not hasattr(v, "splitjoin_source")
                   and n not in ("init", "add", "merge", "remove", "result")]
        if unknown:
            raise PredicateError(f"{of.__name__}.{unknown[0]} is not compiled; the methods are init, add, merge, "
                                 f"remove and result; other functions stand outside the class")
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

    def _method(self, source: FunctionSource, takes: Mapping[str, Value | StateRecord]) -> Program:
        """The program of a method that changes the state; ``takes``: what comes in, by the names of its parameters."""
        steps = Steps()
        own, *others = inspect.signature(source.fn).parameters
        execution = FunctionRun(source, steps)
        if execution.run({own: self._state(own, "r", steps), **dict(zip(others, takes.values(), strict=True))
                          }) is not None:
            raise PredicateError(f"{source.name} must return nothing; assign to attributes of {own}")
        end = execution.value(own)
        outputs = tuple(steps.raw(value.expr, width) for (_, width), value in zip(self._slots, slot_values(end),
                                                                                   strict=True))
        return pruned(Program(tuple(steps.steps), outputs))

    def _merge(self, source: FunctionSource) -> Program:
        names = list(inspect.signature(source.fn).parameters)
        if len(names) != 2:
            raise PredicateError(f"{source.name} must have the parameters self and other")
        return self._method(source, {names[1]: self._state(names[1], "s", None)})

    def _result(self, source: FunctionSource) -> tuple[Program, Width | None]:
        steps = Steps()
        parameters = list(inspect.signature(source.fn).parameters)
        if len(parameters) != 1:
            raise PredicateError(f"{source.name} must have the parameter self alone")
        result = FunctionRun(source, steps).run({parameters[0]: self._state("self", "r", None)})
        if result is None or isinstance(result, (list, tuple, StateRecord)):
            raise PredicateError(f"{source.name} must return one number")
        e = lift(result, source.name)
        hint = declared(inspect.signature(source.fn).return_annotation)
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
    def _fitted(e: Expr, width: Width, name: str, steps: Steps) -> Expr:
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
