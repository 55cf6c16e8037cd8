"""Arguments and results of user-defined aggregates: types, whole numbers for arguments, columns for results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitjoin.base.arrays import Array, Ints, Mask
from splitjoin.base.errors import InputError
from splitjoin.lang.aggregate_functions import FoldTerm
from splitjoin.lang.eval.vector import Vector, evaluate_columns, widen
from splitjoin.lang.fold import Width
from splitjoin.lang.types import Float


@dataclass(frozen=True)
class Arguments:
    """Arguments of many pairs: ``values``, whole numbers (n,) each, and ``valid`` (n,), False where one is NULL.
    ``wrong``: the first pair with a value outside its width, n if there is none.
    """

    values: tuple[Ints, ...]
    valid: Mask
    wrong: int


def argument_numbers(width: Width, arg: Vector) -> tuple[Array, Mask]:
    """The whole numbers, without their point, of the values ``arg`` of an argument; True for those outside ``width``,
    and whatever it is for NULL.
    """
    low, high = width.range
    values: Array = arg.values
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            values = np.floor(np.ldexp(values.astype(np.float64), width.fraction))
        # NaN is neither; 2^63 is a float64, the greatest number below it is none.
        return values, ~((values >= low) & (values < float(high + 1)))
    return values, ((values < low) | (values > high)).astype(np.bool_)


def argument_arrays(term: FoldTerm, args: Sequence[Vector]) -> Arguments:
    """The arguments of pairs, as the expressions of ``term`` have them, ``args``."""
    fold = term.fold
    n = len(args[0].values) if args else 0
    valid = np.logical_and.reduce([a.valid for a in args]) if args else np.ones(n, np.bool_)
    wrong, arrays = n, []
    for argument, arg in zip(fold.arguments, args, strict=True):
        values, outside = argument_numbers(argument.width, arg)
        bad = np.flatnonzero(outside & valid)
        wrong = min(wrong, int(bad[0])) if len(bad) else wrong
        arrays.append(np.where(outside | ~valid, 0, values))
    # Unsigned numbers of 64 bits stay Python's.
    return Arguments(tuple(v if v.dtype == object and len(v) and int(v.max()) >= 2**63 else v.astype(np.int64)
                           for v in arrays), valid, wrong)


def argument_error(term: FoldTerm, number: int, value: Any, base: int, partner: int) -> InputError:
    """The error for ``value``, as its expression has it, of argument ``number``, outside its width."""
    argument = term.fold.arguments[number]
    exact = not isinstance(term.args[number].type, Float)
    shown = argument.width.shown(int(value)) if exact else f"{float(value)}"
    return InputError(f"{argument.name} of {term.text!r} must fit {argument.width}, but is {shown} for "
                      f"{_base_text(base)}{f' and row {partner} of s' if partner >= 0 else ''}; declare it wider in "
                      f"{term.fold.name}")


def _base_text(base: int) -> str:
    """A base tuple in words; -1 is one that SQL's LEFT JOIN gives a row of NULL."""
    return f"row {base} of r" if base >= 0 else "a row of r that meets nothing"


def overflow_error(term: FoldTerm, slot: int, value: int, base: int) -> InputError:
    """The error for a state that left its stated width."""
    of = term.fold.slots[slot]
    return InputError(f"{of.name} of {term.text!r} of {_base_text(base)} must fit {of.width}, but is "
                      f"{of.width.shown(value)}; declare it wider in {term.fold.name}, or bound it with min and "
                      f"max")


def result_error(term: FoldTerm, number: int, base: int) -> InputError:
    """The error for a result, without its point, that does not fit its stated width."""
    fold = term.fold
    assert fold.width is not None
    return InputError(f"{term.text!r} of {_base_text(base)} must fit {fold.width}, but is "
                      f"{fold.width.shown(number)}; declare the result of {fold.name} wider")


def results(term: FoldTerm, states: Sequence[Array], present: Mask, bases: Ints) -> Vector:
    """The results of ``states``, one array (n,) for each slot; NULL where not ``present``. Raises `InputError` for one
    that does not fit.
    """
    fold = term.fold
    n = len(present)
    valid = np.ones(n, np.bool_)
    table = {slot.column("r"): Vector(values, valid) for slot, values in zip(fold.slots, states, strict=True)}
    with np.errstate(all="ignore"):
        for column, e in fold.result.steps:
            table[column] = evaluate_columns(e, table, n)
        columns = evaluate_columns(fold.result.outputs[0], table, n)
    result = Vector(columns.values, columns.valid & present, columns.denominator)
    if fold.width is None:
        return result
    low, high = fold.width.range
    wrong = np.flatnonzero(((result.values < low) | (result.values > high)).astype(np.bool_) & result.valid)
    if len(wrong):
        raise result_error(term, int(result.values[wrong[0]]), int(bases[wrong[0]]))
    if fold.width.fraction:
        values = np.where(result.valid, result.values, 0).astype(np.float64)
        return Vector(np.ldexp(values, -fold.width.fraction), result.valid)
    return Vector(widen(result.values, 0), result.valid)
