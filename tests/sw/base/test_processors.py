"""The number of processors that a process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from splitjoin.base import processors as module
from splitjoin.base.processors import processors


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of that of control groups, and eight processors."""
    monkeypatch.setattr(module, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(module, "_QUOTA_1", tmp_path / "quota")
    monkeypatch.setattr(module, "_PERIOD_1", tmp_path / "period")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    return tmp_path


def test_affinity(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert processors() == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert processors() == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1


@pytest.mark.parametrize(("text", "expected"), [
    ("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("9900000 100000", 8), ("", 8)],
    ids=["none", "two", "one and a half", "half", "more than there are", "damaged"])
def test_quota(groups: Path, text: str, expected: int) -> None:
    (groups / "cpu.max").write_text(text)
    assert processors() == expected


@pytest.mark.parametrize(("quota", "expected"), [("-1", 8), ("300000", 3), ("1000", 1)])
def test_quota_of_version_1(groups: Path, quota: str, expected: int) -> None:
    (groups / "quota").write_text(quota)
    (groups / "period").write_text("100000")
    assert processors() == expected
