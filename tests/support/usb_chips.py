"""A stand-in for pyftdi with one FT232H, whose bytes another object takes and gives: what its driver uses of both."""

from __future__ import annotations

import sys
from enum import IntEnum
from types import ModuleType
from typing import Any, ClassVar, Protocol

import pytest


class Behind(Protocol):
    """A circuit at the chip's pins: it takes bytes, and gives those that it has ready."""

    def feed(self, received: bytes) -> None: ...

    def take(self) -> bytes: ...


class UsbToolsError(Exception):
    """The error of pyftdi for a URL that names no chip, which is no `OSError`."""


class UsbDevice:
    """The transfers of pyusb: at most ``most`` bytes a write; packets of 512 bytes, of which two are the chip's."""

    def __init__(self, behind: Behind, most: int = 1000):
        self._behind, self._most = behind, most
        self._given = b""
        self.plugged = True

    def _check(self) -> None:
        if not self.plugged:
            raise OSError(19, "No such device (it may have been disconnected)")

    def write(self, endpoint: int, data: bytes, timeout: int) -> int:
        self._check()
        assert endpoint == 0x02 and timeout > 0
        self._behind.feed(data[:self._most])
        return min(len(data), self._most)

    def read(self, endpoint: int, size: int, timeout: int) -> bytearray:
        """Ends with the first packet that is not full, as transfers of USB do."""
        self._check()
        assert endpoint == 0x81 and size % 512 == 0 and timeout > 0
        self._given += self._behind.take()
        came = bytearray()
        for _ in range(size // 512):
            part, self._given = self._given[:510], self._given[510:]
            came += b"\x01\x60" + part
            if len(part) < 510:
                break
        return came


class Ftdi:
    """The driver of one chip. ``calls``: the settings of all objects of the class, in their order."""

    calls: ClassVar[list[tuple[Any, ...]]] = []
    device: ClassVar[UsbDevice]
    ic_name = "ft232h"

    class BitMode(IntEnum):
        RESET = 0x00
        SYNCFF = 0x40

    def open_from_url(self, url: str) -> None:
        if url == "ftdi:///?":
            raise SystemExit("Please specify the USB device")
        if url != "ftdi://ftdi:232h/1":
            raise UsbToolsError(f"No USB device matches URL {url}")
        if not self.device.plugged:
            raise ValueError("No backend available")
        self.usb_dev = self.device
        self.calls.append(("open", url))

    def close(self) -> None:
        self.calls.append(("close",))

    def set_bitmode(self, bitmask: int, mode: BitMode) -> None:
        self.calls.append((mode.name, bitmask))

    def set_latency_timer(self, latency: int) -> None:
        self.calls.append(("latency", latency))

    def set_flowctrl(self, flowctrl: str) -> None:
        self.calls.append(("flow", flowctrl))

    def purge_buffers(self) -> None:
        self.calls.append(("purge",))


def plug(monkeypatch: pytest.MonkeyPatch, behind: Behind) -> UsbDevice:
    """Give pyftdi its stand-in, with a chip before ``behind``."""
    modules = {name: ModuleType(name) for name in ("pyftdi", "pyftdi.ftdi", "pyftdi.usbtools")}
    device = UsbDevice(behind)
    vars(modules["pyftdi.ftdi"])["Ftdi"] = type("Ftdi", (Ftdi,), {"calls": [], "device": device})
    vars(modules["pyftdi.usbtools"])["UsbToolsError"] = UsbToolsError
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return device
