"""docs/sql.md: its examples run and print what it says, its statements are taken or refused, its commands work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin import SplitJoinError
from splitjoin.cli import DONE, main
from tests.wheel.pages import commands, words

PAGE = (Path(__file__).parents[4] / "docs" / "sql.md").read_text(encoding="utf-8")
TRADES = pa.schema([("ts", pa.int64()), ("price", pa.int32()), ("note", pa.string()), ("fee", pa.decimal128(9, 2)),
                    ("at", pa.timestamp("us"))])
QUOTES = pa.schema([("ts", pa.int64()), ("ask", pa.int32()), ("seller", pa.string()), ("due", pa.timestamp("us"))])


def examples(kind: str) -> list[str]:
    (block,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)
    return [e.strip() for e in re.sub(r"--.*", "", block).split(";") if e.strip()]


def test_examples(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    printed = ""
    for kind, code in re.findall(r"```(python|text)\n(.*?)```", PAGE, re.S):
        if kind == "python":
            exec(compile(code, "sql.md", "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert printed == code
    assert names["select"].placement.main is not None


@pytest.mark.parametrize("text", examples("sql"))
def test_statements_are_taken(text: str) -> None:
    given = {name: schema for name, schema in (("trades", TRADES), ("quotes", QUOTES)) if name in text.lower()}
    made = splitjoin.sql(text, tables=given, window="ROWS 4")
    assert len(made.schema) >= 1


@pytest.mark.parametrize("text", examples("sql refused"))
def test_statements_are_refused(text: str) -> None:
    with pytest.raises(SplitJoinError) as caught:
        splitjoin.sql(text, trades=TRADES, quotes=QUOTES, window="ROWS 4")
    said, line, mark = str(caught.value).split("\n")
    assert re.search("is not supported|two tables|ORDER BY takes", said)
    assert line.strip() in text
    assert mark.strip("^ ") == ""


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(pa.table({"ts": [1, 4, 9], "price": [10, 20, 30]}), "trades.csv")
    quotes = pa.table({"ts": [2, 5, 9], "ask": [12, 70, 31], "seller": ["ann", "bo", "cy"]})
    pyarrow.parquet.write_table(quotes, "quotes.parquet")
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    run, show, explain = (words(command) for command in commands(block))
    assert main(run[1:]) == DONE
    assert pyarrow.csv.read_csv("out.csv").to_pylist() == [{"ts": 1, "gap": -2}, {"ts": 9, "gap": -1}]
    capsys.readouterr()
    assert main(show[1:]) == DONE
    assert capsys.readouterr().out.startswith("ts  seller\n1   ann\n9   cy\n\npairs                  2\n")
    assert main(explain[1:]) == DONE
    assert "main predicate   (abs((r.price - s.ask)) <= 5) (ON); by range" in capsys.readouterr().out
