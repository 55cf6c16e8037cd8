"""The parts of a predicate that read one stream only, as lanes: they are computed once per tuple, so that pairs only
compare numbers.

`atoms` names those parts. `AtomLanes` computes them and keeps the range of their values, by slices of rows:
the compiled predicate needs that to know that none of its integers can wrap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.ir import Expr, sides
from splitjoin.lang.properties import denominator, may_be_null
from splitjoin.lang.types import Bool, Date, Float, Int, is_text

from ..tuning import DEFAULTS, Tuning

_MASK = 2**64 - 1


@dataclass(frozen=True)
class ValueRange:
    """A range that holds all values of a lane, as whole numbers, and True if some are NULL. The values in place of NULL
    are included. Floats have no limits.
    """

    nulls: bool = False
    low: int = 0
    high: int = 0

    def __or__(self, other: ValueRange) -> ValueRange:
        return ValueRange(self.nulls or other.nulls, min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True)
class Atom:
    """A part of the predicate that reads one stream only; its lane is number ``number`` of that stream.

    The lane of an exact value or a time is its value times ``denominator``, modulo 2**64.
    """

    expr: Expr
    side: str
    number: int
    denominator: int
    dtype: type[np.generic]


def atoms(predicate: Expr) -> tuple[Atom, ...]:
    """The largest parts of ``predicate`` that read exactly one stream, without texts, which have no lanes."""
    found: dict[Expr, Atom] = {}
    count = {"r": 0, "s": 0}

    def visit(e: Expr) -> None:
        of = sides(e)
        if len(of) == 2:
            for child in e.children:
                visit(child)
        elif of and e not in found and not is_text(e.type):
            (side,) = of
            per = 1 if isinstance(e.type, (Bool, Float)) else denominator(e)
            found[e] = Atom(e, side, count[side], per, _dtype(e))
            count[side] += 1

    visit(predicate)
    return tuple(found.values())


def _dtype(e: Expr) -> type[np.generic]:
    match e.type:
        case Bool():
            return np.bool_
        case Float(bits=32):
            return np.float32
        case Float():
            return np.float64
        case Date():
            return np.int32
        case Int() as t if t.range[0] >= -(2**31) and t.range[1] < 2**31:
            return np.int32
    return np.int64


class AtomLanes:
    """Computes the lanes of ``predicate``'s atoms, and keeps the ranges of their values.

    Each stream's lanes are its atoms' values, then their validity: arrays (n,) each.
    """

    def __init__(self, predicate: Expr, tuning: Tuning = DEFAULTS):
        self.atoms = atoms(predicate)
        self._range_rows = tuning.range_rows
        self._of = {side: [a for a in self.atoms if a.side == side] for side in ("r", "s")}
        #: Per stream, slices of rows: the first, the one after the last, and the range of each lane.
        self._slices: dict[str, deque[tuple[int, int, list[ValueRange]]]] = {"r": deque(), "s": deque()}
        self._rows = {"r": 0, "s": 0}
        self._null = False

    def count(self, side: str) -> int:
        """The number of arrays that `encode` returns for stream ``side``."""
        return 2 * len(self._of[side])

    def encode(self, side: str, table: pa.Table) -> list[Array]:
        """The lanes of the next tuples of stream ``side``."""
        values, valids, ranges = [], [], []
        for atom in self._of[side]:
            v = evaluate(atom.expr, table)
            lane, value_range = _lane(atom, v)
            values.append(_own(lane))
            valids.append(_own(v.valid))
            ranges.append(value_range)
        slices, first, end = self._slices[side], self._rows[side], self._rows[side] + table.num_rows
        self._rows[side] = end
        if slices and end - slices[-1][0] <= self._range_rows:
            first, _, before = slices.pop()
            ranges = [a | b for a, b in zip(before, ranges, strict=True)]
        slices.append((first, end, ranges))
        return values + valids

    def ranges(self, first: Mapping[str, int]) -> dict[Expr, ValueRange]:
        """The ranges of the atoms' values in the rows from ``first`` on, by stream.

        Once there was a NULL, one is expected wherever there can be: each combination would be code of its own.
        """
        found = {}
        for side, of in self._of.items():
            slices = self._slices[side]
            while len(slices) > 1 and slices[0][1] <= first[side]:
                slices.popleft()
            for atom in of:
                value_range = ValueRange()
                for *_, ranges in slices:
                    value_range |= ranges[atom.number]
                self._null |= value_range.nulls
                found[atom.expr] = value_range
        return {e: replace(value_range, nulls=self._null and may_be_null(e)) for e, value_range in found.items()}


def _lane(atom: Atom, v: Vector) -> tuple[Array, ValueRange]:
    nulls = not bool(v.valid.all())
    values = v.values
    if issubclass(atom.dtype, (np.floating, np.bool_)):
        return values.astype(atom.dtype, copy=False), ValueRange(nulls, 0, 1)
    if nulls:
        values = np.where(v.valid, values, 0)
    factor = atom.denominator // v.denominator
    low, high = (int(values.min()) * factor, int(values.max()) * factor) if len(values) else (0, 0)
    if values.dtype == np.int64 and low >= -(2**63) and high < 2**63:
        lane = values if factor == 1 else values * factor
    else:
        lane = np.array([int(x) * factor & _MASK for x in values], np.uint64).view(np.int64)
    return lane.astype(atom.dtype, copy=False), ValueRange(nulls, low, high)


def _own(array: Array) -> Array:
    """``array`` if it is writable and contiguous, else a copy: other arrays have another type in compiled code."""
    return array if array.flags.writeable and array.flags.c_contiguous else array.copy()
