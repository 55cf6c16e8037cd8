"""Typed Python functions, and classes with a state that ``step`` changes, compiled to programs.

A state is the tuple of a stream *r*, and what comes in that of a stream *s*, as in user-defined aggregates
(`splitjoin.lang.fold`). So the programs have the types and rules of conditions.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from splitjoin.base.errors import PredicateError, UnsupportedError
from splitjoin.lang.fold import Program, Slot, Width, scaled
from splitjoin.lang.ir import Case, Col, Expr, Lit
from splitjoin.lang.properties import value_range
from splitjoin.lang.python.classes import (
    NumberField,
    StatefulClass,
    assigned,
    declared,
    slot_values,
    stated_field,
    stated_width,
)
from splitjoin.lang.python.function_statements import FunctionRun
from splitjoin.lang.python.loops import ABSENT
from splitjoin.lang.python.source import FunctionSource
from splitjoin.lang.python.steps import Steps, pruned
from splitjoin.lang.python.values import Value, lift
from splitjoin.lang.python.variables import Struct, is_struct, is_traced
from splitjoin.lang.types import BOOL, EXACT, Bool, is_exact

from .balance import balanced
from .graph import Graph, width_of
from .programs import build_graph


@dataclass(frozen=True)
class Port:
    """A parameter, or a number of the result."""

    name: str
    field: NumberField

    @property
    def numbers(self) -> list[tuple[str, Width]]:
        """The names and widths of its numbers."""
        return self.field.slots(self.name)


@dataclass(frozen=True)
class StateMemory:
    """A tuple of a state in a memory: ``rows`` numbers, each of the width and with the initial value of ``slot``."""

    #: Numbers from which on a tuple is a memory, and most numbers of a tuple.
    LEAST: ClassVar[int] = 16
    MOST: ClassVar[int] = 1024

    name: str
    rows: int
    slot: Slot

    @property
    def address_bits(self) -> int:
        """Bits of a row's number."""
        return (self.rows - 1).bit_length()


@dataclass(frozen=True)
class Kernel:
    """A compiled function or class.

    ``slots``: the state of a class, none for a function. ``graph``: operations on the numbers of ``inputs`` (stream
    *s*) and ``slots`` (*r*); its outputs are the slots' new values, the numbers of ``outputs``, and, if ``optional``,
    a bit that is 1 where a result is given and no None. ``stated``: values whose width the source states, and ranges do
    not prove. ``memories``: tuples of the state in memories, whose writes are outputs behind the slots' new values.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    slots: tuple[Slot, ...]
    graph: Graph
    optional: bool = False
    source: FunctionSource | None = None
    stated: int = 0
    memories: tuple[StateMemory, ...] = ()

    @property
    def results(self) -> tuple[int, ...]:
        """The operations whose values are the results."""
        of = self.graph.outputs[len(self.slots) + len(self.memories):]
        return of[:-1] if self.optional else of

    @property
    def present(self) -> int | None:
        """The operation that tells whether a result is given; None where it always is."""
        return self.graph.outputs[-1] if self.optional else None


@dataclass(frozen=True)
class _Optional:
    """A result that is None unless ``present``."""

    present: Value
    value: Any


class _KernelSteps(Steps):
    """Steps with their places in the source, and columns whose stated width is narrower than what is known."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, tuple[str, int]] = {}
        self.stated: set[str] = set()

    def _new(self, e: Expr) -> Expr:
        self.places[f"${len(self.steps)}"] = self.place
        return super()._new(e)

    def fitted(self, e: Expr, width: Width) -> Expr:
        column = self.column(e)
        least, most = width.range
        low, high = value_range(column)
        if least <= low and high <= most:
            return column
        name = f"${len(self.steps)}"
        made = Col(width.type, "s", name, False, width.range)
        self.steps.append((made, column))
        self.places[name] = self.place
        self.stated.add(name)
        return made


class _Typed(FunctionRun):
    """Executes a function whose annotations of variables state widths, and with None as a result."""

    def _annotated(self, node: ast.AnnAssign, value: Any) -> Any:
        name = self._source.text(node.target)
        width = stated_width(name, self._source.text(node.annotation),
                             {**self._source.fn.__globals__, **self._outer, **self._env})
        assert isinstance(self._places, Steps)
        return assigned(self._places, width, value, name)

    def _update(self, node: ast.AugAssign, target: ast.Subscript, index: Value) -> None:
        of = self._value(target.value)
        if not isinstance(of, list) or len(of) < StateMemory.LEAST:
            super()._update(node, target, index)
            return
        old = self._value(ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target))
        self._assign(target, self._binary(node, node.op, old, self._value(node.value)))

    def _chosen(self, condition: Value, a: Any, b: Any, name: str = "") -> Any:
        some = [v for v in (a, b) if v is None or isinstance(v, _Optional)]
        if a is b or a is ABSENT or b is ABSENT or not some:
            return super()._chosen(condition, a, b, name)
        x, y = (v.value if isinstance(v, _Optional) else v for v in (a, b))
        true = Lit(BOOL, True)
        there = [v.present.expr if isinstance(v, _Optional) else Lit(BOOL, v is not None) for v in (a, b)]
        present = Value(Case(BOOL, (condition.expr,), (there[0],), there[1]), "present", atom=True)
        value = y if x is None else x if y is None else super()._chosen(condition, x, y, name)
        return value if there == [true, true] else _Optional(self._places.kept(present), value)


