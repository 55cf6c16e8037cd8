"""The engine of Amaranth's simulator with shorter code for values: a run takes about half the time.

`amaranth.sim` turns each process into a Python function. It masks every operand to its width, although hardly any can
be wider, repeats a bit by a shift for each copy, and calls a method for each signal, changed or not. Here a mask stands
only where a value may leave its shape, and a signal that changes marks the processes that read it without a call.
Signals, memories, processes and delta cycles are Amaranth's (decision 49).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Shape, Signal
from amaranth.hdl._ast import Const, Operator, Slice, SwitchValue
from amaranth.sim import _pyrtl, pysim
from amaranth.sim._pyrtl import _PythonEmitter, _RHSValueCompiler, _StatementCompiler
from amaranth.sim.pysim import PySimEngine, _PyEngineState, _PySignalState, _run_wakers

__all__ = ["Engine"]

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
#: Operators that give, of numbers within their shapes, a number within the result's shape, in Python as in Amaranth.
_SAME = (*_COMPARISONS, "+", "-", "*", "&", "|", "^", "<<", ">>")
_BOOLEAN = (*_COMPARISONS, "b", "r|", "r&")


class Engine(PySimEngine):
    """For ``Simulator(…, engine=Engine)``."""

    def __init__(self, design: Any):
        with _parts():
            super().__init__(design)


class _Reader:
    """The waker of a combinational process, which runs again when one of its signals changes."""

    def __init__(self, process: Any):
        self.process = process


class _State(_PyEngineState):
    """All signals, and the processes that read each."""

    def __init__(self) -> None:
        super().__init__()
        self._readers: dict[Any, list[Any]] = {}

    def add_signal_waker(self, signal: Any, waker: Any) -> None:
        if isinstance(waker, _Reader):
            self._readers.setdefault(self.slots[self.get_signal(signal)], []).append(waker.process)
        else:
            super().add_signal_waker(signal, waker)

    def commit(self, changed: Any = None) -> bool:
        if changed is not None:  # for a waveform file; marking processes twice does no harm
            for state in self.pending:
                for process in self._readers.get(state, ()):
                    process.runnable = True
            return bool(super().commit(changed))
        converged, readers = True, self._readers
        for state in self.pending:
            if type(state) is not _PySignalState:
                converged &= not state.commit()
            elif state.curr != state.next:
                for process in readers.get(state, ()):
                    process.runnable = True
                if state.wakers:
                    _run_wakers(state.wakers, state.curr, state.next)
                state.curr = state.next
                converged = False
        self.pending.clear()
        return converged


class _Values(_RHSValueCompiler):
    """Code for the values of expressions."""

    def masked(self, value: Any) -> str:
        """Code for the bits of ``value`` as an unsigned number."""
        code = self(value)
        return code if _is_exact(value) and not value.shape().signed else f"({_ones(value):#x} & {code})"

    def sign(self, value: Any) -> Any:
        return self(value) if _is_exact(value) else super().sign(value)

    def on_Operator(self, value: Any) -> Any:  # noqa: N802  # Amaranth's name, as those below
        operator = value.operator
        if len(value.operands) == 2 and operator in _SAME:
            left, right = map(self.sign, value.operands)
            return f"({left} {operator} {right})"
        operand = value.operands[0]
        if operator == "~":
            if operand.shape().signed:
                return f"(~{self.sign(operand)})"
            return f"({_ones(operand):#x} ^ {self.masked(operand)})"
        if operator == "b":
            return f"bool({self.masked(operand)})"
        if operator == "r|":
            return f"(0 != {self.masked(operand)})"
        if operator == "r&":
            return f"({_ones(operand):#x} == {self.masked(operand)})"
        if operator == "r^":
            return f"(({self.masked(operand)}).bit_count() & 1)"
        return super().on_Operator(value)

    def on_Slice(self, value: Any) -> str:  # noqa: N802
        start, whole = value.start, value.value
        while type(whole) is Slice:
            start, whole = start + whole.start, whole.value
        code = f"({self(whole)} >> {start})" if start else self(whole)
        if start and start + len(value) == len(whole) and _is_exact(whole) and not whole.shape().signed:
            return code
        return f"({_ones(value):#x} & {code})"

    def on_Concat(self, value: Any) -> str:  # noqa: N802
        parts = value.parts
        if len(parts) > 1 and all(part is parts[0] for part in parts):
            places = sum(1 << n * len(parts[0]) for n in range(len(parts)))
            return f"({places:#x} * {self.masked(parts[0])})"
        constant, at, codes = 0, 0, []
        for part in parts:
            if type(part) is Const:
                constant |= (part.value & _ones(part)) << at
            else:
                code = self.masked(part)
                codes.append(f"({code} << {at})" if at else code)
            at += len(part)
        if constant or not codes:
            codes.append(f"{constant:#x}")
        return f"({' | '.join(codes)})" if len(codes) > 1 else f"({_ones(value):#x} & {codes[0]})"

    def on_SwitchValue(self, value: Any) -> Any:  # noqa: N802
        if [patterns for patterns, _ in value.cases] == [("0" * len(value.test),), None]:  # a Mux
            (_, low), (_, high) = value.cases
            return f"({self.sign(high)} if {self.rrhs.masked(value.test)} else {self.sign(low)})"
        return super().on_SwitchValue(value)


class _Statements(_StatementCompiler):
    """Code for assignments and choices."""

    def on_Assign(self, stmt: Any) -> None:  # noqa: N802
        target, value = stmt.lhs, stmt.rhs
        if (type(target) is Signal and self.lhs.outputs is None and _is_exact(value) and not _may_be_bool(value)
                and _fits(value.shape(), target.shape())):
            self.emitter.append(f"next_{self.state.get_signal(target)} = {self.rhs(value)}")
        else:
            super().on_Assign(stmt)


class _Emitter(_PythonEmitter):
    """The text of a process, which updates only those signals that change."""

    def append(self, code: str) -> None:
        place, update, rest = code.partition(".update(")
        if update and place.startswith("slots["):
            code = f"if {place}.next != {rest.partition(',')[0].rstrip(')')}: {code}"
        super().append(code)


def _ones(value: Any) -> int:
    """A number with all bits of ``value`` set."""
    return (1 << len(value)) - 1


def _is_exact(value: Any) -> bool:
    """True if the code for ``value`` gives a number within its shape; of others only the low bits are right."""
    if type(value) is not Operator:
        return True
    if value.operator in ("u", "s"):
        operand, = value.operands
        return _is_exact(operand) and operand.shape().signed == value.shape().signed
    return value.operator not in ("//", "%")


def _may_be_bool(value: Any) -> bool:
    """True if the code for ``value`` may give True or False, which no signal is to hold."""
    if type(value) is Operator:
        if value.operator in ("u", "s", "&", "|", "^"):
            return all(map(_may_be_bool, value.operands))
        return value.operator in _BOOLEAN
    return type(value) is SwitchValue and any(_may_be_bool(chosen) for _, chosen in value.cases)


def _fits(of: Shape, into: Shape) -> bool:
    """True if every number of one shape is one of the other."""
    return bool(of.width + (into.signed and not of.signed) <= into.width and into.signed >= of.signed)


_PARTS = ((_pyrtl, "_RHSValueCompiler", _Values), (_pyrtl, "_StatementCompiler", _Statements),
          (_pyrtl, "_PythonEmitter", _Emitter), (_pyrtl, "comb_waker", _Reader), (pysim, "_PyEngineState", _State))
_swapping = threading.Lock()


@contextmanager
def _parts() -> Iterator[None]:
    """While an engine is prepared, Amaranth finds these parts by the names of its own, and not otherwise."""
    with _swapping:
        own = [(module, name, getattr(module, name)) for module, name, _ in _PARTS]
        try:
            for module, name, part in _PARTS:
                setattr(module, name, part)
            yield
        finally:
            for module, name, part in own:
                setattr(module, name, part)
