"""Delay lines: registers that hold earlier values of a signal, made on demand."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Shape, Signal, Value


class Delays:
    """A delay line of ``value``; its registers are made when they are first asked for."""

    def __init__(self, m: Module, value: Value, name: str, *, reset_less: bool = True):
        self._m, self._name, self._reset_less = m, name, reset_less
        self._values: list[Value] = [value]

    def at(self, age: int) -> Value:
        """The value of ``age`` cycles ago."""
        while len(self._values) <= age:
            later = Signal(len(self._values[0]), name=f"{self._name}_{len(self._values)}", reset_less=self._reset_less)
            self._m.d.sync += later.eq(self._values[-1])
            self._values.append(later)
        return self._values[age]


def delay_line(m: Module, name: str, value: Any, cycles: int, *, reset_less: bool = False) -> list[Any]:
    """``value`` of now, and of up to ``cycles`` cycles ago, in registers ``name0`` and so on of its shape."""
    shape, line = value.shape(), [value]
    for n in range(cycles):
        later = Signal(len(value) if isinstance(shape, Shape) else shape, name=f"{name}{n}", reset_less=reset_less)
        m.d.sync += Cat(later).eq(Cat(line[-1]))
        line.append(later)
    return line


def registered(m: Module, name: str, value: Value) -> Signal:
    """A register ``name`` for ``value``, without a reset."""
    register = Signal(len(value), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register
