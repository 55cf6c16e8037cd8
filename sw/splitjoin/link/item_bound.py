"""`ItemBound`: the most items that a circuit can give for the records that it got."""

from __future__ import annotations

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.wire import Configuration

__all__ = ["STALE_BYTES", "ItemBound"]

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
