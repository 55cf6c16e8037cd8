"""Classes whose annotated attributes are a state of stated widths, and widths of parameters and results."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from splitjoin.base.errors import PredicateError

from .. import build
from ..fold import Argument, Slot, Width, scaled, signed, unsigned
from ..ir import Case, Lit
from ..properties import denominator, may_be_null
from ..types import EXACT, Bool, is_exact
from .function_statements import FunctionRun
from .source import FunctionSource
from .steps import Steps
from .values import Value, lift
from .variables import StateRecord, Struct, is_struct

#: Rounds of a loop of ``init``, which is executed once, and makes no operations.
_INIT_ROUNDS = 1 << 16
_WIDTHS = "splitjoin.signed(bits), unsigned(bits) or fixed(bits, fraction)"


@dataclass(frozen=True)
class NumberField:
    """Numbers under one name: one, a tuple, or a named tuple. ``names``: of each as a part, such as ``.x`` or ``[2]``;
    empty for one number. ``struct``: the class of a named tuple, else None.
    """

    widths: tuple[Width, ...]
    names: tuple[str, ...] = ()
    struct: Any = None

    def slots(self, name: str) -> list[tuple[str, Width]]:
        """The names and widths of the numbers of ``name``."""
        return [(name + part, width) for part, width in zip(self.names or ("",), self.widths, strict=True)]

    def made(self, values: Iterable[Any]) -> Any:
        """What has this form and the numbers ``values``, for a compiled function."""
        found = list(values)
        return found[0] if not self.names else found if self.struct is None else Struct(self.struct, found)


class StatefulClass:
    """A class whose annotated attributes are a state; ``known``: the names where it is defined."""

    def __init__(self, of: type, known: Mapping[str, Any]):
        outer = next((v.__globals__ for v in vars(of).values() if inspect.isfunction(v)), {})
        self._of, self._known = of, {**outer, **known, **vars(of)}
        self._fields = {name: stated_field(f"{of.__name__}.{name}", hint, self._known)
                        for name, hint in inspect.get_annotations(of).items()}
        if not self._fields:
            raise PredicateError(f"{of.__name__} must declare its state, such as 'n: splitjoin.unsigned(20)'")
        valued = [name for name in self._fields if repr(vars(of).get(name, 0)) != "0"]
        if valued:
            raise PredicateError(f"{of.__name__}.{valued[0]} must have no value but 0 where it is declared, not "
                                 f"{vars(of)[valued[0]]!r}; the state begins with 0, or with what init(self) sets")
        self._slots = [slot for name, field in self._fields.items() for slot in field.slots(name)]

    def _source(self, name: str) -> FunctionSource | None:
        fn = getattr(self._of, name, None)
        return None if fn is None else FunctionSource.of(fn, f"{self._of.__name__}.{name}")

    def _width(self, name: str, hint: Any) -> Width:
        return stated_width(name, hint, self._known)

    def _arguments(self, source: FunctionSource) -> tuple[Argument, ...]:
        parameters = list(inspect.signature(source.fn).parameters.values())[1:]
        arguments = []
        for p in parameters:
            if p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty:
                raise PredicateError(f"{source.name} must have plain parameters, without defaults, not {p}")
            hint = None if p.annotation is p.empty else p.annotation
            arguments.append(Argument(p.name, self._width(f"parameter {p.name} of {source.name}", hint)))
        return tuple(arguments)

    def _state(self, name: str, side: Any, steps: Steps | None) -> StateRecord:
        """The stand-in for a state; with ``steps`` one that is assigned to."""
        def value(slot: str, width: Width) -> Value:
            return Value(scaled(Slot(slot, width).column(side), 2**width.fraction), f"{name}.{slot}", atom=True)

        values = {field: of.made(value(*slot) for slot in of.slots(field)) for field, of in self._fields.items()}
        return StateRecord(name, values, None if steps is None else self._assigner(steps))

    def _assigner(self, steps: Steps) -> Callable[[str, Any, str], Value]:
        widths = dict(self._slots)

        return lambda slot, value, at: assigned(steps, widths[slot], value, at)

    def _init(self) -> dict[str, int]:
        source, init = self._source("init"), dict.fromkeys((name for name, _ in self._slots), 0)
        if source is None:
            return init
        steps = Steps()
        state = self._state("self", "r", steps)
        zero = Value(Lit(EXACT, 0), "0", atom=True)
        state.values = {name: field.made([zero] * len(field.widths)) for name, field in self._fields.items()}
        (own,) = inspect.signature(source.fn).parameters
        execution = FunctionRun(source, steps)
        execution.most_rounds = _INIT_ROUNDS
        execution.run({own: state})
        end = execution.value(own)
        for (name, width), value in zip(self._slots, slot_values(end), strict=True):
            start = steps.raw(value.expr, width)
            assert isinstance(start, Lit)
            assert isinstance(start.value, int)
            low, high = width.range
            if not low <= start.value <= high:
                raise PredicateError(f"{self._of.__name__}.init: {name} must fit {width}, but is "
                                     f"{width.shown(start.value)}")
            init[name] = start.value
        return init


def assigned(steps: Steps, width: Width, value: Any, at: str) -> Value:
    """``value`` as ``at``, which has ``width``: rounded down. Raises `PredicateError` for what is no number of it."""
    e = lift(value, at)
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
    stored = raw if isinstance(raw, Lit) else steps.fitted(raw, width)
    if isinstance(stored, Lit):
        assert isinstance(stored.value, int)
        exact = Fraction(stored.value, 2**width.fraction)
        return Value(Lit(EXACT, build.whole(exact)), at, atom=True)
    return Value(scaled(stored, 2**width.fraction), at, atom=True)


def stated_width(name: str, hint: Any, known: Mapping[str, Any]) -> Width:
    """The width that the annotation ``hint`` of ``name`` gives. ``known``: the names where it is written."""
    hint = _annotation(name, hint, known)
    if not isinstance(hint, Width):
        raise PredicateError(f"{name} must be annotated with {_WIDTHS}, not {hint!r}")
    return hint


def stated_field(name: str, hint: Any, known: Mapping[str, Any]) -> NumberField:
    """What the annotation ``hint`` of ``name`` gives: a width, a tuple of one width, or the widths of a named tuple."""
    hint = _annotation(name, hint, known)
    if isinstance(hint, Width):
        return NumberField((hint,))
    if is_struct(hint):
        hints = inspect.get_annotations(hint)
        names = {**vars(sys.modules.get(hint.__module__)), **known} if hint.__module__ in sys.modules else known
        return NumberField(tuple(stated_width(f"{hint.__name__}.{n}", hints.get(n), names) for n in hint._fields),
                          tuple(f".{n}" for n in hint._fields), hint)
    if isinstance(hint, (tuple, list)) and hint and all(h == hint[0] for h in hint) and isinstance(
            declared(hint[0]), Width):
        return NumberField((declared(hint[0]),) * len(hint), tuple(f"[{n}]" for n in range(len(hint))))
    raise PredicateError(f"{name} must be annotated with {_WIDTHS}, a tuple of one of them, or a NamedTuple, not "
                         f"{hint!r}")


def _annotation(name: str, hint: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(hint, str):
        try:
            hint = eval(hint, dict(known))  # the user's annotation, as typing evaluates it
        except NameError as error:
            raise PredicateError(f"the annotation of {name} must be known where it is defined: {error}") from None
    if typing.get_origin(hint) is typing.Annotated:
        hint = next((x for x in typing.get_args(hint)[1:] if isinstance(declared(x), (Width, tuple))), hint)
    if isinstance(hint, typing.ForwardRef):
        return _annotation(name, hint.__forward_arg__, known)
    return declared(hint)


def declared(hint: Any) -> Any:
    """``hint``, or the width that it is as a shape of Amaranth, as ``amaranth.unsigned(16)`` gives."""
    if type(hint).__module__.partition(".")[0] != "amaranth":
        return hint
    bits, is_signed = getattr(hint, "width", None), getattr(hint, "signed", None)
    if type(bits) is not int or type(is_signed) is not bool:  # an enumeration, a layout
        return hint
    return signed(bits) if is_signed else unsigned(bits)


def slot_values(state: StateRecord) -> list[Value]:
    """The numbers of ``state``, in the order of its slots."""
    return [v for value in state.values.values() for v in (value if isinstance(value, list) else [value])]
