#!/bin/sh
# Guess:    an equality is not true of NULL, so FULL JOIN of two streams gives rows with NULL keys with NULL beside them.
# Seen:     the rows with NULL keys of both streams are paired with each other, as if NULL = NULL. INNER gives no such
#           pair and LEFT gives (1, NULL), as all three do in batch.
# Matters:  pairs that no other engine gives, and a stream that differs from its own batch; test "k IS NOT NULL" first.
# Versions: pyspark 4.3.0, Python 3.11, Java 17 (which must be there).
# Source:   Spark, Structured Streaming guide, "Outer Joins with Watermarking"; SQL reference, "NULL Semantics".
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


stream("l", [[(None, 1, 1), (7, 1, 2)], [(8, 50, 3)], [(8, 58, 4)]])
stream("r", [[(None, 2, 10), (7, 2, 20)], [(9, 50, 30)], [(9, 58, 40)]])
seen = {kind: rows("vl, vr", kind) for kind in ("INNER", "LEFT", "FULL")}
spark.stop()
SparkContext._gateway.proc.stdin.close()  # ends the JVM, which reads from the folder
SparkContext._gateway.proc.wait()
for kind, found in seen.items():
    print(f"{kind:5} {found}")
assert (2, 20) in seen["INNER"] and (1, 10) not in seen["INNER"]
assert (1, None) in seen["LEFT"] and (1, 10) not in seen["LEFT"]
assert (1, 10) in seen["FULL"] and (1, None) not in seen["FULL"], "it is no longer so"
PYTHON
SPARK_LOCAL_IP=127.0.0.1 venv/bin/python try.py
