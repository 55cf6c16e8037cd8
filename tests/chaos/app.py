"""The streaming job that is killed: files of two streams or three → join → a folder of Parquet for each micro-batch.

Run: python -m tests.chaos.app FOLDER ARGUMENTS, those of `stream_join` or `stream_sql` as JSON. It ends when
FOLDER/stop is there and all input is joined.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session, stream_join, stream_sql

from ..support.spark_settings import SETTINGS
from ..wheel.pages import blocks
from .kills import COLUMNS, iceberg

#: The settings of tests but for Spark's own way of writing checkpoints, which has to survive kills.
_SETTINGS = {name: value for name, value in SETTINGS.items() if "checkpoint" not in name}


def _into(sink: str, folder: Path) -> Any:
    """The function for `foreachBatch` that docs/recipes/lakehouse.md has for a table of this kind."""
    names: dict[str, Any] = {}
    exec(next(b.code for b in blocks("docs/recipes/lakehouse.md") if f"def to_{sink}" in b.code), names)
    if sink == "delta":
        return names["to_delta"](str(folder / "out"), "chaos")
    return names["to_iceberg"](iceberg(folder), "chaos.out", "chaos")


def main(folder: Path, arguments: dict[str, Any]) -> None:
    """Run the job in ``folder``, with these ``arguments`` of `stream_join`, or of `stream_sql` if there is a text. It
    ends with the process that started it.

    Late rows are written to FOLDER/late.
    """
    parent = os.getppid()
    spark = local_session("chaos", log=folder / "spark.log", config=_SETTINGS | {
        "spark.master": "local[2,8]",  # a task may fail seven times, since its worker is killed
        "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.multiplier": "1.1",
        "spark.sql.shuffle.partitions": "2", "spark.sql.streaming.minBatchesToRetain": "5",
        "spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions"})
    sink = arguments.pop("sink", None)
    streams = {side: spark.readStream.schema(f"ts bigint, {name} int, n bigint").option("maxFilesPerTrigger", 2)
               .parquet(str(folder / side)) for side, name in COLUMNS.items() if (folder / side).is_dir()}
    left, right = streams["r"], streams["s"]
    if "several" in arguments:
        joined = stream_sql(arguments.pop("several"), tables=streams, **arguments, late=0,
                            late_to=str(folder / "late"))
    elif "sql" in arguments:
        for name, stream in (("r", left), ("s", right)):
            # Spark's first watermark is 1970, so a row of that time would be late.
            stream.selectExpr("*", "timestamp_seconds(ts + 1) at").withWatermark("at", "0 seconds"
                                                                                 ).createOrReplaceTempView(name)
        joined = spark.sql(arguments["sql"])
    else:
        late = (0, None) if arguments.pop("one_sided") else 0
        joined = stream_join(left, right, **arguments, late=late, late_to=str(folder / "late"))

    def write(frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(folder / "out" / f"batch={batch:06d}"))

    into = write if sink is None else _into(sink, folder)
    query = joined.writeStream.foreachBatch(into).option("checkpointLocation", str(folder / "checkpoint")).trigger(
        processingTime="100 milliseconds").start()
    while not (folder / "stop").exists():
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)  # nobody would ever stop it
        if not query.isActive:
            query.awaitTermination()  # raises what ended it
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
