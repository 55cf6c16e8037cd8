"""The guides' examples run, and print what the guides say."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from splitjoin import spark as splitjoin_spark
from splitjoin.base.errors import InputError

ROOT = Path(__file__).parents[3]


def run(page: Path, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run the examples of ``page``; returns what each printed."""
    printed = []
    for kind, code in re.findall(r"```(python|python spark|text)\n(.*?)```", page.read_text(), re.S):
        if kind != "text":
            exec(compile(code, str(page), "exec"), names)
            printed.append(capsys.readouterr().out)
        else:
            assert printed[-1] == code
    return printed


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session that the guides' `local_session` gives."""
    monkeypatch.setattr(splitjoin_spark, "local_session", lambda name, cores: spark)


@pytest.mark.usefixtures("session")
def test_examples_of_batch_joins(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    printed = run(ROOT / "docs" / "spark.md", names, capsys)
    assert printed[0].count("\n") > 6
    assert printed[6].split()[0] == "200"
    assert len(names["rows"]) == names["metrics"].pairs > 5
    assert isinstance(names["reason"], InputError)


@pytest.mark.usefixtures("session")
def test_examples_of_streaming_joins(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    printed = run(ROOT / "docs" / "spark-streams.md", names, capsys)
    assert len(printed) == 8
    assert not names["query"].isActive
    assert names["query"].exception() is None
    counting = names["counts"].writeStream.format("noop").trigger(once=True).start()
    assert counting.awaitTermination(600)  # the machine may be busy
    assert counting.exception() is None


@pytest.mark.long
@pytest.mark.usefixtures("session")
def test_examples_of_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    printed = run(ROOT / "docs" / "guides" / "spark.md", names, capsys)
    names["query"].stop()
    assert printed[0] == "494\n"
    assert names["query"].exception() is None
