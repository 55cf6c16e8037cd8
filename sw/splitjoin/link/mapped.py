"""Parts that devices behind AXI ports share: registers in a mapped node, and records and items as beats."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import time
from contextlib import ExitStack

import numpy as np

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.axi import CONTROL_WORD, AxiShape
from splitjoin.circuit.driver import Transport
from splitjoin.circuit.encode import Words, single_items
from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin.engines.device import Items

from .items import STALE_BYTES, ItemBound

#: Bytes of a register space that are mapped: a page, which holds all registers.
PAGE = 4096


class MappedRegisters:
    """The registers in the first page of the node ``path``, from byte ``offset`` on, a multiple of `PAGE`.

    The node is locked against other processes. Raises OSError or ValueError if that, or the mapping, fails.
    """

    def __init__(self, path: str, offset: int = 0):
        self._file = os.open(path, os.O_RDWR | os.O_SYNC | os.O_CLOEXEC)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._map = mmap.mmap(self._file, PAGE, offset=offset)
        except BaseException:
            os.close(self._file)
            raise
        # Registers take whole words: ctypes reads and writes 32 bits at once, slices of a mapping do not.
        self._words = (ctypes.c_uint32 * (PAGE // 4)).from_buffer(self._map)
        self._closed = False

    def read(self, address: int) -> int:
        """The register word at word ``address``."""
        return int(self._words[address])

    def write(self, address: int, word: int) -> None:
        """Write the register word at word ``address``."""
        self._words[address] = word

    def close(self) -> None:
        """Unmap and unlock the node."""
        if not self._closed:
            self._closed = True
            del self._words
            self._map.close()
            os.close(self._file)


def opened_node(opened: ExitStack, path: str, flags: int) -> int:
    """The file descriptor of node ``path``, which ``opened`` closes. Raises OSError."""
    node = os.open(path, flags | os.O_CLOEXEC)
    opened.callback(os.close, node)
    return node


class AxiTransport(Transport):
    """A circuit of ``config`` with AXI ports, whose ``registers`` are mapped."""

    def __init__(self, registers: MappedRegisters, config: Configuration):
        self._registers, self._shape, self._config = registers, AxiShape.of(config), config
        self._bound, self._items_before = ItemBound(config), 0

    def read(self, address: int) -> int:
        return self._registers.read(address)

    def write(self, address: int, word: int) -> None:
        self._registers.write(address, word)

    def _reset_join(self, seconds: float) -> None:
        """Reset the join, and wait until it is done. Raises `DeviceError` after ``seconds``."""
        self._registers.write(CONTROL_WORD, 1)
        until = time.monotonic() + seconds
        while (word := self._registers.read(CONTROL_WORD)) != 0:
            if time.monotonic() > until:
                raise DeviceError(f"the circuit must end its reset within {seconds:g} s, but register control still "
                                  f"reads {word:08x}; is it a splitjoin circuit with AXI ports?")
            time.sleep(0.001)

    def _beats(self, records: Words) -> bytes:
        block = np.zeros((len(records), self._shape.record_bytes // 4), "<u4")
        block[:, :records.shape[1]] = records
        return block.tobytes()

    def _items(self, beats: bytes | bytearray) -> Items:
        self._items_before += len(beats) // self._shape.item_bytes
        records = np.frombuffer(bytes(beats), "<u4").reshape(-1, self._shape.item_bytes // 4)
        return single_items(records, self._config)[0]

    def _check_stale(self, nbytes: int) -> None:
        """Raise `DeviceError` if ``nbytes`` of items came after the reset: a circuit that was reset has none."""
        if nbytes > STALE_BYTES:
            raise DeviceError(f"the circuit must be silent after its reset, but sent more than {STALE_BYTES} bytes; is "
                              f"it a splitjoin circuit with AXI ports?")

    def _check_bound(self, nbytes: int) -> None:
        """Raise `DeviceError` if the ``nbytes`` of items of this transfer are more than the circuit can have given."""
        self._bound.check(self._items_before + nbytes // self._shape.item_bytes)

    def _has_end(self, beats: bytes) -> bool:
        return bool(beats) and beats[-self._shape.item_bytes] & 3 == ItemKind.END
