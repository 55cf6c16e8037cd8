#!/bin/sh
# Guess:    an inner join of two streams, with watermarks and a bound of time, gives the pairs of the same query over tables if no row
#           is late: what may still find a partner is kept.
# Seen:     pairs are lost, silently, where the condition is not plain arithmetic of times. Whole seconds ("cast(t AS long)")
#           are taken for the times themselves, so state goes up to a second too early; INTERVAL 1 DAY is taken for 24
#           hours, and goes an hour too early on the autumn day that has 25.
# Matters:  the rows were in order, in time and within the bound; numRowsDroppedByWatermark stays 0.
# Versions: pyspark 4.3.0, Python 3.11, Java 17 (which must be there).
# Source:   StreamingJoinHelper.getStateValueWatermark in Spark's sources; Structured Streaming guide, "Inner Joins with
#           optional Watermarking".
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
         .config("spark.sql.shuffle.partitions", "1").config("spark.sql.session.timeZone", "Europe/Berlin")
         .config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", "false").getOrCreate())
folder = tempfile.mkdtemp(dir=os.getcwd())


def write(name, batches):
    """Rows (key, time) as files, one micro-batch each."""
    os.makedirs(f"{folder}/{name}")
    for n, rows in enumerate(batches):
        path = f"{folder}/{name}/{n}.json"
        with open(path, "w") as file:
            file.writelines(json.dumps({"k": key, "t": time}) + "\n" for key, time in rows)
        os.utime(path, (1e9 + n, 1e9 + n))  # files come in the order of their times


def rows(left, right, condition, is_stream):
    """The keys of the pairs."""
    for name, folder_of in (("l", left), ("r", right)):
        if is_stream:
            frame = spark.readStream.schema("k int, t timestamp").option("maxFilesPerTrigger", 1).json(
                f"{folder}/{folder_of}").withWatermark("t", "0 seconds")
        else:
            frame = spark.read.schema("k int, t timestamp").json(f"{folder}/{folder_of}")
        frame.createOrReplaceTempView(name)
    found = spark.sql(f"SELECT l.k FROM l JOIN r ON l.k = r.k AND {condition}")
    if is_stream:
        out = tempfile.mkdtemp(dir=folder)
        query = found.writeStream.format("parquet").option("path", f"{out}/rows").option(
            "checkpointLocation", f"{out}/checkpoint").trigger(availableNow=True).start()
        query.awaitTermination()
        late = sum(operator["numRowsDroppedByWatermark"] for progress in query.recentProgress
                   for operator in progress["stateOperators"])
        assert late == 0
        found = spark.read.schema("k int").parquet(f"{out}/rows")
    return sorted(row.k for row in found.collect())


write("orders", [[(1, f"2024-01-01T00:00:{second}Z")] if k == 0 else [(90 + k, f"2024-01-01T00:00:{second}Z")]
                 for k, second in enumerate(["04.0", "09.5", "09.6", "09.7", "09.8"])])
write("replies", [[(80 + k, f"2024-01-01T00:00:{second}Z")] if k < 4 else [(1, f"2024-01-01T00:00:{second}Z")]
                  for k, second in enumerate(["04.0", "09.5", "09.6", "09.7", "09.9"])])
write("begins", [[(1, "2024-10-26T22:30:00Z")]] + [[(90 + k, f"2024-10-27T23:0{k}:00Z")] for k in range(4)])
write("ends", [[(80, "2024-10-26T22:30:00Z")]] + [[(81 + k, f"2024-10-27T23:0{k}:00Z")] for k in range(3)]
      + [[(1, "2024-10-27T23:15:00Z")]])
seconds = "cast(r.t AS long) - cast(l.t AS long) BETWEEN 0 AND 5"
day = "r.t BETWEEN l.t AND l.t + INTERVAL 1 DAY"
seen = {name: [rows(*query, is_stream) for is_stream in (False, True)]
        for name, query in {"seconds": ("orders", "replies", seconds), "day": ("begins", "ends", day)}.items()}
spark.stop()
SparkContext._gateway.proc.stdin.close()  # ends the JVM, which reads from the folder
SparkContext._gateway.proc.wait()
for name, (tables, streams) in seen.items():
    print(f"{name:8} tables {tables}, streams {streams}")
assert seen == {"seconds": [[1], []], "day": [[1], []]}, "it is no longer so"
PYTHON
SPARK_LOCAL_IP=127.0.0.1 venv/bin/python try.py
