"""Columns of times as whole numbers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError

Numbers = npt.NDArray[np.int64]


def numbers(values: Any, name: str) -> tuple[Numbers, npt.NDArray[np.bool_], pa.DataType]:
    """The int64 of ``values``, which of them are not NULL, and their type.

    Args:
        values: Whole numbers, timestamps, or durations: an Arrow array, a pandas or Polars column, NumPy, or a list.
        name: What errors call them.

    Raises:
        InputError: If they are of another type, or beyond int64.
    """
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            column = values
        elif isinstance(values, np.ndarray | list | tuple | range):
            column = pa.array(values)
        else:
            column = pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
        type_ = column.type
        if not (pa.types.is_integer(type_) or pa.types.is_timestamp(type_) or pa.types.is_duration(type_)):
            if column.null_count < len(column):
                raise InputError(f"{name} must be whole numbers, timestamps or durations, not {type_}; round times in "
                                 "floats to whole nanoseconds first")
            type_ = pa.int64()
        whole = column.cast(pa.int64())
    except TypeError:
        raise InputError(f"{name} must be a column of whole numbers, timestamps or durations, not {values!r}") from None
    except (pa.ArrowInvalid, OverflowError) as error:
        raise InputError(f"{name} must be whole numbers of int64, timestamps or durations: {error}") from None
    known = np.asarray(whole.is_valid(), dtype=bool)
    return np.asarray(whole.fill_null(0), dtype=np.int64), known, type_


def column_of(values: Numbers, known: npt.NDArray[np.bool_], type_: pa.DataType) -> pa.Array:
    """An Arrow array of ``type_`` of ``values``, with NULL where they are not ``known``."""
    made = pa.array(values, mask=~known)
    return made if pa.types.is_integer(type_) else made.cast(type_)
