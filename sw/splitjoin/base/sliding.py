"""Arrays that grow at the end and are trimmed at the front: numbers, and Arrow columns of fixed width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MIN_CAPACITY = 1024

#: Gives some values of an array, by number, which are from 0 on.
Take = Callable[[npt.NDArray[Any], npt.NDArray[np.int64]], npt.NDArray[Any]]


class SlidingArray:
    """Values of ``dtype`` that are appended at the end and dropped at the front, each copied a few times at most."""

    def __init__(self, dtype: npt.DTypeLike = np.int64) -> None:
        self._array: npt.NDArray[Any] = np.empty(_MIN_CAPACITY, dtype)
        self._start = self._end = 0
        self._most = 0  # values that there were before one of the last drops

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values: a view, valid until the next change."""
        return self._array[self._start:self._end]

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add ``values`` at the end."""
        self.added(len(values))[:] = values

    def added(self, n: int) -> npt.NDArray[Any]:
        """Add ``n`` values at the end, and return a view of them, to be filled before the next change."""
        if self._end + n > len(self._array):
            used = len(self)
            kept = self.values
            if 2 * (used + n) > len(self._array):
                self._array = np.empty(max(2 * (used + n), _MIN_CAPACITY), self._array.dtype)
            # Else half is free: a window of steady length stays in the same memory, as fresh memory is slow to touch.
            self._array[:used] = kept
            self._start, self._end = 0, used
        self._end += n
        return self._array[self._end - n:self._end]

    def drop(self, n: int) -> None:
        """Remove the first ``n`` values."""
        # A batch may be far longer than a window: memory that the next one needs again is kept.
        self._most = max(len(self), self._most // 2)
        self._start += n
        if len(self._array) > max(_MIN_CAPACITY, 8 * self._most):
            kept = self.values.copy()
            self._array = np.empty(max(2 * len(kept), _MIN_CAPACITY), self._array.dtype)
            self._array[:len(kept)] = kept
            self._start, self._end = 0, len(kept)


class FixedWidthColumn:
    """An Arrow column with whole bytes per value, as one array, from which rows are gathered at once."""

    def __init__(self, type_: pa.DataType):
        self._type = type_
        self._dtype = np.dtype(f"V{type_.bit_width // 8}" if type_.bit_width > 64 else f"u{type_.bit_width // 8}")
        self._values = SlidingArray(self._dtype)
        self._valid: SlidingArray | None = None  # None until the first NULL

    @staticmethod
    def holds(type_: pa.DataType) -> bool:
        """True if this class can hold columns of ``type_``."""
        return (pa.types.is_primitive(type_) and not pa.types.is_boolean(type_)) or pa.types.is_decimal128(type_)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return len(self._values) * (self._dtype.itemsize + (self._valid is not None))

    def append(self, column: pa.ChunkedArray) -> None:
        """Add the values of ``column``."""
        for chunk in column.chunks:
            if not len(chunk):
                continue
            before = len(self._values)
            self._values.append(np.frombuffer(chunk.buffers()[1], self._dtype, len(chunk),
                                              chunk.offset * self._dtype.itemsize))
            if chunk.null_count and self._valid is None:
                self._valid = SlidingArray(np.bool_)
                self._valid.append(np.ones(before, np.bool_))
            if self._valid is not None:
                self._valid.append(chunk.is_valid().to_numpy(zero_copy_only=False))

    def drop(self, n: int) -> None:
        """Remove the first ``n`` values."""
        self._values.drop(n)
        if self._valid is not None:
            self._valid.drop(n)

    def gather(self, rows: npt.NDArray[np.int64] | slice, lacking: npt.NDArray[np.bool_] | None = None,
               there: pa.Buffer | None = None, take: Take | None = None) -> pa.Array:
        """The values at ``rows``, counted from the first one that was not dropped; NULL where ``lacking``, (n,), says
        so, whatever the row is there. ``there``: the `bitmap_of` all others, made once for many columns. ``take``: is
        faster than NumPy at values of up to 8 bytes.
        """
        if lacking is not None and not len(self._values):
            return pa.nulls(len(lacking), self._type)
        if take is None or isinstance(rows, slice) or self._dtype.kind != "u":
            values = np.ascontiguousarray(self._values.values[rows])
        else:
            values = take(self._values.values, rows)
        bitmap = there
        if self._valid is not None or (lacking is not None and there is None):
            valid = np.ones(len(values), np.bool_) if self._valid is None else self._valid.values[rows]
            bitmap = bitmap_of(valid if lacking is None else valid & ~lacking)
        if isinstance(rows, slice):
            values = values.copy()  # the array itself will change
        return pa.Array.from_buffers(self._type, len(values), [bitmap, pa.py_buffer(values)])


def bitmap_of(valid: npt.NDArray[np.bool_]) -> pa.Buffer:
    """The validity of an Arrow column that is NULL where ``valid`` (n,) is False."""
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
