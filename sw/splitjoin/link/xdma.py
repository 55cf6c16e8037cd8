"""The device ``xdma:NODE``: a circuit with AXI ports behind the character devices of a DMA driver."""

from __future__ import annotations

import errno
import os
import queue
import select
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import ClassVar

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError
from splitjoin.circuit.driver import CircuitDevice, DeviceStalled, Transport
from splitjoin.circuit.encode import Words
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.device import Items

from .mapped import PAGE, AxiTransport, MappedRegisters, opened_node

#: Bytes of a write to the circuit, and most writes that wait.
_BLOCK, _WAITING = 1 << 18, 4
#: The most packets of items that wait until a transfer takes them.
_UNTAKEN = 1 << 14
#: Seconds after which an idle thread looks whether the session has been closed.
_PATIENCE = 0.1
#: Errors of a read that only say that nothing has come yet; 512 is the kernel's ERESTARTSYS, which XDMA lets through.
_QUIET = {errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT, 512}


class CharacterDevices:
    """The three nodes of a circuit: records are written to ``h2c``, items are read from ``c2h``, and registers are in
    the first page of ``user``, from byte ``offset`` on, a multiple of 4096.

    The nodes are those of the drivers of Xilinx' XDMA (``/dev/xdma0_h2c_0``, ``…_c2h_0``, ``…_user``), or any that
    behave alike: a read gives the bytes up to the end of a packet at most, and registers can be mapped. ``user`` is
    locked against other processes. Raises `DeviceError` if a node cannot be opened.
    """

    def __init__(self, h2c: str, c2h: str, user: str, offset: int = 0):
        try:
            with ExitStack() as opened:
                self.registers = opened.enter_context(closing(MappedRegisters(user, offset)))
                self.h2c, self.c2h = (opened_node(opened, path, flags) for path, flags in (
                    (h2c, os.O_WRONLY), (c2h, os.O_RDONLY)))
                self._opened = opened.pop_all()
        except (OSError, ValueError) as error:
            raise DeviceError(f"the nodes {h2c}, {c2h} and {user} must exist, allow reading, writing and mapping, and "
                              f"be in use by no other process, but: {error}") from error

    def close(self) -> None:
        """Release the nodes. Not to be used by any thread any more."""
        self._opened.close()


