#!/bin/sh
# Guess:    a text that sqlglot translates from Spark to DuckDB without a complaint gives the same values, or nearly.
# Seen:     datediff(HOUR, a, b), which Spark counts by the times, casts both to DATE first: 09:50 to 12:10 of one day is 0
#           hours where Spark says 2, and any answer is a multiple of 24. timestampdiff(MINUTE, …) becomes date_diff, which
#           counts the minutes' boundaries: 20 seconds across one are 1, in Spark 0.
# Matters:  a time band written so ("within two hours") joins other rows after the translation, silently.
# Versions: sqlglot 30.30.0, duckdb 2.0.1, pyspark 4.3.0 (Java 17, which must be there), Python 3.11.
# Source:   Spark SQL functions datediff (alias of timestampdiff with a unit) and timestampdiff; DuckDB, "date_diff".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==2.0.1 pyspark==4.3.0
cat > try.py <<'PYTHON'
import duckdb
import sqlglot
from pyspark.sql import SparkSession

queries = ["SELECT datediff(HOUR, timestamp'2024-01-01 09:50:00', timestamp'2024-01-01 12:10:00')",
           "SELECT timestampdiff(MINUTE, timestamp'2024-01-01 09:50:50', timestamp'2024-01-01 09:51:10')"]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
         .config("spark.sql.session.timeZone", "UTC").getOrCreate())
seen = []
for query in queries:
    text = sqlglot.transpile(query, read="spark", write="duckdb")[0]
    (of_spark,), (of_duckdb,) = spark.sql(query).collect()[0], duckdb.sql(text).fetchall()[0]
    print(query, of_spark, text, of_duckdb, sep="\n  ")
    seen.append((of_spark, of_duckdb))
assert seen == [(2, 0), (0, 1)], "it is no longer so"
PYTHON
TZ=UTC venv/bin/python try.py
