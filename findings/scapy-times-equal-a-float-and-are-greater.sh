#!/bin/sh
# Guess:    the times of packets are Decimals, so == and > agree, equal times are equal to each other, and a time can be
#           a key of a dict.
# Seen:     EDecimal overrides == alone: beside a float (or an int) it is made a float first, while <, <= and > compare
#           the exact values. Two packets a nanosecond apart both equal 1700000000.0, not each other, and are greater
#           than it as well. They have no hash.
# Matters:  requests and replies that are matched by `==` with a float time meet several packets of a capture with
#           nanoseconds; `a.time <= t` is false where `a.time == t` is true; group by time needs int(t * 10**9).
# Versions: scapy 2.8.0, Python 3.11.
# Source:   scapy/utils.py, class EDecimal: "comparison with float for backward compatibility".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check scapy==2.8.0
cat > try.py <<'PYTHON'
from decimal import Decimal

from scapy.layers.l2 import Ether
from scapy.utils import PcapWriter, rdpcap

packets = []
for nanosecond in (1, 2):
    packet = Ether(dst="02:00:00:00:00:01") / b"x"
    packet.time = Decimal(1_700_000_000) + Decimal(nanosecond).scaleb(-9)
    packets.append(packet)
with PcapWriter("capture.pcap", nano=True) as writer:
    writer.write(packets)
first, second = (packet.time for packet in rdpcap("capture.pcap"))
at = 1_700_000_000.0
print("times", first, second, "and the float", at)
print("  first == float", first == at, " second == float", second == at, " first == second", first == second)
print("  first > float", first > at, " first <= float", first <= at, " hash", first.__hash__)
assert first == at and second == at and first != second, "equality is that of numbers"
assert first > at and not first <= at, "== and <= agree"
assert first.__hash__ is None, "times have a hash"
PYTHON
venv/bin/python try.py
