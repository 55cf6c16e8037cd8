"""Loops of whole tables: used once they are compiled, and only where enough rows are joined to pay for loading them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from splitjoin.engines.cpu import table_compilation
from splitjoin.engines.cpu.table_compilation import TableCompilation
from splitjoin.engines.cpu.table_loops import LOOPS


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The calls that would start a process that compiles."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(table_compilation, "start_child", lambda *of: calls.append(of))
    return calls


@pytest.fixture(autouse=True)
def no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """These are of a system that has no image."""
    monkeypatch.setattr(table_compilation, "has_images", lambda: False)


def test_many_rows_start_one_process_and_numpy_goes_on(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableCompilation, "_is_known", staticmethod(lambda: False))
    loops = TableCompilation()
    assert [loops.for_rows(1_000_000, "background") for _ in range(5)] == [None] * 5
    assert len(started) == 1
    assert started[0][:2] == ("splitjoin.engines.cpu.table_compilation", "compile_in_background")


def test_few_rows_do_not_load_numba(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableCompilation, "_is_known", staticmethod(lambda: True))
    monkeypatch.delitem(sys.modules, "numba")
    loops = TableCompilation()
    assert loops.for_rows(1000, "background") is None
    assert loops.for_rows(4_000_000, "background") == LOOPS
    assert not started


def test_compiled_first_needs_no_marker(started: list[Any]) -> None:
    assert TableCompilation().for_rows(2, "first") == LOOPS
    assert not started


def test_without_numba_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_compilation, "has_numba", lambda: False)
    assert TableCompilation().for_rows(10_000_000, "first") is None


def test_a_process_that_has_compiled_leaves_a_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    monkeypatch.setattr("splitjoin.engines.cpu.table_loops.LOOPS", {})
    assert not TableCompilation._is_known()
    with pytest.raises(SystemExit) as ended:
        table_compilation.compile_in_background(table_compilation._marker())
    assert ended.value.code == 0
    assert TableCompilation._is_known()
