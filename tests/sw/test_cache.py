"""The cache folder: where it is, and what is said when there can be none."""

from __future__ import annotations

from pathlib import Path

import pytest
from splitjoin import ToolError
from splitjoin.cache import cache_folder, locked


@pytest.mark.parametrize("folder", ["/proc/foo", "/dev/null", "/dev/null/x"])
def test_a_folder_that_cannot_be_used(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", folder)
    with pytest.raises(ToolError, match=f"but {folder} is not .*; set the variable SPLITJOIN_CACHE"):
        cache_folder()


def test_a_lock_that_cannot_be_made() -> None:
    with pytest.raises(ToolError, match="SPLITJOIN_CACHE"), locked(Path("/proc/x.lock")):
        pass


def test_a_relative_folder_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPLITJOIN_CACHE", "own/cache")
    assert cache_folder() == tmp_path / "own" / "cache"
    assert cache_folder().is_dir()
