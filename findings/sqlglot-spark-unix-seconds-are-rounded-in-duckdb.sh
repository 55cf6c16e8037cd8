#!/bin/sh
# Guess:    unix_seconds, which Spark says truncates, gives the same second after sqlglot has translated it to DuckDB.
# Seen:     it becomes CAST(EPOCH(t) AS BIGINT). EPOCH is a DOUBLE with the fraction, and the cast rounds: each time in the
#           second half of its second is one second later than in Spark.
# Matters:  half of all times of finer clocks: joins by equal seconds and bands in seconds give other rows, silently. (By
#           `unix_timestamp` of a timestamp column, the translation is an error of DuckDB's, which one sees.)
# Versions: sqlglot 30.30.0, duckdb 2.0.1, pyspark 4.3.0 (Java 17, which must be there), Python 3.11.
# Source:   Spark SQL functions, unix_seconds: "Truncates higher levels of precision"; DuckDB, epoch(timestamp).
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

spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
         .config("spark.sql.session.timeZone", "UTC").getOrCreate())
seen = []
for moment in ("2024-01-01 00:00:00.4", "2024-01-01 00:00:00.6", "1969-12-31 23:59:59.6"):
    query = f"SELECT unix_seconds(TIMESTAMP'{moment}')"
    text = sqlglot.transpile(query, read="spark", write="duckdb")[0]
    (of_spark,), (of_duckdb,) = spark.sql(query).collect()[0], duckdb.sql(text).fetchall()[0]
    print(query, of_spark, text, of_duckdb, sep="\n  ")
    seen.append(of_duckdb - of_spark)
assert seen == [0, 1, 1], "it is no longer so"
PYTHON
TZ=UTC venv/bin/python try.py
