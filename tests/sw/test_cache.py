"""The cache folder: where it is, whom it belongs to, what it holds at most, and what is said when there can be none."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from pathlib import Path

import platformdirs
import pytest
from splitjoin import ToolError, cache as cache_module
from splitjoin.cache import cache_folder, cache_limit, locked, making, trim


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


def test_the_folder_is_the_platform_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPLITJOIN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == platformdirs.user_cache_path("splitjoin")


def test_others_cannot_read_a_new_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "new" / "cache"))
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(mode: int, monkeypatch: pytest.MonkeyPatch,
                                                      tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("SPLITJOIN_CACHE", str(folder))
    with pytest.raises(ToolError, match=f"nobody else may write to its folder, but {re.escape(str(folder))} has mode "
                                        f"{mode:04o}; remove it or chmod 700 it"):
        cache_folder()
    folder.chmod(0o755)
    assert cache_folder() == folder


def test_a_folder_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    mine = tmp_path.stat().st_uid
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    try:
        with pytest.raises(ToolError, match=f"must be this user's own, but {re.escape(str(tmp_path))} is of user"):
            cache_folder()
    finally:
        if os.geteuid() == 0:
            os.chown(tmp_path, mine, -1)


@pytest.mark.parametrize(("text", "limit"), [("", 4 << 30), ("0", 0), ("1000", 1000), ("500 MiB", 500 << 20),
                                             ("2GiB", 2 << 30)])
def test_the_limit(text: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE_LIMIT", text)
    assert cache_limit() == limit


@pytest.mark.parametrize("text", ["-1", "2 GB", "much", "1.5GiB"])
def test_a_wrong_limit(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE_LIMIT", text)
    with pytest.raises(ToolError, match=f"SPLITJOIN_CACHE_LIMIT must be a whole number of .*, not '{text}'"):
        cache_limit()


def entry(folder: Path, names: tuple[str, ...], hours: float) -> None:
    """Files of 1,000 bytes each, last used so many ``hours`` ago."""
    then = time.time() - hours * 3600
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1000)
    for name in names:
        for path in (folder / name, *(folder / name).parents):
            if path != folder and path.is_relative_to(folder):
                os.utime(path, (then, then))


def cached(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"}


KERNEL = ("kernels/k.py", "kernels/__pycache__/k.f-1.nbi", "kernels/__pycache__/k.f-1.1.nbc")
OLD, RUNTIME, NEW = ("model-old.so",), ("runtime-a/verilated.o", "runtime-a/deep/verilated.h"), ("model-new.so",)


@pytest.mark.parametrize(("limit", "left"), [
    (10_000, {*OLD, *RUNTIME, *KERNEL, *NEW}), (6500, {*RUNTIME, *KERNEL, *NEW}), (6000, {*RUNTIME, *KERNEL, *NEW}),
    (5999, {*KERNEL, *NEW}), (3999, {*NEW}), (0, {*NEW})])
def test_the_least_recently_used_goes_first(limit: int, left: set[str], tmp_path: Path) -> None:
    for names, hours in ((KERNEL, 20), (OLD, 40), (NEW, 0.1), (RUNTIME, 30)):
        entry(tmp_path, names, hours)
    (tmp_path / "model-old.lock").touch()
    before = len(cached(tmp_path))
    removed = trim(tmp_path, limit)
    assert cached(tmp_path) == left
    assert removed == 1000 * (before - len(left))
    assert (tmp_path / "model-old.lock").exists()


def test_one_process_trims_at_a_time(tmp_path: Path) -> None:
    entry(tmp_path, OLD, 40)
    with (tmp_path / "trim.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert trim(tmp_path, 0) == 0
    assert trim(tmp_path, 0) == 1000
    assert trim(tmp_path / "missing", 0) == 0


def test_what_is_made_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    monkeypatch.setenv("SPLITJOIN_CACHE_LIMIT", "1500")
    cache_module._trim_once.cache_clear()
    entry(tmp_path, OLD, 40)
    with making(tmp_path / "model-x.lock"):
        entry(tmp_path, ("model-x.so",), 0)
    assert cached(tmp_path) == {"model-x.so"}
