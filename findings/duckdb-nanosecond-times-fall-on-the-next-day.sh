#!/bin/sh
# Guess:    the date and the year of a time are those of the moment that it holds.
# Seen:     in DuckDB 2.0 a TIMESTAMP_NS is rounded to microseconds first: of 2024-12-31 23:59:59.9999996, which is less than
#           DATE '2025-01-01', CAST AS DATE, date_trunc and time_bucket give 2025-01-01, year() 2025, and date_diff in days
#           to midnight is 0. By 1.4.2, and by strftime of all, it is 2024-12-31.
# Matters:  TIMESTAMP_NS is pandas' default up to 2.x, and market data's unit: GROUP BY date, joins by a bucket and partitions
#           disagree with a WHERE that compares times, and with the same query before `pip install --upgrade`.
# Versions: duckdb 1.4.2, 2.0.0 and 2.0.1, Python 3.11.
# Source:   DuckDB, timestamp types (TIMESTAMP_NS: nanosecond precision); date_trunc "truncates to specified precision".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > try.py <<'PYTHON'
import duckdb

moment = "TIMESTAMP_NS '2024-12-31 23:59:59.9999996'"
texts = [f"{moment} < DATE '2025-01-01'", f"strftime({moment}, '%Y-%m-%d')", f"CAST({moment} AS DATE)::VARCHAR",
         f"date_trunc('day', {moment})::DATE::VARCHAR", f"time_bucket(INTERVAL 1 DAY, {moment})::DATE::VARCHAR",
         f"year({moment})", f"date_diff('day', {moment}, TIMESTAMP_NS '2025-01-01')"]
print("duckdb", duckdb.__version__)
seen = []
for text in texts:
    seen.append(duckdb.execute(f"SELECT {text}").fetchone()[0])
    print(" ", text, "=", seen[-1])
old, new = "2024-12-31", "2025-01-01"
wanted = [True, old, new, new, new, 2025, 0] if duckdb.__version__[0] == "2" else [True, *[old] * 4, 2024, 1]
assert seen == wanted, "it is no longer so"
PYTHON
for version in 1.4.2 2.0.0 2.0.1; do
  python3 -m venv "venv-$version"
  "venv-$version/bin/python" -m pip install --quiet --disable-pip-version-check "duckdb==$version"
  "venv-$version/bin/python" try.py
done
