"""The report of `splitjoin spark-qualify`: as text, as a page and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitjoin.cli import main
from splitjoin.qualify import as_html, as_json, as_text, qualify

from .support import LOG, LOGS, log_of, node

ROLLING = LOGS / "eventlog_v2_local-1"


def test_the_command_prints_and_writes_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    assert main(["spark-qualify", str(ROLLING), "--rate", "100000", "--html", str(page), "--json", str(data)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("4 joins compare ranges or every pair; splitjoin takes 4 of them")
    assert "3,000 and 3,000 in, 1,769 out" in said
    assert "<script>" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()
    read: dict[str, Any] = json.loads(data.read_text())
    assert len(read["joins"]) == 4
    assert json.loads(as_json([], ["x"])) == {"joins": [], "damaged": ["x"]}
    assert main(["spark-qualify", str(ROLLING), "--rate", "0"]) == 1
    assert "--rate must be more than 0" in capsys.readouterr().err
    assert main(["spark-qualify", str(ROLLING), "--html", str(tmp_path / "no" / "x.html")]) == 1
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


def test_columns_and_windows_are_shown_and_long_conditions_cut(tmp_path: Path) -> None:
    found, _ = qualify([LOGS / "eventlog_v2_local-2"])
    said, page = as_text(found, []), as_html(found, [])
    assert "  columns    r.x int, r.ts timestamp, s.a int, s.ats timestamp\n" in said
    assert '  window     time=("ts", "ats"), window="RANGE 10 SECONDS"\n' in said
    assert "time=(&quot;ts&quot;, &quot;ats&quot;)" in page
    long = node("CartesianProduct", f"CartesianProduct (x#1 < {'a' * 5000})", node("Scan", "Scan [x#1]"),
                node("Scan", "Scan [a#2]"))
    found, _ = qualify([log_of(tmp_path, long)])
    assert f"r.x < '{'a' * 1993} … (5,008 characters)" in as_text(found, [])
