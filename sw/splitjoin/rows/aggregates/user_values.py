"""Arguments and results of user-defined aggregates: types, whole numbers for arguments, columns for results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.eval.vector import Vector, evaluate_columns, widen
from splitjoin.lang.fold import Fold, Width
from splitjoin.lang.ir import Col
from splitjoin.lang.types import Float

from ..result_values import result_type, to_arrow

__all__ = ["Arguments", "argument_arrays", "argument_error", "argument_numbers", "overflow_error",
           "result_error", "results", "user_result_type"]

Ints = npt.NDArray[np.int64]


def user_result_type(fold: Fold) -> pa.DataType:
    """The Arrow type of the results: an integer type for a stated width, float64 for fixed point; else that of the
    expression (`splitjoin.rows.result_values`).
    """
    if fold.width is None:
        return result_type(fold.result.outputs[0], f"{fold.name}.result()")
    return pa.float64() if fold.width.fraction else result_type(Col(fold.width.type, "s", "result", True), fold.name)


@dataclass(frozen=True)
class Arguments:
    """Arguments of many pairs: ``values``, whole numbers (n,) each, and ``valid`` (n,), False where one is NULL.
    ``wrong``: the first pair with a value outside its width, n if there is none.
    """

    values: tuple[Ints, ...]
    valid: npt.NDArray[np.bool_]
    wrong: int


def argument_numbers(width: Width, arg: Vector) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The whole numbers, without their point, of the values ``arg`` of an argument; True for those outside ``width``,
    and whatever it is for NULL.
    """
    low, high = width.range
    values: npt.NDArray[Any] = arg.values
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            values = np.floor(np.ldexp(values.astype(np.float64), width.fraction))
        # NaN is neither; 2^63 is a float64, the greatest number below it is none.
        return values, ~((values >= low) & (values < float(high + 1)))
    return values, ((values < low) | (values > high)).astype(np.bool_)


def argument_arrays(aggregate: Aggregate, args: Sequence[Vector]) -> Arguments:
    """The arguments of pairs, as the aggregate's expressions ``args`` have them."""
    assert aggregate.fold is not None
    fold = aggregate.fold
    n = len(args[0].values) if args else 0
    valid = np.logical_and.reduce([a.valid for a in args]) if args else np.ones(n, np.bool_)
    wrong, made = n, []
    for argument, arg in zip(fold.arguments, args, strict=True):
        values, outside = argument_numbers(argument.width, arg)
        bad = np.flatnonzero(outside & valid)
        wrong = min(wrong, int(bad[0])) if len(bad) else wrong
        made.append(np.where(outside | ~valid, 0, values))
    # Unsigned numbers of 64 bits stay Python's.
    return Arguments(tuple(v if v.dtype == object and len(v) and int(v.max()) >= 2**63 else v.astype(np.int64)
                           for v in made), valid, wrong)


def argument_error(aggregate: Aggregate, number: int, value: Any, base: int, partner: int) -> InputError:
    """The error for ``value``, as its expression has it, of argument ``number``, outside its width."""
    assert aggregate.fold is not None
    argument = aggregate.fold.arguments[number]
    exact = not isinstance(aggregate.args[number].type, Float)
    shown = argument.width.shown(int(value)) if exact else f"{float(value)}"
    return InputError(f"{argument.name} of {aggregate.text!r} must fit {argument.width}, but is {shown} for "
                      f"{_base_text(base)}{f' and row {partner} of s' if partner >= 0 else ''}; declare it wider in "
                      f"{aggregate.fold.name}")


def _base_text(base: int) -> str:
    """A base tuple in words; -1 is one that SQL's LEFT JOIN gives a row of NULL."""
    return f"row {base} of r" if base >= 0 else "a row of r that meets nothing"


def overflow_error(aggregate: Aggregate, slot: int, value: int, base: int) -> InputError:
    """The error for a state that left its stated width."""
    assert aggregate.fold is not None
    of = aggregate.fold.slots[slot]
    return InputError(f"{of.name} of {aggregate.text!r} of {_base_text(base)} must fit {of.width}, but is "
                      f"{of.width.shown(value)}; declare it wider in {aggregate.fold.name}, or bound it with min and "
                      f"max")


def result_error(aggregate: Aggregate, whole: int, base: int) -> InputError:
    """The error for a result, without its point, that does not fit its stated width."""
    fold = aggregate.fold
    assert fold is not None
    assert fold.width is not None
    return InputError(f"{aggregate.text!r} of {_base_text(base)} must fit {fold.width}, but is "
                      f"{fold.width.shown(whole)}; declare the result of {fold.name} wider")


def results(aggregate: Aggregate, states: Sequence[npt.NDArray[Any]], present: npt.NDArray[np.bool_],
            bases: Ints) -> pa.Array | pa.ChunkedArray:
    """The results of ``states``, one array (n,) for each slot; NULL where not ``present``. Raises `InputError` for one
    that does not fit.
    """
    fold = aggregate.fold
    assert fold is not None
    n = len(present)
    valid = np.ones(n, np.bool_)
    table = {slot.column("r"): Vector(values, valid) for slot, values in zip(fold.slots, states, strict=True)}
    with np.errstate(all="ignore"):
        for column, e in fold.result.steps:
            table[column] = evaluate_columns(e, table, n)
        found = evaluate_columns(fold.result.outputs[0], table, n)
    made = Vector(found.values, found.valid & present, found.denominator)
    if fold.width is None:
        return to_arrow(made, user_result_type(fold), f"{fold.name}.result()")
    low, high = fold.width.range
    wrong = np.flatnonzero(((made.values < low) | (made.values > high)).astype(np.bool_) & made.valid)
    if len(wrong):
        raise result_error(aggregate, int(made.values[wrong[0]]), int(bases[wrong[0]]))
    if fold.width.fraction:
        values = np.where(made.valid, made.values, 0).astype(np.float64)
        return pa.array(np.ldexp(values, -fold.width.fraction), pa.float64(), mask=~made.valid, from_pandas=False)
    return to_arrow(Vector(widen(made.values, 0), made.valid), user_result_type(fold), aggregate.text)
