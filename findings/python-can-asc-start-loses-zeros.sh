#!/bin/sh
# Guess:    a log that python-can writes as .asc and reads back with absolute times has its times to the millisecond at least,
#           as the line with the date of the start has milliseconds.
# Seen:     their leading zeros are not written: a start at 20.012 s stands there as "20.12" and is read as 20.120 s, so all
#           messages of the file come 108 ms late; what lies below the millisecond is cut. A .blf has the times.
# Matters:  each file has a shift of its own, of up to 0.9 s, in one log of ten. Requests and replies of two files, 20
#           microseconds apart, come 100 ms apart; a band of a few milliseconds finds nothing, a wider one other pairs.
# Versions: python-can 4.6.1, Python 3.11.
# Source:   can/io/asc.py: ASCWriter puts the number of milliseconds into the text of the date, and ASCReader reads them as %f.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check python-can==4.6.1
cat > try.py <<'PYTHON'
import can

start = 1_700_000_000.000_990


def times(name, after, **options):
    """The times of three messages of a log, in microseconds from the start of them all."""
    with can.Logger(name) as log:
        for n in range(3):
            log.on_message_received(can.Message(timestamp=start + after + n * 0.01, arbitration_id=1 + n))
    with can.LogReader(name, **options) as log:
        return [round((message.timestamp - start) * 1e6) for message in log]


later = 0.000_020  # a reply comes 20 microseconds after its request
blf, blf_reply = times("request.blf", 0), times("reply.blf", later)
asc, asc_reply = times("request.asc", 0, relative_timestamp=False), times("reply.asc", later, relative_timestamp=False)
print("requests and replies, .blf:", blf, blf_reply)
print("requests and replies, .asc:", asc, asc_reply)
with open("reply.asc") as file:
    print(*[line.strip() for line in file if line.startswith("Begin")])
assert (blf, blf_reply) == ([0, 10_000, 20_000], [20, 10_020, 20_020]), "it is no longer so"
assert (asc, asc_reply) == ([-990, 9_010, 19_010], [99_010, 109_010, 119_010]), "it is no longer so"
PYTHON
TZ=UTC venv/bin/python try.py