class _Class(StatefulClass):
    """Compiles a class with a method ``step``."""

    def kernel(self) -> Kernel:
        step = self._source("step")
        if step is None:
            raise PredicateError(f"{self._of.__name__} must have the method step(self, …), which takes the next values")
        name, numbers = max(((name, len(field.names)) for name, field in self._fields.items()), key=lambda f: f[1])
        if numbers > StateMemory.MOST:
            raise UnsupportedError(f"{self._of.__name__}.{name} has {numbers:,} numbers, and a tuple of a state has at "
                                   f"most {StateMemory.MOST:,}, as it lies in LUT RAM; put a larger table into block "
                                   f"RAM beside the component, and give step what is read there")
        init = self._init()
        slots = tuple(Slot(name, width, init[name]) for name, width in self._slots)
        return _kernel(self._of.__name__, step, self._known, self, slots)


def _kernel(name: str, source: FunctionSource, known: Mapping[str, Any], state: _Class | None,
            slots: tuple[Slot, ...]) -> Kernel:
    signature = inspect.signature(source.fn)
    parameters = list(signature.parameters.values())[state is not None:]
    for p in parameters:
        if p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty:
            raise PredicateError(f"{source.name} must have plain parameters, without defaults, not {p}")
    if not parameters:
        raise PredicateError(f"{source.name} must have a parameter, such as x: splitjoin.unsigned(8)")
    inputs = tuple(Port(p.name, stated_field(f"parameter {p.name} of {source.name}",
                                             None if p.annotation is p.empty else p.annotation, known))
                   for p in parameters)
    steps = _KernelSteps()
    arguments: dict[str, Any] = {
        p.name: _argument(p) for p in inputs}
    execution = _Typed(source, steps)
    own = None
    if state is not None:
        own = next(iter(signature.parameters))
        arguments = {own: state._state(own, "r", steps), **arguments}
    result = execution.run(arguments)
    new = []
    if own is not None:
        end = execution.value(own)
        new = [steps.raw(value.expr, slot.width) for slot, value in zip(slots, slot_values(end), strict=True)]
    outputs, values = _results(source, signature.return_annotation, known, result, steps)
    present = [result.present.expr] if isinstance(result, _Optional) else []
    program = pruned(Program(tuple(steps.steps), (*new, *values, *present)))
    graph = balanced(build_graph(program, stated=steps.stated, places=steps.places))
    shaped = []
    for port, n in zip(outputs, graph.outputs[len(slots):], strict=False):
        node = graph.nodes[n]
        shaped.append(port or Width(width_of(node.low, node.high), node.low < 0))
    return Kernel(name, inputs, _named(shaped, result), slots, graph, bool(present), source,
                  sum(column.name in steps.stated for column, _ in program.steps))


def _argument(port: Port) -> Any:
    numbers = [Value(scaled(Col(width.type, "s", name, False, width.range), 2**width.fraction), name, atom=True)
               for name, width in port.numbers]
    made = port.field.made(numbers)
    return tuple(made) if type(made) is list else made  # a tuple is not assigned to


def _named(widths: list[Width], result: Any) -> tuple[Port, ...]:
    if isinstance(result, _Optional):
        result = result.value
    names = (result.of._fields if isinstance(result, Struct) else ["value"] if len(widths) == 1 else
             [f"value{n}" for n in range(len(widths))])
    return tuple(Port(name, NumberField((width,))) for name, width in zip(names, widths, strict=True))


