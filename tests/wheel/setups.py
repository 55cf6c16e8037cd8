"""Code that stands in for what a reader of a page has already: a session of Spark, tables, a board.

It is run in the installed wheel's environment, so it is text here.
"""

from __future__ import annotations

from .pages import ROOT

#: A session of Spark, and rows with timestamps for its DataFrames.
SPARK = """
from splitjoin.spark import local_session, stream_join
spark = local_session("wheel", cores=2)
def moments(*rows):
    from datetime import UTC, datetime
    return [(datetime(2024, 5, 1, 12, minute, tzinfo=UTC), *more) for minute, *more in rows]
"""
#: Streaming queries are stopped after their first rows; what one has raised is raised.
STOP = """
import time
until = time.monotonic() + 300
for query in spark.streams.active:
    while query.isActive and not any(progress.numInputRows for progress in query.recentProgress):
        assert time.monotonic() < until, "a streaming query must have its first rows"
        time.sleep(0.2)
    query.stop()
    if query.exception() is not None:
        raise query.exception()
spark.stop()
"""
#: A job for spark-submit, and settings of an installed Spark whose Connect server takes a port that is free.
JOB = """
import os, socket
from pathlib import Path
import pyspark
Path("job.py").write_text('''
from pyspark.sql import SparkSession
from splitjoin.spark import stream_join
spark = SparkSession.builder.appName("job").getOrCreate()
left = spark.sql("SELECT timestamp'2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, id) ts, id x FROM range(100)")
right = left.selectExpr("ts", "x AS a")
found = stream_join(left, right, on="abs(r.x - s.a) <= 2", window="RANGE 10 SECONDS", time="ts").count()
assert found == 494, found
with open("jobs", "a") as jobs:
    jobs.write(spark.sparkContext.master + chr(10))
''')
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
os.mkdir("conf")
Path("conf", "spark-defaults.conf").write_text(f"spark.connect.grpc.binding.port {port}\\nspark.ui.enabled false\\n")
os.environ |= {"SPARK_HOME": pyspark.__path__[0], "SPARK_CONF_DIR": os.path.abspath("conf"),
               "SPARK_PID_DIR": os.getcwd(), "SPARK_LOG_DIR": os.path.abspath("logs")}
"""
#: What was run of it, by which splitjoin, and a client of that server.
JOBS = """
import importlib.metadata as metadata
def installed(*paths):
    found, = metadata.distributions(name="splitjoin", **({"path": [*map(str, paths)]} if paths else {}))
    files = found.read_text("RECORD").splitlines()
    return [file for file in files if file.startswith("splitjoin/") and ".pyc" not in file]
assert installed(*Path("environment", "lib").glob("*/site-packages")) == installed()
cluster = "local-cluster[1,1,1024]"
assert Path("jobs").read_text().split() == [cluster, cluster, cluster, "local[1]", cluster]
from pyspark.sql import SparkSession, functions as F
from splitjoin.spark import stream_join
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
left = spark.sql("SELECT timestamp'2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, id) ts, id x FROM range(100)")
right = left.selectExpr("ts", "x AS a")
joined = stream_join(left, right, on=F.abs(left.x - right.a) <= 5, window="RANGE 15 MINUTES", time="ts")
assert joined.count() == 1070
"""


def board(emulated: str, columns: str) -> str:
    """Code that writes R.parquet and S.parquet with 500 rows of ``columns``, and programs in place of a board.

    openFPGALoader only looks whether it gets a bitstream; the port is that of an emulator with the options
    ``emulated``, which `board-port` prints once it is there.
    """
    return f"""
import os, random, subprocess
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
random.seed(7)
ts, keys, price = (lambda: pa.array(sorted(random.randrange(20000) for _ in range(500)), pa.int64()),
                   lambda: pa.array([random.randrange(2000) for _ in range(500)], pa.int32()),
                   lambda: pa.array([random.randrange(-99, 99) for _ in range(500)], pa.int16()))
for name, columns in {columns}.items():
    pq.write_table(pa.table({{column: made() for column, made in columns.items()}}), name + ".parquet")
def program(name, text):
    Path("bin", name).write_text("#!/bin/sh -e\\n" + text)
    Path("bin", name).chmod(0o755)
program("openFPGALoader", 'for file; do :; done; test -s "$file"; echo "$@" >> loaded\\n')
program("board-port", "timeout 600 sh -c 'until test -s port; do sleep 0.5; done'; cat port\\n")
if {emulated!r}:
    subprocess.Popen("exec splitjoin emulate --board ulx3s_85f " + {emulated!r} + " > port", shell=True)
"""


def loaded(times: int) -> str:
    """Code that checks that the programs of `board` loaded so many bitstreams."""
    return f'assert len(Path("loaded").read_text().splitlines()) == {times}'


def copied(folder: str) -> str:
    """Code that copies a ``folder`` of the repository, as a checkout has it."""
    return f"import shutil; shutil.copytree({str(ROOT / folder)!r}, {folder!r})"


def files(**texts: str) -> str:
    """Code that writes a CSV file for each name."""
    return "from pathlib import Path\n" + "\n".join(f"Path('{name}.csv').write_text({text!r})"
                                                    for name, text in texts.items())


#: Options of the circuits on the pages about boards and aggregates.
BAND = """--schema-r "x:int32" --schema-s "a:int32" --on "abs(r.x - s.a) <= 10" --window "ROWS 1024" --cores 2 \
--capacity 512"""
FEATURES = """--schema-r "ts:int64, x:int32" --schema-s "ts:int64, a:int32, price:int16" --on "abs(r.x - s.a) <= 10" \
--window "RANGE 1000" --time ts --core scan --cores 1 --capacity 512 --lanes 2 --probes 2 --aggregate "n=count(*)" \
--aggregate "total=sum(s.price)" --aggregate "high=max(s.price)\""""