class XdmaTransport(AxiTransport):
    """A freshly reset circuit of ``config`` behind ``nodes``.

    A thread writes records and a thread reads items, as either may block until the other has gone on.

    Attributes:
        answer_within: Seconds within which the circuit must have been reset.
        stalled_after: Seconds in which neither a record nor an item moves, after which `DeviceStalled` is raised.
        quiet: Seconds without an item, after the reset, from which on no more items of an earlier session are expected.
    """

    def __init__(self, nodes: CharacterDevices, config: Configuration, *, answer_within: float = 2.0,
                 stalled_after: float = 60.0, quiet: float = 0.05):
        super().__init__(nodes.registers, config)
        self._nodes, self._stalled_after = nodes, stalled_after
        # Bounded, so that a circuit that sends without being asked waits, as its DMA engine does.
        self._received: queue.Queue[bytes | OSError | None] = threads.bounded_queue(_UNTAKEN)
        self._to_write: queue.Queue[bytes] = threads.bounded_queue(_WAITING)
        self._written = 0  # bytes
        self._write_error: OSError | None = None
        self._closing = False
        self._rest = b""
        self._reader = threads.thread(self._read_items, name="splitjoin-c2h")
        self._writer = threads.thread(self._write_records, name="splitjoin-h2c")
        try:
            self._reset_join(answer_within)
            self._reader.start()
            self._writer.start()
            stale = 0
            while got := self._take(quiet):
                stale += len(got)
                self._check_stale(stale)
            self._rest = b""
        except BaseException:
            self.close()
            raise

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        n, beat = len(records), self._shape.record_bytes
        raw = self._beats(records)
        per_write = max(1, _BLOCK // beat) * beat
        blocks = [raw[at:at + per_write] for at in range(0, len(raw), per_write)]
        until, ended = self._written + len(raw), False
        out, moved, seen = bytearray(), threads.monotonic(), self._written
        self._bound.records += n
        while blocks or self._written < until or (until_end and not ended):
            while blocks and not self._to_write.full():
                self._to_write.put(blocks.pop(0))
            # With nothing to wait for but the writer, look often.
            got = self._take(0.001 if self._written < until else 0.1)
            out += got
            self._check_bound(len(out))
            ended = ended or self._has_end(got)
            if self._write_error is not None:
                raise self._gone(self._write_error)
            if got or self._written != seen:
                moved, seen = threads.monotonic(), self._written
            elif threads.monotonic() - moved > self._stalled_after:
                raise DeviceStalled(f"the circuit neither took a record nor gave a result for "
                                    f"{self._stalled_after:g} s ({n - (until - self._written) // beat} of {n} records "
                                    f"sent)")
        while got := self._take(0):
            out += got
            self._check_bound(len(out))
        return self._items(out)

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        threads = [thread for thread in (self._reader, self._writer) if thread.is_alive()]
        for thread in threads:
            thread.join(3 * _PATIENCE)
        # A thread that is stuck in the kernel's driver keeps the nodes, and their lock, to the end of the process: it
        # would take items of another session.
        if not any(thread.is_alive() for thread in threads):
            self._nodes.close()

    def _take(self, seconds: float) -> bytes:
        """The bytes of whole items that have come, or come within ``seconds``."""
        try:
            got = self._received.get(timeout=seconds) if seconds else self._received.get_nowait()
        except queue.Empty:
            return b""
        if isinstance(got, OSError):
            self._received.put(got)
            raise self._gone(got)
        if got is None:
            raise DeviceError("the circuit's node for items ended; the driver must stay loaded, and the card in place")
        got = self._rest + got
        whole = len(got) - len(got) % self._shape.item_bytes
        self._rest = got[whole:]
        return got[:whole]

    def _gone(self, error: OSError) -> DeviceError:
        return DeviceError(f"the circuit's nodes must stay usable, but: {error}; open a new session when they are")

    def _read_items(self) -> None:
        while not self._closing:
            if not select.select([self._nodes.c2h], [], [], _PATIENCE)[0]:
                continue
            try:
                got = os.read(self._nodes.c2h, self._shape.packet_beats * self._shape.item_bytes)
            except OSError as error:
                if error.errno in _QUIET:
                    continue
                self._give(error)
                return
            if not self._give(got or None) or not got:
                return

    def _give(self, found: bytes | OSError | None) -> bool:
        """Queue what was read; False if the session was closed before there was room."""
        while not self._closing:
            try:
                self._received.put(found, timeout=_PATIENCE)
                return True
            except queue.Full:
                continue
        return False

    def _write_records(self) -> None:
        while not self._closing:
            try:
                left = memoryview(self._to_write.get(timeout=_PATIENCE))
            except queue.Empty:
                continue
            while left and not self._closing:
                try:
                    n = os.write(self._nodes.h2c, left)
                except OSError as error:
                    if error.errno in _QUIET:
                        continue
                    self._write_error = error
                    return
                self._written += n
                left = left[n:]


@dataclass(frozen=True, kw_only=True)
class XdmaDevice(CircuitDevice):
    """A circuit that `splitjoin verilog --top axi` wrote, behind DMA. Parameters as of `CircuitDevice`, and:

    Attributes:
        target: The name that the nodes share, such as ``/dev/xdma0``.
        h2c, c2h, user: The nodes by name, where they are not TARGET_h2c_0, TARGET_c2h_0 and TARGET_user.
        offset: Byte address of the registers in ``user``, a multiple of 4096.
        stalled_after: Seconds without any transfer after which the circuit counts as stuck.
    """

    name: ClassVar[str] = "xdma"

    target: str
    h2c: str | None = None
    c2h: str | None = None
    user: str | None = None
    offset: int = 0
    stalled_after: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.target, str) or not self.target:
            raise DeviceError(f"the device 'xdma' needs the nodes' name, as in 'xdma:/dev/xdma0', not {self.target!r}")
        if type(self.offset) is not int or self.offset < 0 or self.offset % PAGE:
            raise DeviceError(f"offset must be a byte address that is a multiple of {PAGE}, not {self.offset!r}")
        if not self.stalled_after > 0:
            raise DeviceError(f"stalled_after must be a number of seconds above 0, not {self.stalled_after!r}")

    def _connect(self, config: Configuration) -> Transport:
        h2c, c2h, user = (given or f"{self.target}_{end}" for given, end in (
            (self.h2c, "h2c_0"), (self.c2h, "c2h_0"), (self.user, "user")))
        return XdmaTransport(CharacterDevices(h2c, c2h, user, self.offset), config, stalled_after=self.stalled_after)
