#!/bin/sh
# Guess:    pyftdi's read_data(size) gives what the chip has, up to size, as reads of serial ports and sockets do.
# Seen:     once it has bytes but fewer than size, it asks the chip once more, which is silent until its latency timer is over
#           (here 16 ms, 1 at least): each read takes that long. One transfer of pyusb, usb_dev.read, has the same bytes.
# Matters:  a request and its answer take a millisecond at least, where USB's microframes are of 0.125 ms; at 2 KB in a round
#           trip that is 2 MB/s in place of 10.
# Versions: pyftdi 0.57.2, pyusb 1.3.1; a chip in Python in place of libusb's.
# Source:   pyftdi/ftdi.py, read_data_bytes: "while (len(data) < size) and (length > 0)".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyftdi==0.57.2 pyusb==1.3.1
cat > try.py <<'PYTHON'
import time
from types import SimpleNamespace

import usb.core
from pyftdi.ftdi import Ftdi
from usb.backend import IBackend

LATENCY = 0.016  # seconds after which the chip answers a read without data


class Chip(IBackend):
    """An FT232H as pyusb sees it: ``held`` waits in it; ``log`` has the bytes of each transfer to the host."""

    def __init__(self):
        self.held, self.log, self.configured, self.control = b"", [], 0, []

    def enumerate_devices(self):
        return [1]

    def get_device_descriptor(self, device):
        return SimpleNamespace(bLength=18, bDescriptorType=1, bcdUSB=0x200, bDeviceClass=0, bDeviceSubClass=0,
                               bDeviceProtocol=0, bMaxPacketSize0=64, idVendor=0x403, idProduct=0x6014,
                               bcdDevice=0x900, iManufacturer=0, iProduct=0, iSerialNumber=0, bNumConfigurations=1,
                               address=1, bus=1, port_number=1, port_numbers=(1,), speed=3)

    def get_configuration_descriptor(self, device, config):
        return SimpleNamespace(bLength=9, bDescriptorType=2, wTotalLength=32, bNumInterfaces=1, bConfigurationValue=1,
                               iConfiguration=0, bmAttributes=0x80, bMaxPower=50, extra_descriptors=[])

    def get_interface_descriptor(self, device, interface, setting, config):
        if interface or setting:
            raise IndexError
        return SimpleNamespace(bLength=9, bDescriptorType=4, bInterfaceNumber=0, bAlternateSetting=0, bNumEndpoints=2,
                               bInterfaceClass=255, bInterfaceSubClass=255, bInterfaceProtocol=255, iInterface=0,
                               extra_descriptors=[])

    def get_endpoint_descriptor(self, device, endpoint, interface, setting, config):
        return SimpleNamespace(bLength=7, bDescriptorType=5, bEndpointAddress=(0x81, 0x02)[endpoint], bmAttributes=2,
                               wMaxPacketSize=512, bInterval=0, bRefresh=0, bSynchAddress=0, extra_descriptors=[])

    def open_device(self, device):
        return 1

    def get_configuration(self, handle):
        return 1

    def set_configuration(self, handle, value):
        pass

    close_device = claim_interface = release_interface = set_interface_altsetting = lambda *_: None

    def is_kernel_driver_active(self, handle, interface):
        return False

    def ctrl_transfer(self, handle, kind, request, value, index, data, timeout):
        self.control.append((request, value, index))
        return len(data)

    def bulk_write(self, handle, endpoint, interface, data, timeout):
        self.held += bytes(data)
        return len(data)

    def bulk_read(self, handle, endpoint, interface, buffer, timeout):
        if not self.held:
            time.sleep(LATENCY)  # the chip is silent until its latency timer is over
        at = 0
        while at < len(buffer):
            part, self.held = self.held[:510], self.held[510:]
            for n, byte in enumerate(b"\x01\x60" + part):
                buffer[at + n] = byte
            at += 2 + len(part)
            if len(part) < 510:
                break
        self.log.append(at)
        return at


chip = Chip()
ftdi = Ftdi()
ftdi.open_from_device(usb.core.find(idVendor=0x403, idProduct=0x6014, backend=chip))
ftdi.set_bitmode(0xFF, Ftdi.BitMode.SYNCFF)
chip.log.clear()
ftdi.write_data(bytes(3000))
start = time.monotonic()
got = ftdi.read_data(16384)
took = time.monotonic() - start
print(f"{len(got)} bytes in transfers of {chip.log}, of which the last has the chip's status alone")
print("milliseconds longer than the chip's latency timer" if took > LATENCY else "sooner than the latency timer")
assert len(got) == 3000 and chip.log == [3012, 2] and took > LATENCY, "it is no longer so"
chip.log.clear()
ftdi.write_data(bytes(3000))
raw = ftdi.usb_dev.read(0x81, 16384, 1000)
print(f"pyusb's own read: {len(raw)} bytes in transfers of {chip.log}")
assert chip.log == [3012], "it is no longer so"
PYTHON
venv/bin/python try.py
