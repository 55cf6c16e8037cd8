#!/bin/sh
# Guess:    Stream.merge() unites the parts of a channel; where two parts overlap, the samples of one of them stay.
# Seen:     where their values differ, the samples of BOTH go, without a warning: half a second that was measured twice is
#           masked, get_gaps() calls the overlap of 5 samples a gap of 5, and fill_value=0 writes zeros there.
# Matters:  the amplitude behind a pick, an as-of join, or a count of samples there finds nothing, or zeros.
# Versions: obspy 1.5.1, numpy 2.4.6.
# Source:   obspy/core/trace.py, Trace.__add__: method 0 discards overlapping data that are not equal.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check obspy==1.5.1 numpy==2.4.6
cat > try.py <<'PYTHON'
import numpy as np
from obspy import Stream, Trace, UTCDateTime

noon = UTCDateTime("2026-11-28T12:00:00")


def trace(after, value):
    header = {"network": "NL", "station": "HGN", "channel": "BHZ", "sampling_rate": 10, "starttime": noon + after}
    return Trace(np.full(20, value, dtype="i4"), header)


stream = Stream([trace(0, 1), trace(1.5, 2)])  # they overlap by five samples
print("before:", [gap[-1] for gap in stream.get_gaps()])
merged = stream.copy().merge()
print("after: ", [gap[-1] for gap in merged.get_gaps()], merged[0].data)
zeros = stream.copy().merge(fill_value=0)[0].data.tolist()
print("filled:", zeros)
assert [gap[-1] for gap in stream.get_gaps()] == [-5] and [gap[-1] for gap in merged.get_gaps()] == [5], "it is no longer so"
assert merged[0].data.mask.tolist() == [False] * 15 + [True] * 5 + [False] * 15, "it is no longer so"
assert zeros == [1] * 15 + [0] * 5 + [2] * 15, "it is no longer so"
PYTHON
venv/bin/python try.py
