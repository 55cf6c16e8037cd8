#!/bin/sh
# Guess:    Oracle's "FETCH FIRST 50 PERCENT ROWS ONLY" becomes DuckDB's "LIMIT 50 PERCENT", as T-SQL's "TOP 50 PERCENT" does,
#           and "WITH TIES", for which DuckDB has no words, is refused where unsupported words are to be (ErrorLevel.RAISE).
# Seen:     it becomes LIMIT 50: fifty rows instead of half of them, and WITH TIES is left out, both without a warning or an
#           error. For PostgreSQL and ClickHouse the same tree is written with PERCENT and WITH TIES.
# Matters:  whoever moves reports from Oracle gets other rows from a statement that runs.
# Versions: sqlglot 30.30.0, duckdb 2.0.0.
# Source:   sqlglot/generator.py, query_modifiers: a Fetch becomes a Limit by its count alone where the dialect writes LIMIT.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==2.0.0
cat > try.py <<'PYTHON'
import duckdb
import sqlglot


def written(text, read):
    return sqlglot.transpile(text, read=read, write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]


rows = "(SELECT 1 + i // 4 AS a FROM range(8) AS numbers(i)) AS t"
half = "SELECT a FROM t ORDER BY a FETCH FIRST 50 PERCENT ROWS ONLY"
ties = "SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES"
same = "SELECT TOP 50 PERCENT a FROM t ORDER BY a"
counts = {}
for text, read in ((half, "oracle"), (ties, "oracle"), (same, "tsql")):
    sql = written(text, read)
    counts[text] = len(duckdb.sql(sql.replace("FROM t", f"FROM {rows}")).fetchall())
    print(f"{read}: {text}\n  duckdb: {sql}\n  rows of 8 (1, 1, 1, 1, 2, 2, 2, 2): {counts[text]}")
assert counts == {half: 8, ties: 2, same: 4}, "it is no longer so: 4, 4 and 4 rows are right"
PYTHON
venv/bin/python try.py
