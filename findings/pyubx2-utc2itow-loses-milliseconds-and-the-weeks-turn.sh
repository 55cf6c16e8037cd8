#!/bin/sh
# Guess:    utc2itow gives the GPS week and time of week that a receiver would write for this UTC time, to the millisecond.
# Seen:     one time in a hundred of whole milliseconds comes out a millisecond early (a sum of floats is cut, not
#           rounded), and in the last 18 seconds of Saturday in UTC, when the next GPS week has begun, the old week stays
#           with a time of week beyond its end: 604,808,000 ms, where NAV-PVT's iTOW ends at 604,799,999.
# Matters:  rows of a UTC log meet the receiver's messages by (week, iTOW); these meet none, or the wrong one.
# Versions: pyubx2 1.4.0, pynmeagps 1.1.8, pyrtcm 1.2.1, Python 3.11.
# Source:   pyubx2.ubxhelpers.utc2itow; u-blox interface descriptions, "iTOW timestamps".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyubx2==1.4.0
cat > try.py <<'PYTHON'
from datetime import datetime, timedelta
from random import Random

from pyubx2 import utc2itow

WEEK, LEAP, FIRST = 604_800_000, 18_000, datetime(1980, 1, 6)


def by_integers(utc):
    return divmod((utc - FIRST) // timedelta(milliseconds=1) + LEAP, WEEK)


saturday = datetime(2026, 11, 28, 23, 59, 50)
print(saturday, "utc2itow", utc2itow(saturday), "by integers", by_integers(saturday))
draw = Random(0)
times = [datetime(2026, 11, 22) + timedelta(milliseconds=draw.randrange(WEEK - LEAP)) for _ in range(100_000)]
off = [by_integers(t)[1] - utc2itow(t)[1] for t in times]
print(f"of {len(times):,} whole milliseconds, {sum(map(bool, off)):,} differ, by {sorted(set(off))} ms")
assert utc2itow(saturday) == (2446, 604_808_000) and by_integers(saturday) == (2447, 8_000), "it is no longer so"
assert set(off) == {0, 1} and 100 < sum(off) < 10_000, "it is no longer so"
PYTHON
venv/bin/python try.py
