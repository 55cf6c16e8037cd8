#!/bin/sh
# Guess:    qualify writes names out and changes no rows: "a FULL JOIN b USING (k) FULL JOIN c USING (k)" compares the
#           merged key, COALESCE(a.k, b.k), with c.k, as the standard and DuckDB have it.
# Seen:     it writes ON a.k = c.k. A key of b and c that a lacks is one row before qualify and two after.
# Matters:  optimizers, transpilers and lineage tools begin with qualify, and an outer join then has other rows, without an error.
# Versions: sqlglot 30.30.0, duckdb 2.0.0.
# Source:   sqlglot/optimizer/qualify_columns.py, the expansion of USING: it takes the first table that has the column.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==2.0.0
cat > try.py <<'PYTHON'
import duckdb
import sqlglot
from sqlglot.optimizer.qualify import qualify

text = "SELECT k, x, y, z FROM a FULL JOIN b USING (k) FULL JOIN c USING (k) ORDER BY ALL"
schema = {"a": {"k": "int", "x": "text"}, "b": {"k": "int", "y": "text"}, "c": {"k": "int", "z": "text"}}
written = qualify(sqlglot.parse_one(text, read="duckdb"), schema=schema, dialect="duckdb").sql("duckdb")
database = duckdb.connect()
for table, key, name in (("a", 1, "x"), ("b", 2, "y"), ("c", 2, "z")):
    database.sql(f"CREATE TABLE {table} AS SELECT {key} AS k, '{table}{key}' AS {name}")
before, after = database.sql(text).fetchall(), database.sql(written).fetchall()
print(written)
print("as written by hand:", before)
print("after qualify:     ", after)
assert before == [(1, "a1", None, None), (2, None, "b2", "c2")], "it is no longer so"
assert after == [(1, "a1", None, None), (2, None, "b2", None), (2, None, None, "c2")], "it is no longer so"
PYTHON
venv/bin/python try.py
