"""Items as bytes of replies: as they are, or packed as differences to the items before.

Packed, an item takes one to nine bytes. The first has its kind (bits 0 and 1), its side (bit 2), and the number of
bytes of the row ids of R (bits 3 and 4) and S (bits 5 and 6): 0, 1, 2, or as many as a row id has. Then come these
bytes: the difference to the row id of the same stream in the item before that had one, modulo 2^width, as a signed
number, least significant byte first. After OPEN, both row ids are 0. END has no row ids, and a STAR only that of its
side, unless the circuit folds: there it carries a part of a state in the other one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.encode import single_items
from splitjoin.circuit.wire import Configuration, ItemKind, Record
from splitjoin.engines.device import ITEM, Items

#: Bits of the first byte that no packed item has.
_NEVER = 0x80


def row_id_bytes(record: Record) -> tuple[int, int, int, int]:
    """The bytes that each code of a packed row id of ``record`` stands for."""
    full = -(-record.offsets()["r"][1] // 8)
    return 0, 1, min(2, full), full


class ItemReader(Protocol):
    """Takes the bytes of replies, and gives their items.

    Attributes:
        received: Bytes that were fed.
        largest: The bytes of the largest item.
        ended: True if the last whole item is END.
    """

    received: int
    largest: int
    ended: bool

    def feed(self, received: bytes) -> None:
        """Take the bytes of the next reply."""

    def take(self) -> Items:
        """The whole items since the last call, as on the wire. Raises `DeviceError` for bytes that are none."""


class PlainItems:
    """Items of ``config`` as they are: each in whole bytes."""

    def __init__(self, config: Configuration):
        self._config, self._bytes = config, -(-config.item_record.width // 8)
        self._held = bytearray()
        self.received, self.largest, self.ended = 0, self._bytes, False

    def feed(self, received: bytes) -> None:
        self._held += received
        self.received += len(received)
        self.ended = len(self._held) >= self._bytes and self._held[-self._bytes] & 3 == ItemKind.END

    def take(self) -> Items:
        held, self._held = bytes(self._held), bytearray()
        if len(held) % self._bytes:
            raise DeviceError(f"replies must hold whole items of {self._bytes} bytes, but {len(held)} bytes came; "
                              f"build the circuit again with this release")
        words = np.zeros((len(held) // self._bytes, 4 * self._config.item_record.words), np.uint8)
        words[:, :self._bytes] = np.frombuffer(held, np.uint8).reshape(-1, self._bytes)
        return single_items(words.view("<u4"), self._config)[0]


class PackedItems:
    """Items of the layout ``record`` as differences to those before. An item may begin in one reply and end in the
    next. ``whole_stars``: stars have both row ids, as where the circuit folds.
    """

    def __init__(self, record: Record, *, whole_stars: bool):
        self._whole_stars, self._width = whole_stars, record.offsets()["r"][1]
        self._counts = np.array(row_id_bytes(record))
        # Bytes of an item by its first byte.
        self._sizes = [1 + int(self._counts[head >> 3 & 3] + self._counts[head >> 5 & 3]) for head in range(256)]
        self._held, self._at = bytearray(), 0  # bytes, of which those from `_at` on are no whole item yet
        self._begins: list[int] = []
        self._last = {"r": 0, "s": 0}
        self.received, self.largest, self.ended = 0, max(self._sizes), False

    def feed(self, received: bytes) -> None:
        self._held += received
        self.received += len(received)
        held, sizes, at, end = self._held, self._sizes, self._at, len(self._held)
        while at < end and (after := at + sizes[held[at]]) <= end:
            self._begins.append(at)
            at = after
        self._at = at
        if self._begins:
            self.ended = held[self._begins[-1]] & 3 == ItemKind.END

    def take(self) -> Items:
        data = np.frombuffer(bytes(self._held[:self._at]) + bytes(8), np.uint8)
        begins = np.array(self._begins, np.int64)
        self._held, self._at, self._begins, self.ended = self._held[self._at:], 0, [], False
        head = data[begins]
        if (head & _NEVER).any():
            raise DeviceError(f"a packed item must begin with a byte below {_NEVER:#x}, but {head.max():#x} came; "
                              f"build the circuit again with this release")
        kind, side = head & 3, head >> 2 & 1
        first, second = self._counts[head >> 3 & 3], self._counts[head >> 5 & 3]
        items = np.empty(len(begins), ITEM)
        items["kind"], items["side"] = kind, side
        for name, of, at, count in (("r", 0, begins + 1, first), ("s", 1, begins + 1 + first, second)):
            has = kind == ItemKind.PAIR
            has |= kind == ItemKind.STAR if self._whole_stars else (kind == ItemKind.STAR) & (side == of)
            items[name] = self._row_ids(name, data, at, count, has)
        return items

    def _row_ids(self, name: str, data: np.ndarray, at: np.ndarray, count: np.ndarray, has: np.ndarray) -> np.ndarray:
        """The row ids of stream ``name``, where items have one, else 0."""
        # Eight bytes from each byte on; shifting by those that are not its row id's keeps the sign.
        following = np.ndarray(len(data) - 7, "<i8", data, strides=(1,))[at]
        others = 64 - 8 * np.maximum(count, 1)
        differences = np.where(has & (count > 0), following << others >> others, 0)
        mask = (1 << self._width) - 1
        values = (self._last[name] + np.cumsum(differences)) & mask
        if len(values):
            self._last[name] = int(values[-1])
        return np.where(has, values, 0)


#: The most bytes of an earlier session's items that may come after a reset: more than the FIFOs of any link hold.
STALE_BYTES = 16 << 20
#: Items beside pairs and states, at most: those of each record (stars, END), and of a session.
_OF_RECORD, _OF_SESSION = 8, 64


class ItemBound:
    """Raises for a device that sends more items than its circuit of ``config`` can: one that is broken, or no splitjoin
    circuit, could otherwise send for ever and fill the host's memory.

    Every pair of tuples is one item at most, and none is further apart than a window.
    """

    def __init__(self, config: Configuration):
        self._window, self._each = config.window_capacity, _OF_RECORD + 2 * config.beats
        self.records = 0

    @property
    def most(self) -> int:
        """The most items that there can be for the first ``records`` records."""
        n = self.records
        return min(n * self._window, n * n // 4) + n * self._each + _OF_SESSION

    def check(self, items: int) -> None:
        """Raise `DeviceError` if the device cannot have given ``items`` since its reset."""
        if items > self.most:
            raise DeviceError(f"the device must give at most {self.most} items for the {self.records} records that it "
                              f"got, as its windows hold {self._window} tuples, but gave {items}; check its cable and "
                              f"its power, and whether it has the circuit of this query; then open a new session")
