"""The host's side of an FT232H in its synchronous FIFO mode: its bytes by USB, as a serial port's."""

from __future__ import annotations

from typing import Any

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError, ToolError

from .transport import ChannelLost

#: What the URLs begin with by which pyftdi names chips, such as ``ftdi://ftdi:232h/1``.
SCHEME = "ftdi://"
#: Endpoints of the chip's only interface (DS_FT232H, section 4), bytes that a transfer reads at most, and of a packet,
#: which begins with two of the chip's status.
_OUT, _IN = 0x02, 0x81
_MOST, _PACKET, _STATUS = 16384, 512, 2
#: Milliseconds after which the chip answers a read without data (its latency timer), and that a transfer may take.
_LATENCY, _PATIENCE = 1, 2000
#: The time of a byte on the link, in seconds: of a reply, of a circuit at 25 MHz.
BYTE_SECONDS = 3 / 25e6


class Ft232hChannel:
    """The chip at ``url``, as pyftdi names it, for this process alone. Its EEPROM must be set to FT245 FIFO.

    Data goes by pyusb's transfers, as pyftdi's own reading waits for a packet without data, a millisecond each time.
    Raises `ToolError` without pyftdi, and `DeviceError` if the chip cannot be opened.
    """

    def __init__(self, url: str):
        try:
            from pyftdi.ftdi import Ftdi
            from pyftdi.usbtools import UsbToolsError
        except ModuleNotFoundError as error:
            raise ToolError(f"an FT232H needs the Python package {error.name!r}, which is not installed; "
                            f"pip install 'splitjoin[ft232h]'") from error
        self._url, self._ftdi = url, Ftdi()
        try:
            self._ftdi.open_from_url(url)
            if self._ftdi.ic_name != "ft232h":
                raise ValueError(f"the chip is {self._ftdi.ic_name}, which has no such FIFO")
            # FTDI, AN_130 "FT2232H Used in an FT245 Style Synchronous FIFO Mode": out of the mode before, and then in.
            self._ftdi.set_bitmode(0xFF, Ftdi.BitMode.RESET)
            self._ftdi.set_bitmode(0xFF, Ftdi.BitMode.SYNCFF)
            self._ftdi.set_latency_timer(_LATENCY)
            self._ftdi.set_flowctrl("hw")
            self._ftdi.purge_buffers()
            self._usb: Any = self._ftdi.usb_dev
        except (OSError, ValueError, UsbToolsError, SystemExit) as error:  # SystemExit: the URL asks for a list
            self._ftdi.close()
            raise DeviceError(f"the FT232H {url} must be connected, named as pyftdi's `ftdi_urls.py` prints it, and "
                              f"used by no other process, and libusb must be installed, but: {error}") from error

    def write(self, data: bytes) -> None:
        try:
            at = 0
            while at < len(data):
                at += self._usb.write(_OUT, data[at:], _PATIENCE)
        except OSError as error:
            raise self._gone(error) from error

    def read(self, seconds: float) -> bytes:
        until = threads.monotonic() + seconds
        try:
            while True:
                raw = bytes(self._usb.read(_IN, _MOST, _PATIENCE))
                data = b"".join(raw[at + _STATUS:at + _PACKET] for at in range(0, len(raw), _PACKET))
                if data or threads.monotonic() >= until:
                    return data
        except OSError as error:
            raise self._gone(error) from error

    def close(self) -> None:
        self._ftdi.close()

    def _gone(self, error: Exception) -> ChannelLost:
        return ChannelLost(f"the FT232H {self._url} must stay connected, but failed: {error}")
