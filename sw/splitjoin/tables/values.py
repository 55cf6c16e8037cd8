"""Columns of Python's and NumPy's values as Arrow has them: exactly, or refused."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, SchemaError, first_line

#: Units of NumPy's times that become days; all others that Arrow lacks become seconds.
_DAYS = ("Y", "M", "W", "D")
#: Classes of times whose values Arrow has as they are.
_PLAIN = {dt.date, dt.timedelta}


def typed(name: str, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """``values`` as a column of this type. Raises `SchemaError` if one would change; floats are rounded."""
    try:
        made = pa.array(values, type_)
        if not isinstance(type_, pa.BaseExtensionType):
            for one, is_now in zip(values, made.to_pylist(), strict=True):  # Arrow makes 1 of 1.5, a date of a datetime
                if not _is_same(one, is_now):
                    raise ValueError(f"{one!r} is none")
        return made
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise SchemaError(f"the column {name} must hold values of the type {type_}, but: {first_line(error)}") from None


def _is_same(value: Any, made: Any) -> bool:
    """True if ``made``, a value of Arrow, is ``value``, but for the rounding of floats."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if made is None:
        return True  # of NULL alone
    if isinstance(made, float) and isinstance(value, (float, np.floating)):
        return math.isnan(value) == math.isnan(made) and math.isinf(value) == math.isinf(made)
    if isinstance(made, list) and isinstance(value, Mapping):  # of a map
        value = list(value.items())
    if isinstance(made, (list, tuple)) and isinstance(value, (list, tuple, np.ndarray)):
        return len(made) == len(value) and all(map(_is_same, value, made))
    if isinstance(made, dict) and isinstance(value, Mapping):
        return value.keys() <= made.keys() and all(_is_same(one, made[name]) for name, one in value.items())
    return bool(made == value)


def column_of(name: str, values: Any) -> Any:
    """``values`` of the column ``name`` of a dict as what Arrow makes a column of. Raises `ValueError` for those that
    it does not take, and `InputError` for those that it would change.
    """
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"the column {name!r} must be an array of one dimension, not of shape {values.shape}")
        values = _native(name, values)
    if isinstance(values, (str, bytes, Mapping, Set)):  # of which Arrow takes letters and keys
        raise ValueError(f"the column {name!r} must be a list or an array of values, not {type(values).__name__}")
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    try:
        made = pa.array(values)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        whole = isinstance(error, OverflowError) and all(one is None or type(one) is int for one in values)
        if not whole or not all(one is None or 0 <= one < 2**64 for one in values):
            raise ValueError(f"the column {name!r} is none for Arrow: {first_line(error)}") from error
        made = pa.array(values, pa.uint64())  # which Arrow does not infer
    if getattr(getattr(values, "dtype", None), "kind", "O") == "O":  # a list, or an array of Python's objects
        check_objects(name, list(values), made)
    return made


def check_objects(name: str, values: Sequence[Any], made: pa.Array | pa.ChunkedArray) -> None:
    """Raise `InputError` if one of the times of ``made``, a column ``name`` that Arrow has inferred from Python's
    ``values``, is another one: it takes a datetime as a date beside dates, one without a zone as in UTC beside those
    with one, and leaves out the zone of a time of day, and nanoseconds.
    """
    kinds = set(map(type, values)) - {type(None)} if pa.types.is_temporal(made.type) else set()
    if not kinds or (len(kinds) == 1 and kinds <= _PLAIN):
        return
    for one, is_now in zip(values, made.to_pylist(), strict=True):
        if not _is_same(one, is_now):
            raise InputError(f"the column {name!r} must hold times of one kind that Arrow has, but {one!r} would "
                             f"become {is_now!r} of type {made.type}; give an array of Arrow or NumPy with a type")


def _native(name: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """``values`` with the byte order of this machine, and times in units that Arrow has.

    Raises `ValueError` for numbers of types that Arrow lacks.
    """
    type_ = values.dtype
    if type_.kind == "c" or (type_.kind == "f" and type_.itemsize > 8):
        raise ValueError(f"the column {name!r} has the type {type_}, which Arrow lacks; "
                         + ("give .real and .imag as two columns" if type_.kind == "c" else "make it float64"))
    if type_.kind in "mM":
        unit, count = np.datetime_data(type_)
        known = unit in ("s", "ms", "us", "ns")
        if not known or count != 1:  # Arrow takes steps of 25 s as seconds
            arrows = unit if known else "D" if type_.kind == "M" and unit in _DAYS else "s"
            wanted = np.dtype(f"{type_.kind}8[{arrows}]")
            try:
                made = values.astype(wanted)
                is_held = np.array_equal(made.astype(type_), values, equal_nan=True)
            except OverflowError:  # from NumPy 2.5 on
                is_held = False
            if not is_held or (type_.kind == "m" and unit in ("Y", "M", "generic")):
                raise ValueError(f"the column {name!r} has times of the type {type_}, which {wanted} of Arrow cannot "
                                 f"hold; make it {type_.kind}8[ns]")
            values = made
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