def _results(source: FunctionSource, hint: Any, known: Mapping[str, Any], result: Any,
             steps: _KernelSteps) -> tuple[list[Width | None], list[Expr]]:
    """The widths of the results, None where none is stated, and their whole numbers."""
    if isinstance(result, _Optional):
        result = result.value
    many = isinstance(result, (list, tuple))
    values = list(result) if many else [result]
    if any(v is None or isinstance(v, (list, tuple)) for v in values) or not values:
        raise PredicateError(f"{source.name} must return a number or a tuple of numbers")
    hint = declared(hint)
    hints: list[Any] = [None] * len(values)
    if hint is not inspect.Signature.empty and hint not in (int, bool, "int", "bool"):
        if isinstance(hint, str):
            hint = eval(hint, dict(known))  # the user's annotation, as typing evaluates it
        if is_struct(hint):
            hint = stated_field(f"the result of {source.name}", hint, known).widths
        hints = list(hint) if many and isinstance(hint, (list, tuple)) else [hint] * len(values)
        if len(hints) != len(values):
            raise PredicateError(f"{source.name} returns {len(values)} numbers, and its annotation has {len(hints)}")
    widths: list[Width | None] = []
    made = []
    for value, of in zip(values, hints, strict=True):
        at = f"the result of {source.name}"
        if of is not None:
            width = stated_width(at, of, known)
            widths.append(width)
            made.append(steps.raw(assigned(steps, width, value, at).expr, width))
            continue
        e = lift(value, at) if is_traced(value) or isinstance(value, (int, float)) else None
        if e is None or not (isinstance(e.type, Bool) or is_exact(e.type)):
            raise PredicateError(f"{source.name} must return numbers, not {value!r}")
        widths.append(None)
        made.append(steps.column(Case(EXACT, (e,), (Lit(EXACT, 1),), Lit(EXACT, 0)) if isinstance(e.type, Bool) else e))
    return widths, made


@functools.lru_cache(maxsize=64)
def compiled(fn: Any) -> Kernel:
    """The typed function ``fn``, or the class under `kernel`, compiled. Raises `PredicateError` that points at the line
    that is not compiled.
    """
    found = getattr(fn, "splitjoin_kernel", None)
    if isinstance(found, Kernel):
        return found
    fn = inspect.unwrap(getattr(fn, "py_func", fn))
    if isinstance(fn, type):
        raise PredicateError(f"the class {fn.__name__} must stand under @splitjoin.hls.kernel")
    source = FunctionSource.of(fn, getattr(fn, "__name__", "function"))
    closure = inspect.getclosurevars(fn)
    return _kernel(source.name, source, {**fn.__globals__, **closure.globals, **closure.nonlocals}, None, ())


def kernel(of: type) -> type:
    """Compile a class with a state: its annotated attributes, which ``step(self, …)`` changes, and ``init(self)`` sets
    in the beginning (else all is 0).

    ``step`` takes the next values and returns a result, or None for none. Objects of the class run it in plain Python.
    Raises `PredicateError` that points at the line that is not compiled, and `UnsupportedError` for a tuple of more
    than `StateMemory.MOST` numbers.
    """
    if not isinstance(of, type):
        raise PredicateError(f"@splitjoin.hls.kernel must stand above a class, not {type(of).__name__}")
    frame = sys._getframe(1)
    made_of = _Class(of, {**frame.f_globals, **frame.f_locals})
    return type(of.__name__, (_Stateful, of), {"splitjoin_kernel": made_of.kernel(), "__doc__": of.__doc__,
                                               "splitjoin_fields": made_of._fields, "__module__": of.__module__})


class _Stateful:
    """Base of classes under `kernel` as Python runs them: states are rounded down as they are assigned."""

    splitjoin_kernel: Kernel
    splitjoin_fields: Mapping[str, NumberField]

    def __init__(self) -> None:
        init = iter([_exact(slot.init, slot.width) for slot in self.splitjoin_kernel.slots])
        for name, field in self.splitjoin_fields.items():
            setattr(self, name, [next(init) for _ in field.names] if field.names else next(init))

    def __setattr__(self, name: str, value: Any) -> None:
        field = self.splitjoin_fields.get(name)
        if field is not None and field.struct is not None:
            numbers = zip(value, field.slots(name), strict=True)
            value = field.struct(*(_rounded(v, width, slot) for v, (slot, width) in numbers))
        elif field is not None:
            width = field.widths[0]
            value = _Numbers(value, width, name) if field.names else _rounded(value, width, name)
        self.__dict__[name] = value


class _Numbers(list[Any]):
    """The numbers of a tuple in a state."""

    def __init__(self, values: Any, width: Width, name: str):
        super().__init__(_rounded(v, width, name) for v in values)
        self._width, self._name = width, name

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, _rounded(value, self._width, self._name))


def _rounded(value: Any, width: Width, name: str) -> Any:
    """``value`` in ``width``. Raises `OverflowError` if it does not fit."""
    whole = math.floor(Fraction(value) * 2**width.fraction)
    low, high = width.range
    if not low <= whole <= high:
        raise OverflowError(f"{name} must fit {width}, but is {value}")
    return _exact(whole, width)


def _exact(whole: int, width: Width) -> Any:
    exact = Fraction(whole, 2**width.fraction)
    return exact.numerator if exact.denominator == 1 else exact

