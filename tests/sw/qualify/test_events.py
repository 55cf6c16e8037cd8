"""Event logs: compressions, damage, and limits of what a log may cost."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.base.errors import InputError
from splitjoin.cli import main
from splitjoin.qualify import as_html, as_text, qualify
from splitjoin.qualify.events import read_logs
from tests.support.sampling import examples

from .support import LOG, log_of, node

ZSTD = pa.Codec("zstd")
LOOP = node("BroadcastNestedLoopJoin", "BroadcastNestedLoopJoin BuildRight, Inner, (x#1 < a#2)",
            node("Scan", "Scan [x#1]", rows=1), node("Scan", "Scan [a#2]", rows=2), rows=3)


def packed(data: bytes) -> bytes:
    return ZSTD.compress(data).to_pybytes()


def in_frames(data: bytes) -> bytes:
    """Data as Spark packs it, which closes a frame whenever it flushes."""
    return b"".join(packed(line) for line in data.splitlines(keepends=True))


@pytest.mark.parametrize(("name", "pack"), [
    ("log.zstd", packed), ("bad.gz", gzip.compress), ("bad.zstd.inprogress", packed),
    ("log.zstd", in_frames)])
def test_compressed_logs(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / name).write_bytes(pack(LOG.read_bytes()))
    assert qualify([tmp_path]) == qualify([LOG])


@pytest.mark.parametrize(("name", "pack", "reason"), [
    ("cut.gz", gzip.compress, "Compressed file ended before"), ("cut.zstd", in_frames, "Truncated compressed stream")])
def test_compressed_logs_of_killed_applications(tmp_path: Path, name: str, pack: Callable[[bytes], bytes], reason: str,
                                                ) -> None:
    (tmp_path / name).write_bytes(pack(LOG.read_bytes() * 20)[:-200])
    found, damaged = qualify([tmp_path])
    assert found
    assert f"{name} ends early: {reason}" in damaged[0]
    assert "Not all was read" in as_text(found, damaged)
    assert "Not all was read" in as_html(found, damaged)


def test_logs_of_killed_applications_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    whole = LOG.read_text()
    (tmp_path / "cut.inprogress").write_text(whole[: whole.rindex("SparkListenerTaskEnd") + 40])
    found, damaged = qualify([tmp_path])
    assert len(found) == 4
    assert damaged == ["eventlog (local-1795522263567): 1 line could not be read"]


def test_a_rolling_log_is_read_from_its_last_compaction_on(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app"
    folder.mkdir()
    lines = LOG.read_text().splitlines(keepends=True)
    (folder / "events_1_app").write_text("".join(lines))
    (folder / "events_2_app.zstd.compact").write_bytes(packed("".join(lines[:30]).encode()))
    (folder / "events_10_app").write_text("".join(lines[30:]))
    (folder / "events_x_app").write_text("not a part")
    assert qualify([tmp_path]) == qualify([LOG])
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(InputError, match="holds no file events_"):
        qualify([tmp_path])


@pytest.mark.parametrize(("name", "data", "reason"), [
    ("bad.lz4", b"x", "is compressed by lz4 in Spark's own format, which is not read here"),
    ("text", b"hello\nworld\n", "is no event log of Spark: 2 lines could not be read"),
    ("empty", b"", "holds no event"),
    ("bad.zstd", b"hello", "bad.zstd ends early: ZSTD decompress failed"), ("bad.gz", b"hello", "Not a gzipped file"),
    # Without a date in it, which would be in the test's name, and differ between processes.
    ("bad.gz", gzip.compress(b"x" * 10_000, mtime=0)[:12] + b"\xff" * 20,
     "bad.gz ends early: Error -3 while decompressing")])
def test_what_is_no_event_log(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=reason):
        qualify([tmp_path])
    log_of(tmp_path, LOOP)
    found, [damaged] = qualify([tmp_path])  # the other logs of a folder are read
    assert len(found) == 1
    assert reason in damaged


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no event log at"):
        qualify([tmp_path / "nothing"])
    with pytest.raises(InputError, match="holds no event log"):
        qualify([tmp_path])


def task(partition: int, stage: int = 0, **rows: int) -> dict[str, Any]:
    updates = [{"ID": int(number[1:]), "Name": "number of output rows", "Update": str(n)} for number, n in rows.items()]
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": {"Executor Run Time": 500},
            "Task Info": {"Partition ID": partition, "Accumulables": updates}}


def test_partitions_that_spark_computes_twice_count_once(tmp_path: Path) -> None:
    """Spark runs the streamed side of a full outer join once for its own rows and once for those without partner."""
    log = log_of(tmp_path, LOOP)
    with log.open("a") as file:
        for one in (task(0, 1, a1=10), task(1, 1, a1=20), task(0, 2, a1=10, a3=7), task(1, 2, a1=20, a2=5, a3=8)):
            file.write(json.dumps(one) + "\n")
    [found], _ = qualify([log])
    assert (found.rows, found.seconds) == ((30, 5, 15), 1.0)


def product(name: str, parents: list[int], partitions: int, number: int) -> dict[str, Any]:
    return {"RDD ID": number, "Name": name, "Parent IDs": parents, "Number of Partitions": partitions}


def test_inputs_of_cartesian_products_count_once(tmp_path: Path) -> None:
    """Each of two partitions of the left input is read with each of three of the right one."""
    log = log_of(tmp_path, {**LOOP, "nodeName": "CartesianProduct", "simpleString": "CartesianProduct (x#1 < a#2)"})
    rdds = [product("A", [], 2, 1), product("B", [], 3, 2), product("UnsafeCartesianRDD", [1, 2], 6, 3)]
    events = [task(at, a1=(10, 20)[at // 3], a2=(1, 2, 3)[at % 3], a3=1) for at in range(6)]
    done = {"Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": 0, "RDD Info": rdds}}
    with log.open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in [*events, done])
    assert qualify([log])[0][0].rows == (30, 6, 6)


@pytest.mark.parametrize("event", [
    {"Event": "SparkListenerTaskEnd", "Task Info": 5},
    {"Event": "SparkListenerTaskEnd", "Task Info": {"Accumulables": [{"ID": [], "Name": "number of output rows",
                                                                     "Update": "1"}]}},
    {"Event": "SparkListenerTaskEnd", "Task Info": {"Accumulables": 3}},
    task(0, a1=5) | {"Stage ID": "x"}, task(-1, a1=5), task(0, a1=-5), task(0, a1=2**63),
    task(0, a1=5) | {"Task Metrics": {"Executor Run Time": 1e300}},
    {"Event": "x.SparkListenerSQLExecutionStart"}, {"Event": "x.SparkListenerSQLExecutionStart", "executionId": 0},
    {"Event": "x.SparkListenerSQLExecutionStart", "executionId": 0, "sparkPlanInfo": [LOOP]},
    {"Event": "x.SparkListenerSQLExecutionStart", "executionId": [], "sparkPlanInfo": LOOP},
    {"Event": "x.SparkListenerSQLExecutionStart", "executionId": 0, "sparkPlanInfo": {**LOOP, "children": [1]}},
    {"Event": "x.SparkListenerSQLExecutionStart", "executionId": 0, "sparkPlanInfo": {**LOOP, "metrics": [{}]}},
    {"Event": "x.SparkListenerSQLAdaptiveExecutionUpdate", "executionId": 0, "sparkPlanInfo": {"metrics": 5}},
    {"Event": "x.SparkListenerDriverAccumUpdates", "accumUpdates": [[1]]},
    {"Event": "x.SparkListenerDriverAccumUpdates", "accumUpdates": [[1, 10], [2, "x"]]},
    {"Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": 0, "RDD Info": [product("A", [], 1, 0) | {
        "Name": "UnsafeCartesianRDD"}]}},
    {"Event": 5}, [], "text", 5, None])
def test_an_event_that_is_not_as_spark_writes_it_is_counted_and_changes_nothing(tmp_path: Path, event: object) -> None:
    log = log_of(tmp_path, LOOP)
    whole = qualify([log])[0]
    with log.open("a") as file:
        file.write(json.dumps(event) + "\n")
    assert qualify([log]) == (whole, ["app (local-1): 1 line could not be read"])


@pytest.mark.parametrize("line", [b"{" * 100_000, b"[" * 100_000, b'{"Event": ' + b"9" * 5000 + b"}", b"\xff\xfe",
                                  b'{"Event": "\\ud800"', b"\x00" * 100])
def test_lines_that_are_no_json(tmp_path: Path, line: bytes) -> None:
    log = log_of(tmp_path, LOOP)
    with log.open("ab") as file:
        file.write(line + b"\n")
    found, damaged = qualify([log])
    assert len(found) == 1
    assert damaged == ["app (local-1): 1 line could not be read"]


KEYS = ["Event", "executionId", "sparkPlanInfo", "nodeName", "simpleString", "children", "metrics", "name",
        "accumulatorId", "Task Info", "Accumulables", "ID", "Name", "Update"]
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
                    max_leaves=8)


@given(st.data())
@settings(max_examples=examples(30))
def test_changed_events_never_end_the_command(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    event: dict[str, Any] = json.loads(json.dumps(data.draw(st.sampled_from([
        {"Event": "x.SparkListenerSQLExecutionStart", "executionId": 0, "description": "d", "sparkPlanInfo": LOOP},
        task(0, a1=5, a3=6), {"Event": "x.SparkListenerDriverAccumUpdates", "accumUpdates": [[1, 5]]}]))))
    at: Any = event
    while data.draw(st.booleans()) and isinstance(at, (dict, list)) and at:
        key = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else list(range(len(at)))))
        if not isinstance(at[key], (dict, list)) or data.draw(st.booleans()):
            at[key] = data.draw(JSON)
            break
        at = at[key]
    log = log_of(tmp_path_factory.mktemp("log"), LOOP)
    with log.open("a") as file:
        file.write(json.dumps(event) + "\n")
    found, damaged = qualify([log])
    as_text(found, damaged)


#: What is run with limits: 400 MiB more than the program itself has, and CPU seconds.
LIMITED = """
import resource, sys
from splitjoin.cli import main
import splitjoin.qualify.joins, sqlglot, pyarrow
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + 400 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (used, used))
spent = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime) + 12
resource.setrlimit(resource.RLIMIT_CPU, (spent, spent))
sys.exit(main(["spark-qualify", sys.argv[1]]))
"""


def limited(log: Path) -> str:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(log)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are set as on Linux")
def test_costs_are_bounded(tmp_path: Path) -> None:
    """Of long names and brackets, of a line of 20 MB, and of files that unpack to a thousand times their size."""
    texts = [f"BroadcastNestedLoopJoin BuildRight, Inner, ({text} < a#2)" for text in (
        "a" * 100_000, "a." * 50_000, "<" * 100_000, "`" * 99_999, "(" * 30_000, "x#1 + " * 1_600 + "x#1",
        "ExistenceJoin(" * 7_000, "#" * 100_000, "INTERVAL '" * 9_000, "(-" * 4_000 + "x#1" + ")" * 4_000)]
    log = log_of(tmp_path, *({**LOOP, "simpleString": text, "metrics": []} for text in texts))
    with log.open("ab") as file:
        file.write(b'{"Event": "' + b"x" * 20_000_000 + b'"}\n')
    (tmp_path / "one_line.gz").write_bytes(gzip.compress(bytes(2**28)))
    for lines, line in (("lines", b"{}\n"), ("events", b'{"Event": "' + b"x" * 1000 + b'"}\n')):
        (tmp_path / f"{lines}.gz").write_bytes(gzip.compress(line * (2**25 // len(line))))
        (tmp_path / f"{lines}.zstd").write_bytes(packed(line * (2**25 // len(line))))
    said = limited(tmp_path)
    assert "1 line left out: longer than 16,777,216 bytes" in said
    assert "one_line.gz ends early: it unpacks to more than 52," in said
    for name in ("lines.gz", "lines.zstd"):
        assert f"{name} is not read to its end: too many lines of the log are no event" in said
    for name in ("events.gz", "events.zstd"):
        assert f"{name} ends early: it unpacks to more than 16,777,216 bytes" in said


def test_the_plans_and_counts_that_are_kept_are_bounded(tmp_path: Path) -> None:
    log = log_of(tmp_path, *(LOOP for _ in range(20)))
    with log.open("a") as file:
        file.writelines(json.dumps(task(at, a1=1)) + "\n" for at in range(8))
    [app], _ = read_logs([log], plan_bytes=10_000, counts=5)
    assert (len(app.executions), app.counts[1]) == (3, dict.fromkeys(range(5), 1))
    assert app.damaged == ["20 events left out: more plans or counts than are kept"]


def test_the_joins_that_are_read_are_bounded(tmp_path: Path) -> None:
    found, damaged = qualify([log_of(tmp_path, *({**LOOP, "metrics": []} for _ in range(5)))], most=3)
    assert (len(found), damaged) == (3, ["app (local-1): of its joins, the first 3 were read"])


def test_the_command_reads_a_folder_with_a_log_that_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                                   ) -> None:
    log_of(tmp_path, LOOP)
    (tmp_path / "other.lz4").write_bytes(b"x")
    assert main(["spark-qualify", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "condition  r.x < s.a" in said
    assert "Not all was read: " in said
