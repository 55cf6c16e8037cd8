#!/bin/sh
# Guess:    a patch release gives the values that the release before gave.
# Seen:     round(x, 2) of a DOUBLE multiplies, rounds and divides in DuckDB 2.0.0 and rounds the number itself in 2.0.1:
#           of 20,000 prices with three places 4 % change, of those that end in 5 nearly half. 2.675, which is
#           2.67499… in binary, was 2.68 and is 2.67.
# Matters:  joins and groups by a rounded float, and columns that were rounded and stored, have other rows after
#           `pip install --upgrade`; NumPy still multiplies, Spark rounds the decimal that the float prints as.
# Versions: duckdb 2.0.0 and 2.0.1, Python 3.11.
# Source:   DuckDB, numeric functions, round(v, s); duckdb issue 19491 (round_even) says why 2.67 is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > try.py <<'PYTHON'
from decimal import ROUND_HALF_UP, Decimal
from random import Random

import duckdb

draw = Random(1)
prices = [draw.randrange(-10**6, 10**6) / 1000 for _ in range(20_000)]
rounded = [row[0] for row in duckdb.execute("SELECT round(unnest(?), 2)", [prices]).fetchall()]
exact = [float(Decimal(x).quantize(Decimal("0.01"), ROUND_HALF_UP)) for x in prices]
off = sum(a != b for a, b in zip(rounded, exact, strict=True))
print("duckdb", duckdb.__version__, "2.675 becomes", duckdb.sql("SELECT round(2.675::DOUBLE, 2)").fetchall()[0][0])
print(f"  {off} of {len(prices)} are not the rounded number")
assert (off > 500) if duckdb.__version__ == "2.0.0" else (off == 0), "it is no longer so"
PYTHON
for version in 2.0.0 2.0.1; do
  python3 -m venv "venv-$version"
  "venv-$version/bin/python" -m pip install --quiet --disable-pip-version-check "duckdb==$version"
  "venv-$version/bin/python" try.py
done
