"""A job for a cluster of two workers on this machine, each of which has one device of a daemon.

Run: python -m tests.sw.spark.cluster_job FOLDER SOCKET. It prints what `test_cluster` looks at, as JSON.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from splitjoin.spark import local_session, stream_join
from tests.support.spark_settings import SETTINGS

JOIN = {"on": "abs(r.x - s.a) <= 3", "window": "ROWS 20", "time": "ts"}


def tables() -> tuple[pa.Table, pa.Table]:
    """R and S."""
    ts = list(range(200))
    return pa.table({"ts": ts, "x": [t * 7 % 50 for t in ts]}), pa.table({"ts": ts, "a": [t * 11 % 50 for t in ts]})


def failing_once(failed: Path) -> Any:
    """A function for ``mapInArrow`` that passes rows on. In the second micro-batch the first attempt of the first task
    fails, after its first rows if it has any, and makes the file ``failed``.
    """
    def passed_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch
            break
        first = context.partitionId() == 0 and context.attemptNumber() == 0
        if first and context.getLocalProperty("streaming.sql.batchId") == "1":
            failed.touch()
            raise RuntimeError("the first attempt fails")
        yield from batches

    return passed_on


def main(folder: Path, socket: str) -> None:
    """Run the job."""
    discover = folder / "discover.sh"
    discover.write_text(f"#!/bin/sh\nexec {sys.executable} -m splitjoin daemon discover --socket {socket}\n")
    discover.chmod(0o755)
    one = folder / "one.py"  # each worker of this machine has one of the daemon's two devices
    one.write_text(f"""#!{sys.executable}
import fcntl, json, subprocess
found = json.loads(subprocess.check_output([{str(discover)!r}]))
with open({str(folder / "taken")!r}, "a+") as taken:
    fcntl.flock(taken, fcntl.LOCK_EX)
    taken.seek(0)
    n = len(taken.read())
    taken.write("x")
print(json.dumps({{"name": "fpga", "addresses": [found["addresses"][n % 2]]}}))
""")
    one.chmod(0o755)
    spark = local_session("cluster", log=folder / "spark.log", config=SETTINGS | {
        "spark.master": "local-cluster[2,1,1024]", "spark.sql.shuffle.partitions": "2",
        "spark.worker.resource.fpga.amount": "1", "spark.worker.resource.fpga.discoveryScript": str(one),
        "spark.executor.resource.fpga.amount": "1", "spark.task.resource.fpga.amount": "1",
        "spark.cores.max": "2",  # Spark waits for both workers
        "spark.locality.wait": "0s",  # and no task for the worker that has its input
        "spark.python.daemon.module": "splitjoin.spark.daemon",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[3])})
    r, s = tables()
    left, right = spark.createDataFrame(r), spark.createDataFrame(s)
    options = {"socket": socket}

    def address(batches):  # type: ignore[no-untyped-def]  # Spark calls it
        list(batches)
        context = TaskContext.get()
        assert context is not None
        yield pa.RecordBatch.from_pydict({"address": [context.resources()["fpga"].addresses[0]],
                                          "imported": ["splitjoin.catalyst.task" in sys.modules]})

    tasks = spark.range(4, numPartitions=4).mapInArrow(address, "address string, imported boolean").collect()
    given = sorted({row.address for row in tasks})
    joined = stream_join(left, right, **JOIN, partitions=4, device="daemon", device_options=options)
    batch = sorted(map(list, joined.collect()))
    for side, table in (("r", r), ("s", s)):
        (folder / side).mkdir()
        # The last row brings the watermark past all others, and meets none.
        last = pa.table({table.column_names[0]: [10**6], table.column_names[1]: [10**6 if side == "r" else 0]})
        for n, part in enumerate((table.slice(0, 100), table.slice(100), last)):
            pq.write_table(part, folder / side / f"{n}.parquet")
            os.utime(folder / side / f"{n}.parquet", (10**9 + n, 10**9 + n))  # Spark reads the oldest first
    found = {}
    for name, device, given_options in (("daemon", "daemon", options), ("sim", "sim", {"cores": 2, "capacity": 32})):
        streams = [spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / side))
                   for side, frame in (("r", left), ("s", right))]
        streamed = stream_join(*streams, **JOIN, late=0, groups=2, state=str(folder / f"state-{name}"), device=device,
                               device_options=given_options)
        if name == "daemon":
            streamed = streamed.mapInArrow(failing_once(folder / "failed"), streamed.schema)
        query = streamed.writeStream.format("parquet").option("path", str(folder / name)).option(
            "checkpointLocation", str(folder / f"checkpoint-{name}")).trigger(availableNow=True).start()
        query.awaitTermination()
        found[name] = sorted(map(list, spark.read.parquet(str(folder / name)).collect()))
    imported = [row.imported for row in tasks]
    print(json.dumps({"addresses": given, "imported": imported, "batch": batch, "retried": (folder / "failed").exists(),
                      **found}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
