"""A Zynq without one: nodes as files, and the registers of an AXI DMA with a simulated circuit behind it.

The engine is a model of PG021's direct register mode: it demands the registers' order, and that u-dma-buf has handed it
the bytes of a transfer before.
"""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from splitjoin.circuit.axi import CONTROL_WORD, PACKET_BEATS, AxiShape
from splitjoin.circuit.driver import Transport
from splitjoin.circuit.wire import Configuration, Op
from splitjoin.link import zynq
from splitjoin.link.mapped import PAGE, MappedRegisters
from splitjoin_sim.build import library
from splitjoin_sim.device import SimDevice

from .packed_items import item_words

#: Physical address of the buffer: above 4 GiB, and not aligned to it.
_PHYSICAL = 0x8_7654_3000
_HALTED, _IDLE = 1, 2


class FakeZynq:
    """The nodes ``udmabuf0``, ``uio0`` (the engine) and ``uio1`` (the circuit of ``config``) in ``folder``.

    ``stale``: items that an earlier session left. ``ends``: False for a circuit that never ends its reset, ``starts``:
    for an engine that does not. ``deaf``: it takes no records. ``status``: more bits of the engine's status.
    ``fails``: bits of the status of a transfer of records. ``cut``: bytes of a packet that get lost.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, device: SimDevice, config: Configuration, *,
                 stale: bytes = b"", ends: bool = True, starts: bool = True, deaf: bool = False, status: int = 0,
                 fails: int = 0, cut: int = 0, size: int = 1 << 16):
        self.options = {"dma": str(folder / "uio0"), "user": str(folder / "uio1"), "sysfs": str(folder / "sys")}
        self.name = f"zynq:{folder / 'udmabuf0'}"
        self.resets = self.packets = 0
        library(config)  # not within the time that a driver waits for a reset
        self._device, self._config, self._shape = device, config, AxiShape.of(config)
        self._ends, self._starts, self._deaf = ends, starts, deaf
        self._status, self._fails, self._cut = status, fails, cut
        self._transport: Transport | None = None
        self._items, self._rng = deque([stale] if stale else []), random.Random(size)
        self._words: dict[int, int] = {}
        self._waiting = {0: 0, 12: 0}  # looks at the status of each channel until its transfer ends
        for name in ("uio0", "uio1"):
            (folder / name).write_bytes(bytes(PAGE))
        self._buffer = folder / "udmabuf0"
        self._buffer.write_bytes(bytes(size))
        self._attributes = folder / "sys" / "udmabuf0"
        self._attributes.mkdir(parents=True)
        for name, text in (("phys_addr", f"0x{_PHYSICAL:x}\n"), ("size", f"{size}\n"), ("sync_for_device", ""),
                           ("sync_for_cpu", "")):
            (self._attributes / name).write_text(text)
        fake = self

        class Registers(MappedRegisters):
            """Registers of the engine or of the circuit, by the node's name."""

            def __init__(self, path: str, offset: int = 0):
                super().__init__(path, offset)
                self._engine = Path(path).name == "uio0"

            def read(self, address: int) -> int:
                return fake._engine_word(address) if self._engine else fake._circuit_word(address)

            def write(self, address: int, word: int) -> None:
                (fake._write_engine if self._engine else fake._write_circuit)(address, word)

        monkeypatch.setattr(zynq, "MappedRegisters", Registers)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def __enter__(self) -> FakeZynq:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _circuit_word(self, address: int) -> int:
        if address == CONTROL_WORD:
            return int(not self._ends)
        assert self._transport is not None
        return self._transport.read(address)

    def _write_circuit(self, address: int, word: int) -> None:
        if address != CONTROL_WORD:
            assert self._transport is not None
            self._transport.write(address, word)
            return
        self.close()
        self._transport = self._device._connect(self._config)
        while len(self._items) > 1:
            self._items.pop()  # one is offered, and stays until it is taken
        self.resets += 1

    def _engine_word(self, address: int) -> int:
        channel, word = divmod(address, 12)
        channel *= 12
        if word == 1:
            return self._status | self._status_of(channel)
        return self._words.get(address, 0)

    def _status_of(self, channel: int) -> int:
        if not self._words.get(channel, 0) & 1:
            return _HALTED
        if (size := self._words.get(channel + 10, 0)) == 0:
            return 0  # nothing has been asked for
        if channel + 1 in self._words:
            return self._words[channel + 1]  # ended
        self._waiting[channel] -= 1
        if self._waiting[channel] > 0:
            return 0
        if channel == 0 and not self._deaf:
            self._words[1] = self._fails | (_HALTED if self._fails else _IDLE)
            at = self._place(channel)
            self._execute(self._buffer.read_bytes()[at:at + size])
        elif channel == 12 and self._items:
            got = self._items.popleft()
            assert len(got) <= size, "the packet is longer than the buffer"
            with self._buffer.open("r+b") as file:
                file.seek(self._place(channel))
                file.write(got)
            self._words[22], self._words[13] = len(got) - self._cut, _IDLE
            self.packets += 1
        return self._words.get(channel + 1, 0)

    def _write_engine(self, address: int, word: int) -> None:
        if address in (0, 12) and word & 4:
            self._words = {} if self._starts else {0: 4}
            return
        assert address not in (6, 7, 10, 18, 19, 22) or self._words.get(address // 12 * 12, 0) & 1, "it is halted"
        self._words[address] = word
        if address in (10, 22):
            channel = address // 12 * 12
            given = int((self._attributes / "sync_for_device").read_text()[:18], 16)
            assert 0 < word <= given & 0xFFFFFFF0, "the bytes are not the engine's"
            assert given >> 32 == self._place(channel), "another place"
            assert given >> 2 & 3 == (2 if channel else 1) and given & 1, "another direction"
            self._words.pop(channel + 1, None)
            self._waiting[channel] = self._rng.randint(1, 4)

    def _place(self, channel: int) -> int:
        """The place of a transfer in the buffer."""
        return (self._words[channel + 7] << 32 | self._words[channel + 6]) - _PHYSICAL

    def _execute(self, raw: bytes) -> None:
        assert self._transport is not None
        assert len(raw) % self._shape.record_bytes == 0
        records = np.frombuffer(raw, "<u4").reshape(-1, self._shape.record_bytes // 4)
        records = records[:, :self._config.input_record.words]
        items = self._transport.transfer(records, until_end=bool((records[:, 0] & 3 == Op.FLUSH).any()))
        out = np.zeros((len(items), self._shape.item_bytes // 4), "<u4")
        words = item_words(self._config.item_record, items)
        out[:, :words.shape[1]] = words
        at = 0
        while at < len(out):  # packets of any length
            beats = self._rng.randint(1, PACKET_BEATS)
            self._items.append(out[at:at + beats].tobytes())
            at += beats
