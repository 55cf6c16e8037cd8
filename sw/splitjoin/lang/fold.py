"""User-defined aggregates as straight-line programs of the IR (semantics, section 8).

The state is the tuple of a stream *r*, and what comes in, the arguments of a partner or the state of another fold, that
of a stream *s*: so what evaluates, bounds and compiles conditions does so for aggregates. A state is a whole number;
one in fixed point is without its point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from splitjoin.base.errors import PredicateError

from .eval.scalar import Evaluator, compile_condition
from .ir import Arith, Col, Expr, Lit
from .types import EXACT, Int

#: The most bits that a state, an argument or a result may have.
_BITS = 64


@dataclass(frozen=True)
class Width:
    """A whole number of ``bits`` bits, in two's complement if ``signed``, over 2^``fraction``."""

    bits: int
    signed: bool
    fraction: int = 0

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest whole number, without the point."""
        return (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)

    @property
    def type(self) -> Int:
        """The narrowest integer type that holds the whole numbers."""
        return Int(next(n for n in (8, 16, 32, 64) if n >= self.bits), self.signed)

    def whole(self, value: Any) -> int | None:
        """The whole number of ``value``, a number or a float; None if it is not finite, or outside."""
        if isinstance(value, float):
            if not math.isfinite(value):
                return None
            value = Fraction(value) * 2**self.fraction
        number = math.floor(value)
        low, high = self.range
        return number if low <= number <= high else None

    def shown(self, whole: int) -> str:
        """The value of the whole number ``whole``, for messages."""
        value = Fraction(whole, 2**self.fraction)
        return str(value.numerator) if value.denominator == 1 else str(float(value))

    def __str__(self) -> str:
        return f"fixed({self.bits}, {self.fraction})" if self.fraction else (
            f"{'signed' if self.signed else 'unsigned'}({self.bits})")


def signed(bits: int) -> Any:
    """A whole number of 2 to 64 bits in two's complement, as the type of a state, an argument or a result."""
    return Width(_checked("signed", bits, 2), True)


def unsigned(bits: int) -> Any:
    """A whole number of 1 to 64 bits that is not negative, as the type of a state, an argument or a result."""
    return Width(_checked("unsigned", bits, 1), False)


def fixed(bits: int, fraction: int) -> Any:
    """A number in fixed point: ``bits`` bits in two's complement, 2 to 64, ``fraction`` of them, 0 to 63, behind the
    point. What is assigned is rounded down to a multiple of 2^−fraction.
    """
    if not isinstance(fraction, int) or not 0 <= fraction < _BITS:
        raise PredicateError(f"fixed(bits, fraction) must have 0 to {_BITS - 1} bits behind the point, not "
                             f"{fraction!r}")
    return Width(_checked("fixed", bits, 2), True, fraction)


def _checked(name: str, bits: int, least: int) -> int:
    if not isinstance(bits, int) or isinstance(bits, bool) or not least <= bits <= _BITS:
        raise PredicateError(f"{name}(bits) must have {least} to {_BITS} bits, not {bits!r}")
    return bits


def scaled(whole: Expr, denominator: int) -> Expr:
    """The value of the whole number ``whole`` over ``denominator``."""
    return whole if denominator == 1 else Arith(EXACT, "*", whole, Lit(EXACT, Fraction(1, denominator)))


@dataclass(frozen=True)
class Slot:
    """One number of the state. ``name``: such as ``total`` or ``counts[3]``; ``init``: without the point."""

    name: str
    width: Width
    init: int = 0

    def column(self, side: Any) -> Col:
        """The slot as the column of stream ``side``."""
        return Col(self.width.type, side, self.name, False, self.width.range)


@dataclass(frozen=True)
class Argument:
    """A parameter of ``add``."""

    name: str
    width: Width

    @property
    def column(self) -> Col:
        """The argument as a column of stream *s*."""
        return Col(self.width.type, "s", self.name, False, self.width.range)


@dataclass(frozen=True)
class Program:
    """Values of ``outputs`` after ``steps``, each of which computes the column of stream *s* that later ones read."""

    steps: tuple[tuple[Col, Expr], ...]
    outputs: tuple[Expr, ...]

    def evaluator(self) -> Runner:
        """The program in plain Python: a function of a state and of what comes in."""
        return Runner(self)


class Overflow(Exception):
    """A state left its stated width. ``slot``: its number; ``value``: without the point."""

    def __init__(self, slot: int, value: int):
        super().__init__(f"{slot}: {value}")
        self.slot, self.value = slot, value


class Runner:
    """Evaluates a program with the evaluators of conditions, one tuple at a time."""

    def __init__(self, program: Program):
        self._steps = [(column.name, compile_condition(e)) for column, e in program.steps]
        self._outputs: Sequence[Evaluator] = [compile_condition(e) for e in program.outputs]

    def __call__(self, state: Mapping[str, Any], incoming: Mapping[str, Any]) -> list[Any]:
        """The outputs, by the values of the columns of *r* and *s*."""
        row = dict(incoming)
        with np.errstate(all="ignore"):  # IEEE 754: x / 0 is infinity or NaN, and no mistake
            for name, evaluate in self._steps:
                row[name] = evaluate(state, row)
            return [evaluate(state, row) for evaluate in self._outputs]


@dataclass(frozen=True)
class Fold:
    """A user-defined aggregate.

    ``add``, ``merge`` and ``remove`` give the new state, slot by slot; ``result`` has one output, of ``width`` if that
    is not None. ``ordered``: True if the order of partners counts, beyond what ``add`` itself makes of it: then
    ``merge`` takes the earlier partners' state first.
    """

    name: str
    slots: tuple[Slot, ...]
    arguments: tuple[Argument, ...]
    add: Program
    result: Program
    merge: Program | None = None
    remove: Program | None = None
    width: Width | None = None
    ordered: bool = False

    @property
    def init(self) -> list[int]:
        """The state before the first partner."""
        return [slot.init for slot in self.slots]

    def row(self, state: Sequence[int]) -> dict[str, int]:
        """``state`` by the names of the slots."""
        return {slot.name: value for slot, value in zip(self.slots, state, strict=True)}

    def checked(self, state: Sequence[Any]) -> list[int]:
        """``state`` as whole numbers. Raises `Overflow` for the first slot that left its width."""
        made = [int(value) for value in state]
        for n, (slot, value) in enumerate(zip(self.slots, made, strict=True)):
            low, high = slot.width.range
            if not low <= value <= high:
                raise Overflow(n, value)
        return made

    @property
    def digest_text(self) -> str:
        """The stable text of the whole definition."""
        parts = [f"{s.name} {s.width} {s.init}" for s in self.slots] + [f"{a.name} {a.width}" for a in self.arguments]
        for program in (self.add, self.merge, self.remove, self.result):
            parts += ["none"] if program is None else [*(f"{c.name} = {e}" for c, e in program.steps),
                                                       *map(str, program.outputs)]
        return "; ".join([*parts, str(self.width), str(self.ordered)])


@dataclass(frozen=True)
class AggregateCall:
    """The aggregate ``fold`` of ``values``, the user's SQL texts, one for each argument."""

    fold: Fold
    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """The call as the user could write it in SQL."""
        return f"{self.fold.name}({', '.join(map(str, self.values))})"
