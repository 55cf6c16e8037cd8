"""The control groups of this process on Linux, which limit what it may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["GROUPS", "OWN", "control_groups"]

#: Where Linux shows control groups, and where it tells those of a process: a line ``number:controllers:/path`` for each
#: hierarchy, of which that of version 2 has number 0 and no controllers.
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def control_groups(controller: str, groups: Path = GROUPS, own: Path = OWN) -> Iterator[Path]:
    """The folders of the process's control groups for a ``controller`` ("cpu", "memory") and of those around them, such
    as a container or a service of systemd, of both versions. Some may be missing, or limit nothing.

    ``groups``: the folder of control groups; ``own``: the file that names those of the process.
    """
    yield groups
    yield groups / controller
    try:
        lines = own.read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            top = groups
        elif controller in controllers.split(","):
            top = groups / controller
        else:
            continue
        # Seen from inside a container, a path may lead out of it, to groups that are not shown.
        parts = [part for part in path.split("/") if part]
        if ".." not in parts:
            for n in range(len(parts)):
                yield top.joinpath(*parts[:n + 1])
