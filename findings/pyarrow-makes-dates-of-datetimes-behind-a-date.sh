#!/bin/sh
# Guess:    a list of dates and datetimes becomes timestamps, as a list of ints and floats becomes floats; or it is refused.
# Seen:     it goes by the first value: behind a date, datetimes lose their time of day without an error (date32); the same
#           values the other way round are refused. Table.from_pylist and from_pydict do the same with a column.
# Matters:  rows of one day become equal keys: a join by time, or a sort, takes 09:00 and 17:00 of a day for one moment.
# Versions: pyarrow 26.0.1.
# Source:   pyarrow's inference of types from Python objects (python/inference.cc), where a datetime is a date too.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyarrow==26.0.1
cat > try.py <<'PYTHON'
from datetime import date, datetime

import pyarrow as pa

day, early, late = date(2026, 11, 28), datetime(2026, 11, 28, 9), datetime(2026, 11, 28, 17)
print(pa.array([1, 0.5]).type)
print("date first:", pa.array([day, early, late]).type, pa.array([day, early, late]).to_pylist())
try:
    print("datetime first:", pa.array([early, day, late]).type)
    raise SystemExit("it is no longer so")
except pa.ArrowTypeError as error:
    print("datetime first:", error)
rows = pa.Table.from_pylist([{"at": day}, {"at": early}, {"at": late}])
print(rows.group_by("at").aggregate([([], "count_all")]).to_pylist())
assert pa.array([day, early, late]).to_pylist() == [day, day, day], "it is no longer so"
PYTHON
venv/bin/python try.py
