"""The device ``uart:PORT``: a circuit on a board behind a serial port, or the FIFO of an FT232H."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import serial

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.driver import CircuitDevice, Transport
from splitjoin.circuit.wire import Configuration

from .designed import DesignedDevice
from .ft232h import BYTE_SECONDS, SCHEME, Ft232hChannel
from .sidecar import Sidecar
from .transport import ChannelLost, LinkTransport

#: Bits of a byte on the line.
_BITS = 10


class SerialChannel:
    """The serial port ``port`` at ``baud``, locked against other processes; `DeviceError` if it cannot be opened."""

    def __init__(self, port: str, baud: int):
        try:
            self._serial: Any = serial.Serial(port, baud, timeout=0, write_timeout=2, exclusive=True)
            self._serial.reset_input_buffer()
            # An FTDI chip holds back short answers for 16 ms, unless asked not to. Other ports refuse to be asked.
            with suppress(OSError, ValueError, NotImplementedError, AttributeError):
                self._serial.set_low_latency_mode(True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise DeviceError(f"the serial port {port} must exist, allow {baud} baud, and be in use by no other "
                              f"process, but: {error}") from error
        self._port = port

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from error

    def read(self, seconds: float) -> bytes:
        try:
            self._serial.timeout = seconds
            return bytes(self._serial.read(1) + self._serial.read(self._serial.in_waiting))
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from error

    def close(self) -> None:
        self._serial.close()

    def _gone(self, error: Exception) -> ChannelLost:
        return ChannelLost(f"the serial port {self._port} must stay connected, but failed: {error}")


@dataclass(frozen=True, kw_only=True)
class UartDevice(DesignedDevice):
    """A circuit behind a serial port, or an FT232H. Parameters as of `CircuitDevice`, and:

    Attributes:
        target: The serial port, such as ``/dev/ttyUSB0``, or the chip's URL, such as ``ftdi://ftdi:232h/1``.
        baud: The port's rate in Hz; ignored by pseudo-terminals, and the chip.
        design: The sidecar of the built circuit, or None. Its parameters (except ``fold``) and baud rate replace those
            of the device, and it lists the aggregates that the circuit folds. Without it, a query with aggregates, or
            of kind semi, anti or as-of, needs the circuit that `splitjoin build` makes for it, unless ``fold`` is
            ``never``.
        timeout: Seconds within which the board must give a valid reply.
        reconnect: Seconds within which an unplugged board must be plugged in again for its session to go on.
    """

    name: ClassVar[str] = "uart"

    target: str
    baud: int = 3_000_000
    design: str | None = None
    timeout: float = 2.0
    reconnect: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.target, str) or not self.target:
            raise DeviceError(f"the device 'uart' needs a serial port, as in 'uart:/dev/ttyUSB0', not {self.target!r}")
        if type(self.baud) is not int or self.baud < 1:
            raise DeviceError(f"baud must be a rate in Hz from 1, not {self.baud!r}")
        for name, value, least in (("timeout", self.timeout, 0.1), ("reconnect", self.reconnect, 0)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
                raise DeviceError(f"{name} must be a number of seconds from {least}, not {value!r}")

    @property
    def _sidecar(self) -> str | None:
        return self.design

    def _built(self, design: Sidecar) -> CircuitDevice:
        return replace(self, design=None, baud=design.baud, **{**design.parameters, "fold": self.fold})

    def _connect(self, config: Configuration) -> Transport:
        if self.target.startswith(SCHEME):
            return LinkTransport(lambda: Ft232hChannel(self.target), config, answer_within=self.timeout,
                                 reconnect_within=self.reconnect, byte_seconds=BYTE_SECONDS)
        return LinkTransport(lambda: SerialChannel(self.target, self.baud), config, answer_within=self.timeout,
                             reconnect_within=self.reconnect, byte_seconds=_BITS / self.baud)
