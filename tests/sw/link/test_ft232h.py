"""The host's side of an FT232H: the driver's requests over a stand-in for pyftdi, and what can be missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from splitjoin.base.errors import DeviceError, ToolError
from splitjoin.engines.registry import device
from splitjoin.link.ft232h import Ft232hChannel
from splitjoin.link.transport import LinkTransport

from ...support.link_model import ModelDevice
from ...support.linked import small_join
from ...support.usb_chips import plug

URL = "ftdi://ftdi:232h/1"
OPTIONS = {"cores": 1, "capacity": 16}
CONFIG = device("uart:none", **OPTIONS).configuration(small_join(1, 0)[0])
RECORD = -(-CONFIG.input_record.width // 8)


class Circuit(ModelDevice):
    """The model of a circuit, as what is at the chip's pins. ``lost``: a byte of each so many to it is lost."""

    lost = 0

    def __init__(self) -> None:
        super().__init__(RECORD, CONFIG.abi_hash)
        self.bytes = 0

    def feed(self, received: bytes) -> None:
        for byte in received:
            self.bytes += 1
            if not self.lost or self.bytes % self.lost:
                super().feed(bytes((byte,)))

    def take(self) -> bytes:
        return b"".join(iter(self.reply, b""))


def records(n: int) -> np.ndarray:
    sent = np.zeros((n, CONFIG.input_record.words), np.uint32)
    sent[:, 0] = np.arange(n) << 2
    sent[-1] = 2  # the end
    return sent


@pytest.mark.parametrize("lost", [0, 997])
def test_records_go_over_the_chip_and_items_come_back(lost, monkeypatch):
    """In transfers of many packets, with frames that are sent again where a byte is lost."""
    circuit = Circuit()
    circuit.lost = lost
    plug(monkeypatch, circuit)
    transport = LinkTransport(lambda: Ft232hChannel(URL), CONFIG)
    assert len(transport.transfer(records(2000), until_end=True)) == 2000
    assert (transport.retransmissions > 0) == (lost > 0)
    transport.close()
    assert sys.modules["pyftdi.ftdi"].Ftdi.calls == [
        ("open", URL), ("RESET", 0xFF), ("SYNCFF", 0xFF), ("latency", 1), ("flow", "hw"), ("purge",), ("close",)]


def test_a_session_goes_on_when_the_chip_is_plugged_in_again(monkeypatch):
    chip = plug(monkeypatch, Circuit())
    transport = LinkTransport(lambda: Ft232hChannel(URL), CONFIG,
                              sleep=lambda seconds: setattr(chip, "plugged", True))
    chip.plugged = False
    assert len(transport.transfer(records(50), until_end=True)) == 50
    assert transport.reconnections == 1


@pytest.mark.parametrize(("url", "words"), [
    ("ftdi://ftdi:4232h/1", "named as pyftdi.s `ftdi_urls.py` prints it.*No USB device matches URL ftdi://ftdi:4232h"),
    ("ftdi:///?", "must be connected.*Please specify the USB device"),
])
def test_a_chip_that_is_not_there(url, words, monkeypatch):
    plug(monkeypatch, Circuit())
    with pytest.raises(DeviceError, match=words):
        device(f"uart:{url}", **OPTIONS).open(small_join(1, 0)[0])


def test_another_chip_and_a_system_without_libusb(monkeypatch):
    chip = plug(monkeypatch, Circuit())
    monkeypatch.setattr(sys.modules["pyftdi.ftdi"].Ftdi, "ic_name", "ft2232h")
    with pytest.raises(DeviceError, match="the chip is ft2232h, which has no such FIFO"):
        Ft232hChannel(URL)
    chip.plugged = False
    with pytest.raises(DeviceError, match="libusb must be installed, but: No backend available"):
        Ft232hChannel(URL)


def test_without_pyftdi(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyftdi", None)
    with pytest.raises(ToolError, match=r"needs the Python package 'pyftdi.*pip install 'splitjoin\[ft232h\]'"):
        device(f"uart:{URL}", **OPTIONS).open(small_join(1, 0)[0])
