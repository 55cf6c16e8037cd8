"""The number of processors that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

from .control_groups import GROUPS, OWN, control_groups

__all__ = ["processors"]


def processors(groups: Path = GROUPS, own: Path = OWN) -> int:
    """The number of processors that this process may use, at least 1: those that it may run on (affinity), and no more
    than its control group and those around it have time for. ``groups``, ``own``: as of `control_groups`.
    """
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in control_groups("cpu", groups, own):
        try:
            quota, period = _quota(folder)
        except (OSError, ValueError):  # no such group, or no limit
            continue
        if quota > 0 and period > 0:
            found = min(found, -(-quota // period))
    return max(1, found)


def _quota(folder: Path) -> tuple[int, int]:
    """The microseconds that a group has in each period, and those of a period. Version 2 has both in a file, "max
    100000" or "200000 100000"; version 1 says -1 for no limit.
    """
    if (both := folder / "cpu.max").exists():
        quota, period = both.read_text().split()
        return int(quota), int(period)
    return int((folder / "cpu.cfs_quota_us").read_text()), int((folder / "cpu.cfs_period_us").read_text())
