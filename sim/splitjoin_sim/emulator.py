"""The emulator: a whole circuit with its link in Verilator, behind a pseudo-terminal, with faults on the line."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import select
import tempfile
import tty
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError
from splitjoin.circuit.wire import Configuration

from .emulated import EmulatedTop, linked_top, model

#: Bytes whose time the model runs for at each call: about a short frame.
_BYTES = 25
_ROOM = 4096
#: Calls without any byte after which the emulator waits for input. A reply begins much earlier.
_QUIET = 4
#: Seconds for which the plug stays out, and for which a delayed byte waits.
_OUT, _DELAY = 0.2, 0.01


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Faults of the line, in both directions, and of the board.

    Attributes:
        drop, flip, double, delay: Shares of bytes, 0 to 1 in all, that are lost, have a bit flipped, are doubled, or
            come 10 ms late, with all that follow.
        unplug: Mean number of bytes after which the plug is pulled, for 0.2 s; 0: never. The board keeps its state.
        reset: Mean number of bytes after which the board loses its state, in the middle of whatever it does; 0: never.
        seed: Of the faults.
    """

    drop: float = 0.0
    flip: float = 0.0
    double: float = 0.0
    delay: float = 0.0
    unplug: int = 0
    reset: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        shares = [self.drop, self.flip, self.double, self.delay]
        if not all(isinstance(share, int | float) and share >= 0 for share in shares) or not sum(shares) <= 1:
            raise DeviceError(f"shares of faults must be numbers from 0 with a sum of at most 1, not {shares}")
        for name, mean in (("unplug", self.unplug), ("reset", self.reset)):
            if type(mean) is not int or mean < 0:
                raise DeviceError(f"{name} must be a number of bytes from 0, not {mean!r}")

    def applied(self, data: bytes, chance: random.Random) -> tuple[bytes, int]:
        """``data`` with faults, and how many of its bytes are delayed."""
        if not (self.drop or self.flip or self.double or self.delay):
            return data, 0
        out, delayed = bytearray(), 0
        for byte in data:
            at = chance.random()
            if at < self.drop:
                continue
            out.append(byte)
            if at < self.drop + self.flip:
                out[-1] ^= 1 << chance.randrange(8)
            elif at < self.drop + self.flip + self.double:
                out.append(byte)
            elif at < self.drop + self.flip + self.double + self.delay:
                delayed += 1
        return bytes(out), delayed


class Emulator:
    """A board with a circuit: that of a configuration, or the `EmulatedTop` of a whole board.

    `path` is its pseudo-terminal, from `start` to `close`: a link, so that it is the same after `unplug` and `plug`.
    ``received`` and ``sent`` count the bytes that the circuit received and sent; ``unplugged`` and ``resets`` the
    faults of the board. ``broken``: the rule of its FT232H that the circuit has broken, since when the chip is silent.
    """

    def __init__(self, circuit: Configuration | EmulatedTop, faults: Faults | None = None):
        self._faults = faults or Faults()
        self._top = linked_top(circuit) if isinstance(circuit, Configuration) else circuit
        self._lib = model(self._top)
        self._folder = tempfile.TemporaryDirectory(prefix="splitjoin-board-")
        self.path = str(Path(self._folder.name) / "tty")
        self.received = self.sent = self.unplugged = self.resets = 0
        self.broken = ""
        self._unsent = b""  # what the terminal has not taken yet
        self._chance = random.Random(self._faults.seed)
        self._stop, self._reset = threads.event(), threads.event()
        self._lock = threads.lock()  # held while the terminal is used, opened or closed
        self._master = self._slave = -1
        self._thread = threads.thread(self._run, name="splitjoin emulator")
        self.plug()

    def start(self) -> Emulator:
        """Begin to answer."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End. The terminal's users get an error."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self.unplug()
        self._folder.cleanup()

    def unplug(self) -> None:
        """Close the terminal at once, as pulling the plug of a board does that has its own power."""
        with self._lock:
            if self._master >= 0:
                os.unlink(self.path)
                os.close(self._master)
                os.close(self._slave)
                self._master = self._slave = -1
                self._unsent = b""

    def plug(self) -> None:
        """Offer the terminal again, at the same path."""
        with self._lock:
            if self._master < 0:
                self._master, self._slave = os.openpty()
                tty.setraw(self._slave)
                os.set_blocking(self._master, False)  # while the host writes it may not read
                os.symlink(os.ttyname(self._slave), self.path)

    def reset(self) -> None:
        """The board loses its state, as when its power fails."""
        self._reset.set()

    def __enter__(self) -> Emulator:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        lib, cycles = self._lib, round(10 * self._top.bit)  # cycles of a byte
        opened = self._top.clkout or self._top.bit
        board = ctypes.c_void_p(lib.em_open(opened))
        received = ctypes.create_string_buffer(_ROOM)
        quiet = 0
        until_unplug, until_reset = self._next(self._faults.unplug), self._next(self._faults.reset)
        try:
            while not self._stop.is_set():
                data = self._read(0.05 if quiet >= _QUIET else 0)
                got = lib.em_run(board, data, len(data), received, _ROOM, cycles * max(_BYTES, len(data)))
                self.received += len(data)
                self.sent += got
                quiet = 0 if data or got else quiet + 1
                self._write(self._damaged(received.raw[:got]))
                self.broken = (lib.em_broken(board) or b"").decode()
                if self._reset.is_set() or self.received + self.sent > until_reset:
                    self._reset.clear()
                    self.resets += 1
                    until_reset = self.received + self.sent + self._next(self._faults.reset)
                    lib.em_close(board)
                    board = ctypes.c_void_p(lib.em_open(opened))
                if self.received + self.sent > until_unplug:
                    self.unplugged += 1
                    until_unplug = self.received + self.sent + self._next(self._faults.unplug)
                    self.unplug()
                    self._stop.wait(_OUT)
                    self.plug()
        finally:
            lib.em_close(board)

    def _read(self, seconds: float) -> bytes:
        """Bytes from the host, with faults."""
        with self._lock:
            master = self._master
            if master >= 0 and select.select([master], [], [], seconds)[0]:
                with contextlib.suppress(OSError):  # nobody has the terminal open
                    return self._damaged(os.read(master, 1024))
        if master < 0:
            self._stop.wait(seconds)
        return b""

    def _write(self, data: bytes) -> None:
        """Send ``data`` to the host, as far as it reads; it is lost while the plug is out."""
        with self._lock:
            if self._master >= 0 and (data or self._unsent):
                self._unsent += data
                with contextlib.suppress(OSError):
                    self._unsent = self._unsent[os.write(self._master, self._unsent):]

    def _damaged(self, data: bytes) -> bytes:
        out, delayed = self._faults.applied(data, self._chance)
        if delayed:
            self._stop.wait(delayed * _DELAY)
        return out

    def _next(self, mean: int) -> Any:
        """Bytes until the next fault of the board that comes every ``mean`` bytes."""
        return self._chance.expovariate(1 / mean) if mean else float("inf")
