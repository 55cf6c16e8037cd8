"""Typed Python functions, and classes with a state that ``step`` changes, compiled to programs.

A state is the tuple of a stream *r*, and what comes in that of a stream *s*, as in user-defined aggregates
(`splitjoin.lang.fold`). So the programs have the types and rules of conditions.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any

from splitjoin.base.errors import PredicateError, UnsupportedError
from splitjoin.lang.fold import Program, Slot, Width, scaled
from splitjoin.lang.ir import Case, Col, Expr, Lit
from splitjoin.lang.properties import denominator, value_range
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
from splitjoin.lang.python.variables import StateRecord, Struct, is_struct, is_traced
from splitjoin.lang.types import BOOL, EXACT, Bool, Type, is_exact

from .balance import balanced
from .graph import Graph, width_of
from .memories import MemoryTuple, TupleMemory, with_writes
from .programs import build_graph

#: Annotations that state no width.
_PLAIN: tuple[Any, ...] = (int, bool, "int", "bool")


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
class Kernel:
    """A compiled function or class.

    ``slots``: the state of a class in registers, none for a function. ``memories``: tuples in memories, of the state or
    constant. ``graph``: operations on the numbers of ``inputs`` (stream *s*) and ``slots`` (*r*); its outputs are the
    slots' new values, the writes of those memories that are written, the numbers of ``outputs``, and, if ``optional``,
    a bit that is 1 where a result is given and no None. ``stated``: values whose width the source states, and ranges do
    not prove.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    slots: tuple[Slot, ...]
    graph: Graph
    optional: bool = False
    source: FunctionSource | None = None
    stated: int = 0
    memories: tuple[TupleMemory, ...] = ()

    @property
    def results(self) -> tuple[int, ...]:
        """The operations whose values are the results."""
        of = self.graph.outputs[len(self.slots) + len(self.writes):]
        return of[:-1] if self.optional else of

    @property
    def writes(self) -> dict[str, int]:
        """The operations that write memories, by the memories' names."""
        names = [memory.name for memory in self.memories if memory.written]
        return dict(zip(names, self.graph.outputs[len(self.slots):], strict=False))

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
        #: The memories that columns are read from, and constant tuples in memories, by their numbers.
        self.reads: dict[str, str] = {}
        self._read: dict[tuple[str, Expr], Col] = {}
        self.tables: dict[tuple[int, ...], MemoryTuple] = {}
        #: The names of the tables, and of what a state has.
        self.names: set[str] = set()
        #: Tuples that are used as no memory is.
        self.unfit: set[str] = set()

    def _new(self, e: Expr) -> Expr:
        self.places[f"${len(self.steps)}"] = self.place
        return super()._new(e)

    def fitted(self, e: Expr, width: Width) -> Expr:
        column = self.column(e)
        least, most = width.range
        low, high = value_range(column)
        if least <= low and high <= most:
            return column
        made = self._step(column, width.type, width.range)
        self.stated.add(made.name)
        return made

    def read(self, memory: TupleMemory, address: Expr) -> Col:
        """The column of what is read from ``memory`` at ``address``, before it is written."""
        found = self._read.get((memory.name, address))
        if found is None:
            ends = memory.width.range if memory.written else (min(memory.init), max(memory.init))
            found = self._read[memory.name, address] = self._step(address, memory.width.type, ends)
            self.reads[found.name] = memory.name
        return found

    def table(self, numbers: Sequence[int], name: str) -> MemoryTuple:
        """The memory of the constant tuple ``numbers``, which the source calls ``name``."""
        key = tuple(map(int, numbers))
        if key not in self.tables:
            plain = f"{re.sub('[^a-zA-Z0-9]+', '_', name).strip('_') or 'constant'}_table"
            own = next(f"{plain}{n or ''}" for n in count() if f"{plain}{n or ''}" not in self.names)
            made = TupleMemory.constant(own, key)
            if made.width.bits > 64 or made.rows > TupleMemory.MOST:
                raise UnsupportedError(f"{name} has {made.rows:,} numbers of {made.width.bits} bits, but a table must "
                                       f"have at most {TupleMemory.MOST:,} of 64 bits")
            self.names.add(own)
            self.tables[key] = MemoryTuple(made, self.read, self.unfit)
        return self.tables[key]

    def _step(self, e: Expr, of: Type, ends: tuple[int, int]) -> Col:
        made = Col(of, "s", f"${len(self.steps)}", False, ends)
        self.steps.append((made, e))
        self.places[made.name] = self.place
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
        if not isinstance(self._value(target.value), MemoryTuple):
            super()._update(node, target, index)
            return
        old = self._value(ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target))
        self._assign(target, self._binary(node, node.op, old, self._value(node.value)))

    def _subscript(self, node: ast.Subscript, of: Any) -> Any:
        steps = self._places
        assert isinstance(steps, _KernelSteps)
        is_long = isinstance(of, (list, tuple)) and len(of) > TupleMemory.LUT_RAM
        if not isinstance(of, MemoryTuple) and not (is_long and all(type(x) in (int, bool) for x in of)):
            return super()._subscript(node, of)
        index = self._index(node, self._value(node.slice), len(of))
        if isinstance(of, MemoryTuple):
            return steps.kept(of.number(index))
        return of[index] if isinstance(index, int) else steps.table(of, self._source.text(node.value)).number(index)

    def _store(self, record: StateRecord, node: ast.AST, name: str, value: Any) -> None:
        if isinstance(record.values[name], MemoryTuple):
            record.values[name].refuse("is assigned as a whole")
        super()._store(record, node, name, value)

    def _store_at(self, record: StateRecord, node: ast.Subscript, name: str, index: Any, value: Any) -> None:
        of = record.values[name]
        if not isinstance(of, MemoryTuple):
            super()._store_at(record, node, name, index, value)
            return
        assert record.assign is not None
        chosen = self._index(node, index, len(of))
        record.values[name] = of.with_number(chosen, record.assign(f"{name}[0]", value, self._source.text(node)))

    def _chosen(self, condition: Value, a: Any, b: Any, name: str = "") -> Any:
        if isinstance(a, MemoryTuple) and a is not b:
            return a.chosen(condition, b, super()._chosen)
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

    def __init__(self, of: type, known: Mapping[str, Any]):
        super().__init__(of, known)
        for name, field in self._fields.items():
            if len(field.names) > TupleMemory.MOST:
                raise UnsupportedError(f"{of.__name__}.{name} has {len(field.names):,} numbers, and a tuple of a state "
                                       f"at most {TupleMemory.MOST:,}")
        if "__init__" in vars(of):
            raise PredicateError(f"{of.__name__}.__init__ is not compiled; the state begins with 0, or with what "
                                 f"init(self) sets")
        #: What the numbers of each attribute are in the beginning.
        made = iter(self._init().values())
        self.init = {name: tuple(next(made) for _ in field.widths) for name, field in self._fields.items()}
        same = {name: len(set(init)) == 1 for name, init in self.init.items()}
        #: The attributes that are memories.
        self.memories = {
            name: TupleMemory(name, field.widths[0], len(field.names), self.init[name][:1 if same[name] else None])
            for name, field in self._fields.items() if field.struct is None and len(field.names) >= TupleMemory.LEAST
            and (same[name] or len(field.names) > TupleMemory.LUT_RAM)}

    def kernel(self) -> Kernel:
        """The compiled class. A tuple of few numbers that is used as no memory is takes registers."""
        step = self._source("step")
        if step is None:
            raise PredicateError(f"{self._of.__name__} must have the method step(self, …), which takes the next values")
        while True:
            steps = _KernelSteps()
            try:
                return _kernel(self._of.__name__, step, self._known, self, steps)
            except PredicateError:
                few = {name for name, memory in self.memories.items() if not memory.block}
                if not few:
                    raise
                for name in few & steps.unfit or few:
                    del self.memories[name]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The numbers in registers."""
        return tuple(Slot(slot, width, init) for name, field in self._fields.items() if name not in self.memories
                     for (slot, width), init in zip(field.slots(name), self.init[name], strict=True))

    def state(self, own: str, steps: _KernelSteps) -> StateRecord:
        """The stand-in for ``self`` when a step begins."""
        record = self._state(own, "r", steps)
        steps.names |= self._fields.keys()
        record.values |= {name: MemoryTuple(memory, steps.read, steps.unfit) for name, memory in self.memories.items()}
        return record


def _kernel(name: str, source: FunctionSource, known: Mapping[str, Any], state: _Class | None,
            steps: _KernelSteps) -> Kernel:
    signature = inspect.signature(source.fn)
    parameters = list(signature.parameters.values())[state is not None:]
    for p in parameters:
        if p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty:
            raise source.located(PredicateError(f"{source.name} must have plain parameters, without defaults, not "
                                                f"{p.name}"), source.tree.args)
    if not parameters:
        raise source.located(PredicateError(f"{source.name} must have a parameter, such as x: splitjoin.unsigned(8)"),
                             source.tree)
    try:
        inputs = tuple(Port(p.name, stated_field(f"parameter {p.name} of {source.name}",
                                                 None if p.annotation is p.empty else p.annotation, known))
                       for p in parameters)
    except PredicateError as error:
        raise source.located(error, source.tree) from None
    arguments: dict[str, Any] = {
        p.name: _argument(p) for p in inputs}
    execution = _Typed(source, steps)
    own = None
    if state is not None:
        own = next(iter(signature.parameters))
        arguments = {own: state.state(own, steps), **arguments}
    result = execution.run(arguments)
    slots, new = state.slots if state is not None else (), list[Expr]()
    memories = [table.memory for table in steps.tables.values()]
    if state is not None:
        end = execution.value(str(own))
        ends = {name: end.values.pop(name) for name in state.memories}
        new = [steps.raw(value.expr, slot.width) for slot, value in zip(slots, slot_values(end), strict=True)]
        for at, made in ends.items():
            memories.append(made.at_the_end(state.init[at]))
            new += made.outputs(steps.raw)
    try:
        outputs, values = _results(source, signature.return_annotation, known, result, steps)
    except PredicateError as error:
        returned = [node for node in ast.walk(source.tree) if isinstance(node, ast.Return)]
        raise source.located(error, returned[-1] if returned else source.tree) from None
    present = [result.present.expr] if isinstance(result, _Optional) else []
    program = pruned(Program(tuple(steps.steps), (*new, *values, *present)))
    by_name = {memory.name: memory for memory in memories}
    reads = {column.name: by_name[steps.reads[column.name]] for column, _ in program.steps
             if column.name in steps.reads}
    graph = build_graph(program, stated=steps.stated, places=steps.places, reads=reads)
    read = {memory.name for memory in reads.values()}
    memories = [memory for memory in memories if memory.written or memory.name in read]
    graph = balanced(with_writes(graph, len(slots), [memory for memory in memories if memory.written]))
    kernel = Kernel(name, inputs, (), slots, graph, bool(present), source,
                    sum(column.name in steps.stated for column, _ in program.steps), tuple(memories))
    shaped = []
    for port, n in zip(outputs, kernel.results, strict=True):
        node = graph.nodes[n]
        shaped.append(port or Width(width_of(node.low, node.high), node.low < 0))
    return replace(kernel, outputs=_named(shaped, result))


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
    if hint is inspect.Signature.empty and isinstance(result, Struct) and not any(
            of in _PLAIN for of in inspect.get_annotations(result.of).values()):
        hint = result.of
    if hint is not inspect.Signature.empty and hint not in _PLAIN:
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
            raise PredicateError(f"{source.name} must return numbers, whole ones or in fixed point, not {value!r}"
                                 f"{'; write // in place of /' if e is not None else ''}")
        if is_exact(e.type) and denominator(e) != 1:
            raise PredicateError(f"{source.name} returns {value!r}, which may have a fraction; write // 1, which "
                                 f"rounds down, or annotate the result with splitjoin.hls.fixed(bits, fraction)")
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
    return _kernel(source.name, source, {**fn.__globals__, **closure.globals, **closure.nonlocals}, None,
                   _KernelSteps())


def kernel(of: type) -> type:
    """Compile a class with a state: its annotated attributes, which ``step(self, …)`` changes, and ``init(self)`` sets
    in the beginning (else all is 0).

    ``step`` takes the next values and returns a result, or None for none. Objects of the class run it in plain Python.
    Raises `PredicateError` that points at the line that is not compiled, and `UnsupportedError` for a tuple of more
    than `TupleMemory.MOST` numbers.
    """
    if not isinstance(of, type):
        raise PredicateError(f"@splitjoin.hls.kernel must stand above a class, not {type(of).__name__}")
    frame = sys._getframe(1)
    made_of = _Class(of, {**frame.f_globals, **frame.f_locals})
    return type(of.__name__, (_Stateful, of), {"splitjoin_kernel": made_of.kernel(), "__doc__": of.__doc__,
                                               "splitjoin_fields": made_of._fields, "splitjoin_init": made_of.init,
                                               "__module__": of.__module__})


class _Stateful:
    """Base of classes under `kernel` as Python runs them: states are rounded down as they are assigned."""

    splitjoin_kernel: Kernel
    splitjoin_fields: Mapping[str, NumberField]
    splitjoin_init: Mapping[str, tuple[int, ...]]

    def __init__(self) -> None:
        for name, field in self.splitjoin_fields.items():
            init = [_exact(whole, width) for whole, width in zip(self.splitjoin_init[name], field.widths, strict=True)]
            setattr(self, name, init if field.names else init[0])

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

