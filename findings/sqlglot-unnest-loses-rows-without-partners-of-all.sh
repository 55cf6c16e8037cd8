#!/bin/sh
# Guess:    unnest_subqueries, which makes joins of correlated subqueries, changes no rows: "x > ALL (SELECT …)" is true where
#           the SELECT has no rows, as the standard, DuckDB, PostgreSQL and Spark have it.
# Seen:     it writes a LEFT JOIN with a list of each group's values, and ARRAY_ALL over the list, which is NULL where there is
#           no group: such rows are gone. DuckDB has no ARRAY_ALL, either, so the text runs only where somebody defines it.
# Matters:  optimizers that run sqlglot's default rules lose rows without an error, or do not run at all.
# Versions: sqlglot 30.30.0, duckdb 2.0.1.
# Source:   sqlglot/optimizer/unnest_subqueries.py, decorrelate: the branch for exp.All has no Coalesce, as that for counts has.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==2.0.1
cat > try.py <<'PYTHON'
import duckdb
import sqlglot
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.unnest_subqueries import unnest_subqueries

text = "SELECT r.k FROM r WHERE r.x > ALL (SELECT s.a FROM s WHERE s.k = r.k) ORDER BY r.k"
schema = {"r": {"k": "int", "x": "int"}, "s": {"k": "int", "a": "int"}}
tree = qualify(sqlglot.parse_one(text, read="duckdb"), schema=schema, dialect="duckdb")
written = unnest_subqueries(tree).sql("duckdb")
database = duckdb.connect()
database.sql("CREATE TABLE r AS SELECT * FROM (VALUES (1, 5), (2, 5)) AS t(k, x)")
database.sql("CREATE TABLE s AS SELECT 1 AS k, 3 AS a")
before = database.sql(text).fetchall()
print(written)
try:
    database.sql(written)
except duckdb.CatalogException as error:
    print(str(error).splitlines()[0])
else:
    raise AssertionError("it is no longer so")
database.execute("CREATE MACRO array_all(l, f) AS len(list_filter(l, f)) = len(l)")
after = database.execute(written).fetchall()
print("as written by hand:     ", before)
print("after unnest_subqueries:", after)
assert before == [(1,), (2,)], "it is no longer so"
assert after == [(1,)], "it is no longer so"
PYTHON
venv/bin/python try.py
