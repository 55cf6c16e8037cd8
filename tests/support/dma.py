"""Character devices of a DMA driver without a card: pipes and a mapped file, with a simulated circuit behind them."""

from __future__ import annotations

import mmap
import os
import select
import struct
import threading
from pathlib import Path

import numpy as np

from splitjoin.circuit.axi import CONTROL_WORD, AxiShape
from splitjoin.circuit.driver import Transport
from splitjoin.circuit.registers import REGISTERS
from splitjoin.circuit.wire import Configuration, Op
from splitjoin_sim.build import library
from splitjoin_sim.device import SimDevice

from .packed_items import item_words

_PAGE = 4096


class FakeCard:
    """The nodes ``…_h2c_0``, ``…_c2h_0`` and ``…_user`` in ``folder``, and a thread that is the card with the circuit
    of ``config``. ``resets``: how often the driver has reset it. ``stale``: bytes that an earlier session left.

    ``resetting``: False for a card that never ends its reset. ``deaf``: True for one that takes no records.
    """

    def __init__(self, folder: Path, device: SimDevice, config: Configuration, *, stale: bytes = b"",
                 resetting: bool = True, deaf: bool = False):
        self.name = str(folder / "xdma0")
        self.resets = 0
        library(config)  # not within the time that a driver waits for a reset
        self._device, self._config, self._shape = device, config, AxiShape.of(config)
        self._resetting, self._deaf = resetting, deaf
        for end in ("h2c_0", "c2h_0"):
            os.mkfifo(f"{self.name}_{end}")
        Path(f"{self.name}_user").write_bytes(bytes(_PAGE))
        self._h2c, self._c2h = (os.open(f"{self.name}_{end}", os.O_RDWR) for end in ("h2c_0", "c2h_0"))
        if stale:
            os.write(self._c2h, stale)
        self._file = os.open(f"{self.name}_user", os.O_RDWR)
        self._map = mmap.mmap(self._file, _PAGE)
        self._transport: Transport | None = None
        self._settled = False
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._stop = True
        self._thread.join()
        self._map.close()
        for fd in (self._h2c, self._c2h, self._file):
            os.close(fd)

    def __enter__(self) -> FakeCard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _word(self, address: int, value: int | None = None) -> int:
        if value is not None:
            struct.pack_into("<I", self._map, 4 * address, value)
        return struct.unpack_from("<I", self._map, 4 * address)[0]

    def _publish(self) -> None:
        """Show all registers as the circuit has them."""
        assert self._transport is not None
        for reg in REGISTERS:
            for n in range(reg.bits // 32):
                self._word(reg.address + n, self._transport.read(reg.address + n))

    def _run(self) -> None:
        rest = b""
        while not self._stop:
            if self._word(CONTROL_WORD) and self._resetting:
                self._restart()
            waiting = [] if self._deaf else select.select([self._h2c], [], [], 0.001)[0]
            if not waiting or self._transport is None:
                continue
            rest += os.read(self._h2c, 1 << 16)
            whole = len(rest) - len(rest) % self._shape.record_bytes
            self._execute(rest[:whole])
            rest = rest[whole:]
        if self._transport is not None:
            self._transport.close()  # by the thread that made it, as the model demands

    def _restart(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._transport, self._settled = self._device._connect(self._config), False
        self._publish()
        self.resets += 1
        self._word(CONTROL_WORD, 0)

    def _execute(self, raw: bytes) -> None:
        if not raw:
            return
        if not self._settled:
            for reg in REGISTERS:
                if reg.access == "rw":
                    for n in range(reg.bits // 32):
                        self._transport.write(reg.address + n, self._word(reg.address + n))
            self._settled = True
        records = np.frombuffer(raw, "<u4").reshape(-1, self._shape.record_bytes // 4)
        records = records[:, :self._config.input_record.words]
        ends = bool((records[:, 0] & 3 == Op.FLUSH).any())
        items = self._transport.transfer(records, until_end=ends)
        out = np.zeros((len(items), self._shape.item_bytes // 4), "<u4")
        words = item_words(self._config.item_record, items)
        out[:, :words.shape[1]] = words
        self._publish()
        left = memoryview(out.tobytes())
        while left and not self._stop:  # in pieces that cut items, as a pipe may
            left = left[os.write(self._c2h, left[:1000]):]
