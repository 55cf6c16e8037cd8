"""The device ``zynq:BUFFER``: a circuit with AXI ports behind the AXI DMA of a Zynq, without a driver of its own.

Registers of the DMA engine are those of Xilinx' AXI DMA in direct register mode (product guide PG021). The host reaches
them, and the circuit's, by nodes of UIO, and the memory by a node of u-dma-buf.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.driver import CircuitDevice, DeviceStalled, Transport
from splitjoin.circuit.encode import Words
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.device import Items

from .mapped import PAGE, AxiTransport, MappedRegisters, opened_node

#: Word addresses of the two channels of the DMA engine: memory to stream, and stream to memory.
_SEND, _RECEIVE = 0x00 // 4, 0x30 // 4
#: Words of a channel: control, status, address and its high half, length.
_CONTROL, _STATUS, _ADDRESS, _ADDRESS_HIGH, _LENGTH = 0, 1, 6, 7, 10
#: Bits of control and status.
_RUN, _RESET = 1 << 0, 1 << 2
_HALTED, _IDLE, _HAS_SCATTER_GATHER = 1 << 0, 1 << 1, 1 << 3
_ERRORS = {1 << 4: "an internal error, as of a packet that is too long", 1 << 5: "an error response of memory",
           1 << 6: "an address that nothing answers"}
#: Directions of u-dma-buf.
_TO_DEVICE, _FROM_DEVICE = 1, 2
#: Seconds between two looks at an engine that has nothing new.
_POLL = 50e-6
#: Looks without an item that the quiet time after a reset has at least: a host that is paused in it looks too seldom.
_QUIET_LOOKS = 8


class ZynqNodes:
    """The nodes of a circuit on a Zynq: ``buffer`` of u-dma-buf, ``dma`` and ``user`` of UIO.

    All are locked against other processes. ``attributes``: the buffer's folder in sysfs. Raises `DeviceError` if a
    node cannot be used.

    Attributes:
        dma: The registers of the DMA engine.
        user: The registers of the circuit.
        memory: The buffer; the host's view of it is right only between the calls of `give` and `take`.
        address: The physical address of the buffer.
    """

    def __init__(self, buffer: str, attributes: Path, dma: str, user: str):
        try:
            with ExitStack() as opened:
                self.user = opened.enter_context(closing(MappedRegisters(user)))
                self.dma = opened.enter_context(closing(MappedRegisters(dma)))
                node = opened_node(opened, buffer, os.O_RDWR)
                fcntl.flock(node, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.address = int((attributes / "phys_addr").read_text(), 16)
                self.memory = opened.enter_context(closing(mmap.mmap(node, int((attributes / "size").read_text()))))
                self._for_device, self._for_host = (opened_node(opened, str(attributes / name), os.O_WRONLY)
                                                    for name in ("sync_for_device", "sync_for_cpu"))
                self._opened = opened.pop_all()
        except (OSError, ValueError) as error:
            raise DeviceError(f"the nodes {buffer} (of u-dma-buf, with {attributes}), {dma} and {user} (of UIO) must "
                              f"exist, allow reading, writing and mapping, and be in use by no other process, but: "
                              f"{error}") from error

    def give(self, at: int, size: int, direction: int) -> None:
        """Hand bytes of the buffer to the DMA engine: caches are flushed, and writes to the buffer come first."""
        self._sync(self._for_device, at, size, direction)

    def take(self, at: int, size: int, direction: int) -> None:
        """Take bytes of the buffer back from the DMA engine."""
        self._sync(self._for_host, at, size, direction)

    def close(self) -> None:
        """Release the nodes."""
        self._opened.close()

    def _sync(self, file: int, at: int, size: int, direction: int) -> None:
        # u-dma-buf takes offset, size in units of 16, direction, and 1, in one number.
        number = f"0x{at:08X}{-(-size // 16) * 16 | direction << 2 | 1:08X}"
        try:
            os.pwrite(file, number.encode(), 0)
        except OSError as error:
            raise DeviceError(f"u-dma-buf must stay usable, but: {error}; open a new session when it is") from error


class ZynqTransport(AxiTransport):
    """A freshly reset circuit of ``config`` behind ``nodes``, with a freshly reset DMA engine.

    The front of the buffer holds records on their way, and its end one packet of items.

    Attributes:
        length_bits: Width of the DMA engine's length registers, which limits a transfer.
        answer_within: Seconds within which the circuit and the engine must have been reset.
        stalled_after: Seconds in which neither a record nor an item moves, after which `DeviceStalled` is raised.
        quiet: Seconds without an item, after the reset, from which on no more items of an earlier session are expected.
    """

    def __init__(self, nodes: ZynqNodes, config: Configuration, *, length_bits: int = 14, answer_within: float = 2.0,
                 stalled_after: float = 60.0, quiet: float = 0.05):
        super().__init__(nodes.user, config)
        self._nodes, self._stalled_after, self._closed = nodes, stalled_after, False
        beat, self._packet = self._shape.record_bytes, self._shape.packet_beats * self._shape.item_bytes
        space = (len(nodes.memory) - self._packet) // PAGE * PAGE  # the packet begins at a page
        self._per_transfer = min(space, (1 << length_bits) - 1) // beat * beat
        self._packet_at, self._sending = space, 0
        try:
            if self._per_transfer < beat or self._packet >= 1 << length_bits:
                raise DeviceError(f"a packet of {self._packet} bytes and a record of {beat} must fit into the buffer "
                                  f"of {len(nodes.memory)} bytes and into transfers of {(1 << length_bits) - 1}; give "
                                  f"u-dma-buf a larger buffer, or the DMA engine wider length registers (length_bits)")
            self._reset_join(answer_within)
            self._reset_engine(answer_within)
            self._prepare_packet()
            until, looks, stale = time.monotonic() + quiet, 0, 0
            while looks < _QUIET_LOOKS or time.monotonic() < until:
                looks += 1
                if got := self._packet_bytes():
                    until, looks, stale = time.monotonic() + quiet, 0, stale + len(got)
                    self._check_stale(stale)
                time.sleep(_POLL)
        except BaseException:
            self.close()
            raise

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        raw, at, ended = self._beats(records), 0, False
        out, moved = bytearray(), time.monotonic()
        self._bound.records += len(records)
        while True:
            got = self._packet_bytes()
            out += got
            self._check_bound(len(out))
            ended = ended or self._has_end(got)
            sent = self._sending and self._done(_SEND)
            if sent:
                self._sending = 0
            if not self._sending:
                if at < len(raw):
                    at += self._send(raw[at:at + self._per_transfer])
                elif ended or not until_end:
                    break
            if got or sent:
                moved = time.monotonic()
            elif time.monotonic() - moved > self._stalled_after:
                raise DeviceStalled(f"the circuit neither took records nor gave a result for {self._stalled_after:g} s "
                                    f"({(at - self._sending) // self._shape.record_bytes} of {len(records)} records "
                                    f"sent)")
            else:
                time.sleep(_POLL)
        while got := self._packet_bytes():
            out += got
            self._check_bound(len(out))
        return self._items(out)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            # The engine must not write into the buffer when it is another session's.
            self._nodes.dma.write(_RECEIVE + _CONTROL, _RESET)
            self._nodes.close()

    def _reset_engine(self, seconds: float) -> None:
        dma = self._nodes.dma
        dma.write(_SEND + _CONTROL, _RESET)  # of both channels
        until = time.monotonic() + seconds
        while (word := dma.read(_SEND + _CONTROL)) & _RESET or dma.read(_RECEIVE + _CONTROL) & _RESET:
            if time.monotonic() > until:
                raise DeviceError(f"the DMA engine must end its reset within {seconds:g} s, but its control register "
                                  f"still reads {word:08x}; is its node one of Xilinx' AXI DMA with both channels?")
            time.sleep(0.001)
        for channel in (_SEND, _RECEIVE):
            if dma.read(channel + _STATUS) & _HAS_SCATTER_GATHER:
                raise DeviceError("the DMA engine must be built without scatter gather: this driver uses its direct "
                                  "register mode")
            dma.write(channel + _CONTROL, _RUN)
            while (word := dma.read(channel + _STATUS)) & _HALTED:
                if time.monotonic() > until:
                    raise DeviceError(f"the DMA engine must start within {seconds:g} s, but its status still reads "
                                      f"{word:08x}; is its clock running?")
                time.sleep(0.001)

    def _start(self, channel: int, at: int, size: int) -> None:
        dma, address = self._nodes.dma, self._nodes.address + at
        dma.write(channel + _ADDRESS, address & 0xFFFFFFFF)
        if address >> 32:  # engines for 32 bits of address lack this register
            dma.write(channel + _ADDRESS_HIGH, address >> 32)
        dma.write(channel + _LENGTH, size)

    def _done(self, channel: int) -> bool:
        """True if the transfer of ``channel`` has ended. Raises `DeviceError` if it failed."""
        status = self._nodes.dma.read(channel + _STATUS)
        failed = [text for bit, text in _ERRORS.items() if status & bit]
        if failed or status & _HALTED:
            raise DeviceError(f"the DMA engine stopped {'sending' if channel == _SEND else 'receiving'}: it reports "
                              f"{' and '.join(failed) or 'no error'} (status {status:08x}); open a new session")
        return bool(status & _IDLE)

    def _send(self, block: bytes) -> int:
        self._nodes.memory[:len(block)] = block
        self._nodes.give(0, len(block), _TO_DEVICE)
        self._start(_SEND, 0, len(block))
        self._sending = len(block)
        return len(block)

    def _prepare_packet(self) -> None:
        """Let the engine write the next packet into the buffer."""
        self._nodes.give(self._packet_at, self._packet, _FROM_DEVICE)
        self._start(_RECEIVE, self._packet_at, self._packet)

    def _packet_bytes(self) -> bytes:
        """The bytes of the packet that has come, if any; the engine then waits for the next one."""
        if not self._done(_RECEIVE):
            return b""
        size, at = self._nodes.dma.read(_RECEIVE + _LENGTH), self._packet_at
        if not 0 < size <= self._packet or size % self._shape.item_bytes:
            raise DeviceError(f"a packet must be 1 to {self._shape.packet_beats} items of {self._shape.item_bytes} "
                              f"bytes, but the DMA engine received {size} bytes; is the circuit built for another "
                              f"configuration?")
        self._nodes.take(at, self._packet, _FROM_DEVICE)
        got = self._nodes.memory[at:at + size]
        self._prepare_packet()
        return got


@dataclass(frozen=True, kw_only=True)
class ZynqDevice(CircuitDevice):
    """A circuit that `splitjoin verilog --top axi` wrote, behind the AXI DMA of a Zynq. Parameters as of
    `CircuitDevice`, and:

    Attributes:
        target: The buffer of u-dma-buf, by its name, such as ``udmabuf0``, or by the path of its node.
        dma: The node of UIO with the registers of the DMA engine.
        user: The node of UIO with the registers of the circuit.
        sysfs: The folder in which u-dma-buf describes its buffers.
        length_bits: Width of the DMA engine's length registers: 8 to 26, as it was built.
        stalled_after: Seconds without any transfer after which the circuit counts as stuck.
    """

    name: ClassVar[str] = "zynq"

    target: str
    dma: str = "/dev/uio0"
    user: str = "/dev/uio1"
    sysfs: str = "/sys/class/u-dma-buf"
    length_bits: int = 14
    stalled_after: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.target, str) or not Path(self.target).name:
            raise DeviceError(f"the device 'zynq' needs the buffer's name, as in 'zynq:udmabuf0', not {self.target!r}")
        if type(self.length_bits) is not int or not 8 <= self.length_bits <= 26:
            raise DeviceError(f"length_bits must be from 8 to 26, not {self.length_bits!r}")
        if not self.stalled_after > 0:
            raise DeviceError(f"stalled_after must be a number of seconds above 0, not {self.stalled_after!r}")

    def _connect(self, config: Configuration) -> Transport:
        nodes = ZynqNodes(str(Path("/dev") / self.target), Path(self.sysfs) / Path(self.target).name, self.dma,
                          self.user)
        return ZynqTransport(nodes, config, length_bits=self.length_bits, stalled_after=self.stalled_after)
