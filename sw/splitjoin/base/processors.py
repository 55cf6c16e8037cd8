"""The number of processors that this process may use, and the control groups on Linux that limit what it may use."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

#: Where Linux shows control groups, and where it tells those of a process: a line ``number:controllers:/path`` for each
#: hierarchy, of which that of version 2 has number 0 and no controllers.
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


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


def _quota(folder: str) -> tuple[int, int]:
    """The microseconds that a group has in each period, and those of a period. Version 2 has both in a file, "max
    100000" or "200000 100000"; version 1 says -1 for no limit.
    """
    try:
        quota, period = text_of(f"{folder}/cpu.max").split()
    except FileNotFoundError:
        quota, period = (text_of(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    return int(quota), int(period)


def text_of(path: str) -> str:
    """The text of a small file, in half the time that a `Path` takes, as each join looks at many."""
    with open(path) as file:
        return file.read()


def control_groups(controller: str, groups: Path = GROUPS, own: Path = OWN) -> tuple[str, ...]:
    """The folders of the process's control groups for a ``controller`` ("cpu", "memory") and of those around them, such
    as a container or a service of systemd, of both versions. Some may be missing, or limit nothing.

    ``groups``: the folder of control groups; ``own``: the file that names those of the process.
    """
    try:
        return _folders(controller, str(groups), text_of(str(own)))
    except (OSError, ValueError):
        return _folders(controller, str(groups), "")


@lru_cache(maxsize=8)
def _folders(controller: str, groups: str, own: str) -> tuple[str, ...]:
    found = [groups, f"{groups}/{controller}"]
    for line in own.splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            top = groups
        elif controller in controllers.split(","):
            top = f"{groups}/{controller}"
        else:
            continue
        # Seen from inside a container, a path may lead out of it, to groups that are not shown.
        parts = [part for part in path.split("/") if part]
        if ".." not in parts:
            found += ["/".join((top, *parts[:n + 1])) for n in range(len(parts))]
    return tuple(found)
