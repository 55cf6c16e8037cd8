"""The number of processors that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["processors"]

#: Files in which Linux tells a control group's share of processors: version 2 ("max 100000" or "200000 100000", the
#: microseconds in each period), and version 1 (-1 for no limit).
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_QUOTA_1, _PERIOD_1 = (Path("/sys/fs/cgroup/cpu") / name for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))


def processors() -> int:
    """The number of processors that this process may use, at least 1: those that it may run on (affinity), and no more
    than its control group, such as a container, has time for.
    """
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _quota()
    except (OSError, ValueError):  # no control group, or no limit
        return max(1, found)
    return max(1, min(found, -(-quota // period))) if quota > 0 and period > 0 else max(1, found)


def _quota() -> tuple[int, int]:
    if _QUOTA.exists():
        quota, period = _QUOTA.read_text().split()
        return int(quota), int(period)
    return int(_QUOTA_1.read_text()), int(_PERIOD_1.read_text())
