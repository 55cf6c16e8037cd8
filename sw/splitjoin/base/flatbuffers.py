"""A reader of FlatBuffers, the form of the metadata of Arrow IPC, which may be damaged."""

from __future__ import annotations

import struct


class FlatTable:
    """A table of FlatBuffers at a place of ``data``; its fields by their numbers. Raises struct.error and ValueError
    where it goes beyond ``data``.
    """

    def __init__(self, data: memoryview, at: int):
        self.data, self._at = data, at
        self._fields = at - number_at("<i", data, at)
        self._size = number_at("<H", data, self._fields)

    @classmethod
    def root(cls, data: memoryview) -> FlatTable:
        """The table that ``data`` is of."""
        return cls(data, number_at("<I", data, 0))

    def has(self, field: int) -> bool:
        """True if the table has the field."""
        return self._place(field) is not None

    def number(self, kind: str, field: int) -> int:
        """The field, a number of this ``kind`` of `struct`; 0 if it is not there."""
        place = self._place(field)
        return 0 if place is None else number_at(kind, self.data, place)

    def table(self, field: int) -> FlatTable:
        """The field, a table."""
        place = self._place(field)
        if place is None:
            raise ValueError("its metadata lacks a table")
        return FlatTable(self.data, place + number_at("<I", self.data, place))

    def vector(self, field: int, size: int) -> tuple[int, int]:
        """The place at which the items of the field begin, each of ``size`` bytes, and their number."""
        place = self._place(field)
        if place is None:
            return 0, 0
        at = place + number_at("<I", self.data, place)
        count = number_at("<I", self.data, at)
        if count * size > len(self.data) - at - 4:
            raise ValueError("its metadata leads outside")
        return at + 4, count

    def _place(self, field: int) -> int | None:
        if 4 + 2 * field + 2 > self._size:
            return None
        offset = number_at("<H", self.data, self._fields + 4 + 2 * field)
        return self._at + offset if offset else None


def number_at(kind: str, data: memoryview, at: int) -> int:
    """The number of this ``kind`` of `struct` at a place of ``data``. Raises struct.error and ValueError outside it."""
    if at < 0:  # which struct would count from the end
        raise ValueError("its metadata leads outside")
    (found,) = struct.unpack_from(kind, data, at)
    return int(found)
