#!/bin/sh
# Guess:    LEFT SEMI JOIN gives each left row for which INNER JOIN of the same streams gives a pair.
# Seen:     a left row whose only partner comes in the same micro-batch is lost where both lie behind the watermark, but
#           not behind the one before, by which rows are late. INNER gives the pair (5, 50), LEFT SEMI no row (5).
# Matters:  "does a match exist" and "which matches exist" give different answers of the same stream, without a count of late rows.
# Versions: pyspark 4.3.0, Python 3.11, Java 17 (which must be there).
# Source:   Spark, Structured Streaming guide, "Semi Joins with Watermarking" and "Policy for handling multiple watermarks".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyspark==4.3.0
cat > try.py <<'PYTHON'
import json
import os
import tempfile

from pyspark import SparkContext
from pyspark.sql import SparkSession

spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.sql.shuffle.partitions", "1").config("spark.sql.session.timeZone", "UTC")
         .config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", "false").getOrCreate())
folder = tempfile.mkdtemp(dir=os.getcwd())


def stream(name, batches):
    """A stream of rows (key, second, value), one micro-batch a file."""
    os.makedirs(f"{folder}/{name}")
    for n, rows in enumerate(batches):
        path = f"{folder}/{name}/{n}.json"
        with open(path, "w") as file:
            for key, second, value in rows:
                file.write(json.dumps({"k": key, f"t{name}": f"2024-01-01T00:00:{second:02}", f"v{name}": value}) + "\n")
        os.utime(path, (1e9 + n, 1e9 + n))  # files come in the order of their times
    frame = spark.readStream.schema(f"k int, t{name} timestamp, v{name} int").option("maxFilesPerTrigger", 1)
    frame.json(f"{folder}/{name}").withWatermark(f"t{name}", "0 seconds").createOrReplaceTempView(name)


def rows(select, kind):
    out = tempfile.mkdtemp(dir=folder)
    text = f"SELECT {select} FROM l {kind} JOIN r ON l.k = r.k AND tr BETWEEN tl AND tl + INTERVAL 5 SECONDS"
    spark.sql(text).writeStream.format("parquet").option("path", f"{out}/rows").option(
        "checkpointLocation", f"{out}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    return sorted(map(tuple, spark.read.parquet(f"{out}/rows").collect()), key=str)


stream("l", [[(8, 50, 3)], [(5, 10, 5)], [(9, 58, 4)]])
stream("r", [[(8, 50, 30)], [(5, 11, 50)], [(9, 58, 40)]])
inner, semi = rows("vl, vr", "INNER"), rows("vl", "LEFT SEMI")
spark.stop()
SparkContext._gateway.proc.stdin.close()  # ends the JVM, which reads from the folder
SparkContext._gateway.proc.wait()
print("INNER    ", inner)
print("LEFT SEMI", semi)
assert (5, 50) in inner
assert (5,) not in semi and (3,) in semi, "it is no longer so"
PYTHON
SPARK_LOCAL_IP=127.0.0.1 venv/bin/python try.py
