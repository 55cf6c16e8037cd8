#!/bin/sh
# Guess:    SEMI JOIN gives the rows that the inner join pairs, however the condition is written.
# Seen:     with two bounds, a third inequality and NOT (r.p = s.q), the row is lost, and ANTI JOIN gives it; with
#           r.p <> s.q it is found. The inner join and EXISTS find it in both writings. EXPLAIN shows one IE Join for both.
# Matters:  rows by a range and further inequalities (bookings, prices, genomes) vanish without an error; who checks a join
#           against DuckDB should ask by EXISTS or a cross join.
# Versions: duckdb 2.0.1, pyarrow 26.0.1, Python 3.11; with one thread and with two.
# Source:   duckdb.org/docs/stable/sql/query_syntax/from, "Semi and Anti Joins".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1
cat > try.py <<'PYTHON'
import duckdb
import pyarrow as pa

r = pa.table({"id": [0, 1, 2, 3, 4], "p": [False, True, True, None, False],
              "u": pa.array([5, 0, None, 2, 3], pa.uint64()), "b": pa.array([4, 1, 2, -2, 1], pa.int8())})
s = pa.table({"q": [True, True, True, True, False], "v": pa.array([2, 0, None, 3, 2], pa.uint64()),
              "c": pa.array([-2, None, 1, None, -1], pa.int8())})
ASKED = {"semi": "SELECT id FROM r SEMI JOIN s ON {}", "anti": "SELECT id FROM r ANTI JOIN s ON {}",
         "inner": "SELECT DISTINCT id FROM r JOIN s ON {}",
         "exists": "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE {})"}
seen = {}
for different in "r.p <> s.q", "NOT (r.p = s.q)":
    on = f"{different} AND r.u >= s.v AND r.b BETWEEN s.c - 3 AND s.c + 3"
    seen[different] = {name: sorted(row[0] for row in duckdb.sql(text.format(on)).fetchall())
                       for name, text in ASKED.items()}
    print(on, seen[different])
right = {"semi": [4], "anti": [0, 1, 2, 3], "inner": [4], "exists": [4]}
wrong = right | {"semi": [], "anti": [0, 1, 2, 3, 4]}
assert seen == {"r.p <> s.q": right, "NOT (r.p = s.q)": wrong}, "it is no longer so"
PYTHON
venv/bin/python try.py
