"""The guide's examples run, and print what the guide says."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from splitjoin import spark as splitjoin_spark
from splitjoin.errors import InputError

GUIDE = Path(__file__).parents[3] / "docs" / "spark.md"


def test_examples(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(splitjoin_spark, "local_session", lambda name, cores: spark)
    blocks = re.findall(r"```(python|text)\n(.*?)```", GUIDE.read_text(), re.S)
    names: dict[str, Any] = {}
    printed = []
    for kind, code in blocks:
        if kind == "python":
            exec(compile(code, str(GUIDE), "exec"), names)
            printed.append(capsys.readouterr().out)
        else:
            assert printed[-1] == code
    assert [kind for kind, _ in blocks] == ["python", "python", "text", "python", "python"]
    assert printed[0].count("\n") > 6
    assert printed[2].split()[0] == "200"
    assert len(names["rows"]) == names["metrics"].pairs > 5
    assert isinstance(names["reason"], InputError)
