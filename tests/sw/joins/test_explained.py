"""`splitjoin.explain` of tables: the way before the join, and expected beside counted pairs behind it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin.base.errors import OptionError
from splitjoin.cli import DONE, USAGE, main
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.cpu.band_join import BandJoin

ROWS = 4000


def tables() -> tuple[pa.Table, pa.Table]:
    """Times that rise, values and keys at random."""
    random = np.random.default_rng(1)
    return (pa.table({"t": np.arange(ROWS), "x": random.integers(0, ROWS, ROWS), "k": random.integers(0, 9, ROWS)}),
            pa.table({"t": np.arange(ROWS), "a": random.integers(0, ROWS, ROWS), "k": random.integers(0, 9, ROWS)}))


def told(text: splitjoin.Explanation) -> dict[str, str]:
    """The lines by name."""
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in text.splitlines()}


def test_the_expected_pairs_stand_beside_the_counted() -> None:
    r, s = tables()
    band: dict[str, Any] = {"on": "abs(r.x - s.a) <= 3", "device": CpuDevice(threads=1)}
    before, after = told(splitjoin.explain(r, s, **band)), told(splitjoin.explain(r, s, analyze=True, **band))
    result = splitjoin.join(r, s, **band)
    assert before["way"] == after["way"] == result.plan
    assert set(before) == {"way", "threads", "candidates"}
    expected, counted = after["candidates"].split("; ")
    assert counted == f"{result.counters['candidates']:,} looked at"
    assert before["candidates"] == expected
    number = int(expected.split()[1].replace(",", ""))
    assert result.num_rows / 2 < number < 2 * result.num_rows
    assert after["rows"].startswith(f"{result.num_rows:,} rows, ")


@pytest.mark.parametrize("wrong", ["analyse", "analyzes"])
def test_an_argument_that_is_nearly_analyze(wrong: str) -> None:
    r, s = tables()
    with pytest.raises(OptionError, match=rf"no argument '{wrong}' \(did you mean 'analyze'\?\)"):
        splitjoin.explain(r, s, on="r.x = s.a", **{wrong: True})


@pytest.mark.parametrize(("more", "way"), [
    ({"on": "r.k = s.k", "how": "asof", "time": "t"}, "rows without pairs, by equal keys and time"),
    ({"on": "r.k = s.k", "how": "asof", "time": "t", "direction": "nearest"}, "rows without pairs"),
    ({"on": "r.x < s.a", "how": "semi"}, "rows without pairs, by a hash semi join on the first key beyond each bound"),
    ({"on": "r.x <= s.a", "by": "r", "aggregate": {"n": "count(*)"}}, "rows without pairs, by ranges of sorted keys"),
    ({"on": "r.x = s.a"}, "rows of whole tables"),
    ({"on": "r.x = s.a OR r.k = s.k AND r.x < 9"}, "rows of whole tables"),
    ({"on": "r.x = s.a", "window": "RANGE 9", "closed": "left", "time": "t"}, "rows of whole tables"),
    ({"on": "r.x = s.a", "window": "ROWS 9", "engine": "nested"}, "a session"),
    ({"on": "r.x = s.a", "window": "ROWS 9", "device": "golden"}, "a session"),
    ({"on": "r.x = s.a", "how": "asof", "time": "t", "direction": "nearest", "device": "golden"}, "a session"),
])
def test_every_way_is_told_before_it_is_gone(more: dict[str, Any], way: str) -> None:
    r, s = (table[:60] if more.get("device") == "golden" else table for table in tables())
    assert told(splitjoin.explain(r, s, **more))["way"].startswith(way)
    assert told(splitjoin.explain(r, s, analyze=True, **more))["way"].startswith(way)


def test_a_way_that_is_given_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    r, s = tables()
    monkeypatch.setattr(BandJoin, "_allowed", lambda one: 0 if len(one._ways) > one._at + 1 else math.inf)
    text = splitjoin.explain(r, s, analyze=True, on="abs(r.x - s.a) <= 9 AND r.k = s.k", threads=2)
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("candidates")] == ["fit", "at"]
    assert "given up: more than expected" in text
    assert " of 2; the work is expected to take " in text


def test_queries_and_wrong_use() -> None:
    r, s = tables()
    query = splitjoin.query(r.schema, s.schema, on="r.x = s.a", window="ROWS 8")
    assert splitjoin.explain(query, cores=2).startswith("condition   (r.x = s.a)")
    with pytest.raises(splitjoin.SplitJoinError, match="a query is explained alone"):
        splitjoin.explain(query, s)
    with pytest.raises(splitjoin.SplitJoinError, match="explain needs two tables"):
        splitjoin.explain(r)
    with pytest.raises(splitjoin.SplitJoinError, match="a join needs a condition"):
        splitjoin.explain(r, s)
    with pytest.raises(splitjoin.SplitJoinError, match="leave to out"):
        splitjoin.explain(r, s, on="TRUE", to="x.csv")
    with pytest.raises(splitjoin.SplitJoinError, match="how must be"):
        splitjoin.explain(r, s, on="TRUE", how="sideways")


def test_the_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    names = []
    for name, table in zip("rs", tables(), strict=True):
        pa.parquet.write_table(table, path := str(tmp_path / f"{name}.parquet"))
        names.append(path)
    join = ["join", "--on", "abs(r.x - s.a) <= 3", "--threads", "auto", *names]
    assert main([*join, "--explain"]) == DONE
    assert "looked at" not in capsys.readouterr().out
    assert main([*join, "--analyze"]) == DONE
    assert "looked at" in capsys.readouterr().out
    assert main([*join, "--analyze", "--format", "json"]) == DONE
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert [fact["name"] for fact in facts] == ["way", "threads", "candidates", "rows", "took"]
    assert main([*join, "--explain", "--format", "html"]) == DONE
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main([*join, "--explain", "--format", "csv"]) == USAGE
    assert "or write one of text, json, html" in capsys.readouterr().err
    assert main([*join, "-o", "-", "--format", "html"]) == USAGE
    assert "--format html is for --explain and --analyze" in capsys.readouterr().err
    schemas = ["--schema-r", "x:int32", "--schema-s", "a:int32"]
    assert main(["explain", *schemas, "--on", "r.x = s.a", "--format", "json"]) == DONE
    assert json.loads(capsys.readouterr().out)["facts"][0]["name"] == "condition"
    assert main([*join, "--explain", "-o", "x.csv"]) == USAGE
    assert "leave -o out" in capsys.readouterr().err
    assert main([*join, "--explain", "--analyze"]) == USAGE
    assert "leave one of them out" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*join[:4], "some", *names])
    assert "invalid number or 'auto' value: 'some'" in capsys.readouterr().err
