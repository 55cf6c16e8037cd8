#!/bin/sh
# Guess:    to_dataframe() puts all channels on one time line and leaves NaN, or the value before, where a channel has no
#           sample. Before its first sample there is nothing.
# Seen:     a warning that was written at 0.25 s stands at 0.0 s too: what comes before the first sample is the first
#           sample, and what comes behind the last one the last. Floats in between are interpolated: values nobody measured.
# Matters:  "what was the speed while the warning was on" finds rows before the warning; a join by nearest time of such a
#           frame matches samples that are in no file.
# Versions: asammdf 8.8.28, numpy 2.4.6, pandas 3.1.1.
# Source:   asammdf/signal.py, Signal.interp, which to_dataframe calls for each channel.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check asammdf==8.8.28 numpy==2.4.6 pandas==3.1.1
cat > try.py <<'PYTHON'
import numpy as np
from asammdf import MDF, Signal

log = MDF(version="4.10")
log.append([Signal(np.array([100, 101, 102, 103, 104, 105], dtype="u2"), np.arange(6) * 0.1, name="speed")])
log.append([Signal(np.array([3], dtype="u1"), np.array([0.25]), name="warning")])
log.append([Signal(np.array([1.0, 2.0]), np.array([0.0, 0.4]), name="torque")])
frame = log.to_dataframe()
print(frame)
assert list(frame["warning"]) == [3] * len(frame), "it is no longer so"
assert np.allclose(frame["torque"].to_numpy(), [1.0, 1.25, 1.5, 1.625, 1.75, 2.0, 2.0]), "it is no longer so"
assert log.get("warning").timestamps.tolist() == [0.25], "the file has one sample"
PYTHON
venv/bin/python try.py
