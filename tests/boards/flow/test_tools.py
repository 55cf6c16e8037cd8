"""The synthesis tools, from PyPI or native ones that an environment variable names, and the cache of their results."""

from __future__ import annotations

import pytest

from splitjoin.base.errors import ToolError
from splitjoin_boards.flow.tools import Tool, cached

ECHO = Tool("echo", "no_such_package", "run", "SPLITJOIN_TEST_ECHO")


def test_a_native_program_runs_if_the_variable_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_TEST_ECHO", "echo")
    assert ECHO.run(["one", "two"], tmp_path) == "one two\n"
    assert ECHO.version


def test_a_native_program_that_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_TEST_ECHO", "no-such-program")
    with pytest.raises(ToolError, match="SPLITJOIN_TEST_ECHO must name a program that can be run, not 'no-such-prog"):
        ECHO.run([], tmp_path)


def test_without_any_program_the_error_names_the_package_to_install(tmp_path, monkeypatch):
    monkeypatch.delenv("SPLITJOIN_TEST_ECHO", raising=False)
    with pytest.raises(ToolError, match="pip install 'splitjoin\\[boards\\]' brings it"):
        ECHO.run([], tmp_path)


def test_a_cached_folder_is_made_once_for_each_key(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    made = []

    def make(folder):
        made.append(folder)
        (folder / "report").write_text("ok")

    folders = [cached("kind", key, make) for key in (("a", "b"), ("a", "b"), ("ab", ""))]
    assert folders[0] == folders[1] != folders[2]
    assert len(made) == 2
    assert (folders[0] / "report").read_text() == "ok"


def test_a_folder_whose_making_failed_is_not_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))

    def fail(folder):
        (folder / "half").write_text("")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached("kind", ("a",), fail)
    folder = cached("kind", ("a",), lambda folder: None)
    assert list(folder.iterdir()) == []
