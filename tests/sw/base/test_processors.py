"""The number of processors that a process may use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitjoin.base.processors import processors


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def group(folder: Path, text: str) -> None:
    """A control group of version 2 that says ``text``, or of version 1 with a quota."""
    folder.mkdir(parents=True, exist_ok=True)
    if text.lstrip("-").isdigit():
        (folder / "cpu.cfs_quota_us").write_text(text)
        (folder / "cpu.cfs_period_us").write_text("100000")
    else:
        (folder / "cpu.max").write_text(text)


def found(folder: Path, own: str | None = None) -> int:
    """The number where control groups are in ``folder``, and the process has those ``own`` says."""
    if own is not None:
        (folder / "own").write_text(own)
    return processors(folder, folder / "own")


@pytest.mark.usefixtures("eight")
def test_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(tmp_path) == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert found(tmp_path) == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert found(tmp_path) == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no affinity")
def test_one_processor_of_this_machine() -> None:
    """As under ``taskset``, in a process of its own."""
    code = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); " \
           "from splitjoin.base.processors import processors; print(processors())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(("text", "expected"), [
    ("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("9900000 100000", 8),
    ("damaged", 8)], ids=["none", "two", "one and a half", "half", "more than there are", "damaged"])
def test_quota(tmp_path: Path, text: str, expected: int) -> None:
    group(tmp_path, text)
    assert found(tmp_path) == expected


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(("quota", "expected"), [("-1", 8), ("300000", 3), ("1000", 1)])
def test_quota_of_version_1(tmp_path: Path, quota: str, expected: int) -> None:
    group(tmp_path / "cpu", quota)
    assert found(tmp_path) == expected


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(("inner", "outer", "expected"), [
    ("300000 100000", "max 100000", 3), ("300000 100000", "200000 100000", 2), ("max 100000", "500000 100000", 5),
    ("max 100000", "max 100000", 8)])
def test_the_least_of_the_groups_around_a_process(tmp_path: Path, inner: str, outer: str, expected: int) -> None:
    group(tmp_path / "user.slice", outer)
    group(tmp_path / "user.slice/job:1.service", inner)
    assert found(tmp_path, "1:name=systemd:/elsewhere\n0::/user.slice/job:1.service\n") == expected


@pytest.mark.usefixtures("eight")
def test_groups_of_version_1_around_a_process(tmp_path: Path) -> None:
    group(tmp_path / "cpu/a", "400000")
    group(tmp_path / "cpu/a/b", "-1")
    group(tmp_path / "cpu/other", "100000")
    assert found(tmp_path, "9:cpuset:/other\n4:cpu,cpuacct:/a/b\n0::/\n") == 4


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("own", ["", "0::/../outside\n", "0\n", "0::/gone/away\n"])
def test_groups_that_are_not_shown(tmp_path: Path, own: str) -> None:
    group(tmp_path.parent / "outside", "100000 100000")
    assert found(tmp_path, own) == 8
    group(tmp_path, "600000 100000")
    assert found(tmp_path, own) == 6
