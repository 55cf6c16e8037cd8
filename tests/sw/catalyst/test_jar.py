"""`spark_jar`: the jar is compiled once, and an error says what is missing."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from splitjoin import ToolError
from splitjoin.catalyst import compiler
from splitjoin.catalyst.jar import spark_jar
from splitjoin.cli import main


def test_the_command_prints_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark-jar"]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == spark_jar()  # not compiled again
    with zipfile.ZipFile(path) as archive:
        assert "splitjoin/SplitJoinExtensions.class" in archive.namelist()
        assert all(name.startswith("splitjoin/") for name in archive.namelist())


def test_a_jar_of_the_wheel_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-catalyst_2.12-3.5.8.jar").touch()
    packed = tmp_path / "splitjoin_2.12.jar"
    packed.touch()
    monkeypatch.setattr("splitjoin.catalyst.jar._PACKED", tmp_path)
    assert spark_jar(tmp_path) == packed


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)  # which a Spark session of another test has set
    with pytest.raises(ToolError, match=r"the jar is for a version of Spark, but .* has none; pip install"):
        spark_jar(tmp_path)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(ToolError, match="or set SPARK_HOME"):
        spark_jar()
    (tmp_path / "spark-catalyst_9.9-9.9.9.jar").touch()
    with pytest.raises(ToolError, match=r"cannot make one: \S*javac refuses the sources: .*install a JDK"):
        spark_jar(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"has no jar for the Spark in .*: neither JAVA_HOME nor PATH has a Java"):
        spark_jar(tmp_path)


def test_the_compiler_is_that_of_the_java_which_spark_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of JAVA_HOME first; a runtime without ``javac`` may have the compiler's module."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for home, command, status in (("jdk", "javac", 0), ("runtime", "java", 0), ("bare", "java", 1)):
        (tmp_path / home / "bin").mkdir(parents=True)
        program = tmp_path / home / "bin" / command
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
        found = compiler._compiler()
        assert (found and found[0]) == (None if status else str(program))
