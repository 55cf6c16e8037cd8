"""Registers and records over the link: the transport of the devices ``uart`` and ``emulator``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

import numpy as np

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError, DeviceLost, plural
from splitjoin.circuit.driver import DeviceStalled, Transport, other_circuit_remedy
from splitjoin.circuit.encode import Words
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.device import Items

from .endpoint import HostEndpoint
from .frames import PACKED_VERSION, RequestKind
from .items import ItemBound, ItemReader, PackedItems, PlainItems

#: Longest wait for a byte, and between two attempts to connect again, in seconds.
_READ, _ATTEMPT = 0.05, 0.1
#: Most seconds of silence after which the driver asks the device for its session.
_SILENCE = 0.5


class ChannelLost(DeviceError):
    """A channel is gone, for example as its plug was pulled."""


class ByteChannel(Protocol):
    """A serial port, or what behaves like one."""

    def write(self, data: bytes) -> None:
        """Send ``data``. Raises `ChannelLost` if the channel is gone."""

    def read(self, seconds: float) -> bytes:
        """Bytes that are there, or come within ``seconds``. Raises `ChannelLost` if the channel is gone."""

    def close(self) -> None:
        """Release the channel."""


class LinkTransport(Transport):
    """A freshly reset circuit of ``config`` behind the channel that ``connect`` opens.

    When the channel is lost, ``connect`` is called until it opens the channel again. The session then goes on: requests
    without acknowledgement are repeated, and missing replies are asked for. `DeviceLost` if the device has no longer
    the session, `DeviceError` if the channel stays lost.

    Attributes:
        answer_within: Seconds after which a device that sends no valid reply counts as hanging: `DeviceError`.
        reconnect_within: Seconds within which a lost channel must come back; 0 does not wait for it.
        stalled_after: Seconds in which neither a record nor an item moves, although the device replies, after which
            `DeviceStalled` is raised.
        byte_seconds: The time of a byte on the line.
        clock, sleep: The clock of these times, in seconds, and a wait on it; a simulated channel has its own.
        session: The number of the session, as of `HostEndpoint`; None draws one. Simulations that are to be repeated
            choose it.
        reconnections: How often a lost channel came back.
    """

    def __init__(self, connect: Callable[[], ByteChannel], config: Configuration, *, answer_within: float = 2.0,
                 reconnect_within: float = 10.0, stalled_after: float = 60.0, byte_seconds: float = 0.0,
                 clock: Callable[[], float] = threads.monotonic, sleep: Callable[[float], None] = threads.sleep,
                 session: int | None = None):
        self._connect, self._clock, self._sleep = connect, clock, sleep
        self._answer_within, self._reconnect_within = answer_within, reconnect_within
        self._stalled_after = stalled_after
        self._record_bytes = -(-config.input_record.width // 8)
        self.received_bytes = self.sent_bytes = self.reconnections = 0
        self._session = session or int.from_bytes(os.urandom(4), "little") or 1
        self._endpoint = HostEndpoint(self._session, byte_seconds)
        self._bound = ItemBound(config)
        self._items: ItemReader = PlainItems(config)
        self._channel = connect()
        try:
            self._endpoint.open()
            self._begin()
            while self._endpoint.about is None:
                self._step()
            about = self._endpoint.about
            if about.abi != config.abi_hash or about.record_bytes != self._record_bytes:
                raise DeviceError(
                    f"the device holds another circuit: the query needs ABI {config.abi_hash:016x} and records of "
                    f"{self._record_bytes} bytes, the device has ABI {about.abi:016x} and {about.record_bytes} bytes; "
                    f"{other_circuit_remedy(config)}")
            if about.version == PACKED_VERSION:
                self._items = PackedItems(config.item_record, whole_stars=bool(config.folds))
        except BaseException:
            self.close()
            raise

    @property
    def retransmissions(self) -> int:
        """Requests that were sent more than once, and replies that were asked for again."""
        return self._endpoint.retransmissions

    @property
    def rejected(self) -> int:
        """Damaged frames that the host received."""
        return self._endpoint.rejected

    def counters(self) -> dict[str, int]:
        return {"retransmissions": self.retransmissions, "damaged_replies": self.rejected,
                "reconnections": self.reconnections, "bytes_sent": self.sent_bytes,
                "bytes_received": self.received_bytes}

    def read(self, address: int) -> int:
        self._endpoint.submit(RequestKind.READ, bytes((address,)))
        self._answered(lambda: bool(self._endpoint.words))
        return self._endpoint.words.popleft()

    def write(self, address: int, word: int) -> None:
        self._endpoint.submit(RequestKind.WRITE, bytes((address,)) + word.to_bytes(4, "little"))
        self._answered(lambda: self._endpoint.idle)

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        raw = np.ascontiguousarray(records, "<u4").view(np.uint8)[:, :self._record_bytes]
        endpoint, at = self._endpoint, 0
        self._begin()
        moved, state = self._clock(), (-1, -1, -1)
        while True:
            while at < len(raw) and (n := min(len(raw) - at, endpoint.room(self._record_bytes))):
                endpoint.submit(RequestKind.DATA, raw[at:at + n].tobytes())
                at += n
                self._bound.records += n
            self._items.feed(bytes(endpoint.items))
            endpoint.items.clear()
            if at == len(raw) and endpoint.idle and (self._items.ended or not until_end):
                return self._items.take()
            if state != (state := (at, endpoint.in_flight, self._items.received)):
                moved = self._clock()
            elif self._clock() - moved > self._stalled_after:
                raise DeviceStalled(f"the device replies, but neither took a record nor gave a result for "
                                    f"{self._stalled_after:g} s ({at} of {len(raw)} records sent)")
            self._step()

    def received(self) -> Items:
        self._items.feed(bytes(self._endpoint.items))
        self._endpoint.items.clear()
        return self._items.take()

    def close(self) -> None:
        self._channel.close()

    def _answered(self, done: Callable[[], bool]) -> None:
        """Wait until ``done``. Raises `DeviceStalled` for a device that sends other replies for ever."""
        self._begin()
        while not done():
            self._step()
            if self._clock() - self._since > self._stalled_after:
                raise DeviceStalled(f"the device replies, but did not take or answer a request for a register within "
                                    f"{self._stalled_after:g} s")

    def _begin(self) -> None:
        """A wait for the device begins."""
        self._since, self._bad_bytes, self._asked = self._clock(), 0, False

    def _step(self) -> None:
        """Send what is due, and take what comes until something else is due."""
        try:
            out = self._endpoint.output(self._clock())
            if out:
                self._channel.write(out)
                self.sent_bytes += len(out)
            now = self._clock()
            got = self._channel.read(min(_READ, self._endpoint.deadline(now) - now))
        except ChannelLost as error:
            self._plug_in(error)
            return
        self.received_bytes += len(got)
        now = self._clock()
        self._endpoint.feed(got, now)
        self._bound.check((self._items.received + len(self._endpoint.items)) // self._items.largest)
        self._bad_bytes = 0 if self._endpoint.heard == now else self._bad_bytes + len(got)
        about = self._endpoint.about
        if about is not None and about.session != self._session:
            raise DeviceLost("the device must keep its session, but has lost it, as after a reset or a loss of power; "
                             "check its power and its cable, and start again")
        silent = now - max(self._endpoint.heard, self._since)
        if silent > self._answer_within:
            bad = self._bad_bytes
            what = f"sent {bad} {plural(bad, 'byte')} without a valid reply" if bad else "sent nothing"
            raise DeviceError(f"the device must reply within {self._answer_within:g} s, but {what}; check that it is "
                              f"powered, runs a splitjoin circuit, and that the baud rates are equal")
        if silent <= min(_SILENCE, self._answer_within / 2):
            self._asked = False
        elif about is not None and not self._asked:
            self._asked = True
            self._endpoint.resume()  # a device that was reset has no session, and answers nothing else

    def _plug_in(self, error: ChannelLost) -> None:
        """Connect again."""
        self._channel.close()
        until = self._clock() + self._reconnect_within
        while True:
            if self._clock() >= until:
                raise DeviceError(f"{error}; it did not come back within {self._reconnect_within:g} s; plug the board "
                                  f"in again and open a new session") from error
            self._sleep(_ATTEMPT)
            try:
                self._channel = self._connect()
                break
            except DeviceError:
                continue
        self.reconnections += 1
        self._endpoint.resume()
        self._begin()
