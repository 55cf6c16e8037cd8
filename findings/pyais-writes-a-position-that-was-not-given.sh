#!/bin/sh
# Guess:    a position report encoded without longitude, latitude, speed, course and heading says "not available" for
#           them (181, 91, 102.3, 360, 511), as the standard has these values for that.
# Seen:     it says 0 for each: a ship at 0° N 0° E that stands still and heads north. turn and status, left out alike, do
#           get their "not available".
# Matters:  simulated or forwarded traffic puts ships into one place, where all of them meet in a proximity join; a filter
#           for 181 and 91 leaves them in.
# Versions: pyais 3.3.1, and attrs 26.1.0 beneath it.
# Source:   pyais/messages.py, MessageType1: lon, lat, speed, course and heading have the default 0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyais==3.3.1
cat > try.py <<'PYTHON'
from pyais import decode, encode_dict

report = decode(*encode_dict({"msg_type": 1, "mmsi": 244660001}, talker_id="AI")).asdict()
seen = {name: report[name] for name in ("lon", "lat", "speed", "course", "heading", "status", "turn")}
print(seen)
assert [report[name] for name in ("lon", "lat", "speed", "course", "heading")] == [0, 0, 0, 0, 0], "it is no longer so"
assert report["status"] == 15 and report["turn"] == -128, "it is no longer so"
PYTHON
venv/bin/python try.py
