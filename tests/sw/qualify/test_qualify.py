"""Joins in Spark's event logs: found, read, counted and shown.

`logs/` holds the log of five joins, written by Spark 4.3 with ``spark.eventLog.enabled``, without the events and fields
that are not read here.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from splitjoin.base.errors import InputError
from splitjoin.cli import main
from splitjoin.qualify import RATE, as_html, as_json, as_text, qualify
from splitjoin.qualify.events import Node
from splitjoin.qualify.joins import _condition, _read

LOGS = Path(__file__).parent / "logs"
LOG = LOGS / "eventlog_v2_local-1" / "events_1_local-1"


def test_range_joins_and_loops_are_found_with_their_counts() -> None:
    found, damaged = qualify([LOGS], rate=3000)
    assert not damaged
    assert {(c.node, c.condition, c.rows) for c in found} == {
        ("BroadcastNestedLoopJoin", "((abs((r.x - s.a)) <= 1) AND (abs((r.ts - s.ts)) <= 10))", (3000, 3000, 1769)),
        ("CartesianProduct", "(r.x < s.a)", (300, 300, 44550)),
        ("SortMergeJoin", "r.k = s.k AND ((r.ts >= (s.ts - 10)) AND (r.ts <= (s.ts + 10)))", (3000, 3000, 14970)),
        ("BroadcastNestedLoopJoin", '(r."<script>alert(1)</script>" < s.a)', (2, 3000, 5940))}
    assert all(c.takes for c in found)
    assert [c.seconds for c in found] == sorted((c.seconds for c in found), reverse=True)
    assert found[0].seconds > 0
    assert [c.predicted for c in found if c.rows[0] == 3000] == [2.0, 2.0]
    assert [c.predicted for c in qualify([LOG])[0] if c.rows[0] == 3000] == [6000 / RATE] * 2


@pytest.mark.parametrize(("text", "condition", "reason"), [
    ("BroadcastNestedLoopJoin BuildRight, ExistenceJoin(exists#9), (x#1 < a#2)", "(x#1 < a#2)",
     "it is of the kind ExistenceJoin(exists#9)"),
    ("BroadcastNestedLoopJoin BuildRight, Cross", "(none)", "it has no condition"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (x#1 < ... 3 more fields)", "(x#1 < ... 3 more fields)", "has cut"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (pyudf(x#1) < a#2)", "(pyudf(r.\"x\") < s.\"a\")", "cannot read"),
])
def test_joins_that_splitjoin_does_not_take(text: str, condition: str, reason: str) -> None:
    inputs = (Node("Scan", "Scan [x#1]", (), {}), Node("Scan", "Scan [a#2]", (), {}))
    node = Node("BroadcastNestedLoopJoin", text, inputs, {})
    said, why, takes = _read(node, *_condition(node))
    assert said == condition
    assert reason in why
    assert not takes


@pytest.mark.parametrize(("kind", "how"), [("Inner", "inner"), ("LeftOuter", "left"), ("LeftAnti", "anti")])
def test_kinds_of_join_are_named(kind: str, how: str) -> None:
    inputs = (Node("Scan", "Scan [x#1]", (), {}), Node("Scan", "Scan [a#2]", (), {}))
    node = Node("BroadcastNestedLoopJoin", f"BroadcastNestedLoopJoin BuildRight, {kind}, (x#1 < a#2)", inputs, {})
    condition, why, takes = _read(node, *_condition(node))
    assert (condition, takes) == ("(r.x < s.a)", True)
    assert why.startswith(f"{how} join; ")


@pytest.mark.parametrize(("text", "keys", "rest"), [
    ("SortMergeJoin [k#1, f(a#2, b#3)], [k#4, c#5L], Inner, (x#6 < y#7)",
     [("k#1", "k#4"), ("f(a#2, b#3)", "c#5L")], "(x#6 < y#7)"),
    ("BroadcastHashJoin [k#1], [k#2], Inner, BuildRight, (x#6 < y#7), false", [("k#1", "k#2")], "(x#6 < y#7)"),
    ("BroadcastHashJoin [k#1], [k#2], Inner, BuildLeft, false", [("k#1", "k#2")], ""),
    ("ShuffledHashJoin [k#1], [k#2], Inner, BuildRight", [("k#1", "k#2")], ""),
])
def test_what_spark_prints_of_a_join(text: str, keys: list[tuple[str, str]], rest: str) -> None:
    assert _condition(Node(text.split()[0], text, (), {})) == (keys, rest)


def test_logs_of_killed_applications_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    whole = LOG.read_text()
    (tmp_path / "cut.inprogress").write_text(whole[: whole.rindex("SparkListenerTaskEnd") + 40])
    found, damaged = qualify([tmp_path])
    assert len(found) == 4
    assert damaged == ["eventlog (local-1795522263567): 1 line could not be read"]
    packed = tmp_path / "cut.gz"
    packed.write_bytes(gzip.compress(whole.encode())[:-200])
    found, damaged = qualify([packed])
    assert found
    assert "cut.gz ends early" in damaged[0]
    assert "Not all was read" in as_text(found, damaged)
    assert "Not all was read" in as_html(found, damaged)


@pytest.mark.parametrize(("name", "data", "reason"), [
    ("log.lz4", b"x", "is compressed by lz4, which is not read here"), ("log", b"hello\nworld\n", "is no event log"),
    ("log", b"", "is no event log")])
def test_what_is_no_event_log(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=reason):
        qualify([tmp_path])


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no event log at"):
        qualify([tmp_path / "nothing"])
    with pytest.raises(InputError, match="holds no event log"):
        qualify([tmp_path])


def test_the_rate_is_the_measured_one() -> None:
    rows = json.loads((Path(__file__).parents[3] / "bench" / "results" / "spark.json").read_text())["rows"]
    [row] = [r for r in rows if r["metric"] == "batch" and r["config"]["way"] == "splitjoin"
             and r["config"]["window_s"] == 10]
    assert pytest.approx(row["value"] * 1000 / row["config"]["cores"], rel=0.1) == RATE


def test_the_command_prints_and_writes_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    assert main(["spark-qualify", str(LOGS), "--rate", "100000", "--html", str(page), "--json", str(data)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("4 joins compare ranges or every pair; splitjoin takes 4 of them")
    assert "3,000 and 3,000 in, 1,769 out" in said
    assert "<script>" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()
    read: dict[str, Any] = json.loads(data.read_text())
    assert len(read["joins"]) == 4
    assert json.loads(as_json([], ["x"])) == {"joins": [], "damaged": ["x"]}
    assert main(["spark-qualify", str(LOGS), "--rate", "0"]) == 1
    assert "--rate must be more than 0" in capsys.readouterr().err
    assert main(["spark-qualify", str(LOGS), "--html", str(tmp_path / "no" / "x.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_names_of_applications_are_shown_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = LOG.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if "SparkListenerApplicationStart" in line)
    event = json.loads(lines[at])
    event["App Name"] = "jobs\x1b[2J\x1b]0;title\x07 \N{RIGHT-TO-LEFT OVERRIDE}"
    lines[at] = json.dumps(event)
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    assert main(["spark-qualify", str(tmp_path / "log")]) == 0
    out = capsys.readouterr().out
    assert r"jobs\x1b[2J\x1b]0;title\x07 \u202e" in out
    assert not {"\x1b", "\x07", "\N{RIGHT-TO-LEFT OVERRIDE}"} & set(out)
