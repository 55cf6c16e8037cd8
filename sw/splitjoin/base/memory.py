"""Memory for results: a clear error before it runs out, instead of NumPy's MemoryError or the end of the process."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

from . import threads
from .errors import CapacityError
from .processors import GROUPS, OWN, control_groups, text_of

#: Bytes that are asked for without looking at how many there are.
_SMALL = 1 << 27
#: The share of each limit that is not given out, as other processes and what is not counted here take some, and the
#: most bytes of it.
_RESERVED, _MOST_RESERVED = 16, 1 << 31
#: Files of a control group: its limit, what it has, and in memory.stat the part of this that files may give up. Version
#: 2 has two limits; version 1 writes a huge one for none, of at least these bytes.
_NO_LIMIT = 1 << 62
_LIMITS = (("memory.max", "memory.current", "inactive_file"), ("memory.high", "memory.current", "inactive_file"),
           ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
#: Bytes of a match while its batch is gathered: its row id once more, and its result item.
MATCH_BYTES = 8 + 18
_REMEDY = ("write it to a file with to='OUT.parquet', use a shorter window or a tighter condition, or take the result "
           "in parts: open the join with splitjoin.open, push smaller batches and poll after each")
#: Bytes of a stored tuple: keys of two conditions, their places in an index, and room to grow.
_STORED = 64


def available_memory() -> int:
    """Bytes that this process may take; `sys.maxsize` where the system does not tell.

    The least of what the system has free without swapping, and of what the process's control groups, those around them
    and its limit of address space leave, each but for a reserve.
    """
    found = [sys.maxsize]
    for limits in (_system, _control_groups, _address_space):
        try:
            found += [free - min(most // _RESERVED, _MOST_RESERVED) for free, most in limits()]
        except (OSError, ValueError, LookupError, ImportError):  # not on this system, or no limit
            continue
    return max(0, min(found))


def _system() -> list[tuple[int, int]]:
    """The bytes that are free, and those of the system."""
    if sys.platform == "linux":
        lines = (line.split() for line in text_of("/proc/meminfo").splitlines())
        told = {words[0]: 1024 * int(words[1]) for words in lines}
        return [(told["MemAvailable:"], told["MemTotal:"])]
    import psutil  # of other systems alone

    memory = psutil.virtual_memory()
    return [(int(memory.available), int(memory.total))]


def _control_groups(groups: Path = GROUPS, own: Path = OWN) -> list[tuple[int, int]]:
    """The bytes that each control group with a limit leaves, and those that it may have."""
    found = []
    for folder in control_groups("memory", groups, own):
        for limit, used, cached in _LIMITS:
            try:
                if (most := int(text_of(f"{folder}/{limit}"))) >= _NO_LIMIT:
                    continue
                taken = int(text_of(f"{folder}/{used}"))
                stat = dict(line.split() for line in text_of(f"{folder}/memory.stat").splitlines())
            except (OSError, ValueError):  # of the other version, or without a limit
                continue
            # Pages of files that nobody uses now count as taken, but are given up as soon as memory is asked for.
            found.append((most - taken + int(stat.get(cached, 0)), most))
    return found


def _address_space() -> list[tuple[int, int]]:
    """The bytes of addresses that the process's limit leaves, and the limit."""
    import resource  # not on Windows

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if soft == resource.RLIM_INFINITY else [(soft - _used(0, "vms"), soft)]


def used_memory() -> int:
    """Bytes of memory that this process takes, with what it shares. Raises `OSError` where the system does not tell."""
    return _used(1, "rss")


def _used(place: int, name: str) -> int:
    if sys.platform == "linux":
        import resource

        return int(text_of("/proc/self/statm").split()[place]) * resource.getpagesize()
    import psutil

    return int(getattr(psutil.Process().memory_info(), name))


def check_memory(pairs: int, need: int) -> None:
    """Raise `CapacityError` unless ``need`` bytes, for a result of ``pairs`` pairs so far, can be had."""
    if need > _SMALL:
        free = available_memory()
        if need > free:
            raise too_large(pairs, f"it needs {size_text(need)} more and {size_text(free)} are free")


def room_for(most: int, size: int) -> int:
    """The number of at most ``most`` rows of ``size`` bytes that fit into memory; `sys.maxsize` where they take so
    little that nobody looks.
    """
    return sys.maxsize if most * size <= _SMALL else available_memory() // size


def window_bytes(rows: int) -> int:
    """About how many bytes a device of this process takes for windows of ``rows`` tuples, beside the tables."""
    return rows * _STORED


def check_window(rows: int) -> None:
    """Raise `CapacityError` unless windows of ``rows`` tuples can be had."""
    need = window_bytes(rows)
    if need > _SMALL and need > (free := available_memory()):
        raise CapacityError(f"without a window, all {rows:,} rows stay in memory, which takes about {size_text(need)}, "
                            f"but {size_text(free)} are free; give a window, such as window='ROWS 1000000'")


def too_large(pairs: int, why: str = "memory ran out") -> CapacityError:
    """The error for a result of ``pairs`` pairs so far that does not fit into memory, and why."""
    return CapacityError(f"the result must fit into memory, but at {pairs:,} pairs {why}; {_REMEDY}")


def too_many(pairs: int, need: int, *, is_rows: bool) -> CapacityError:
    """The error for a join of so many ``pairs`` in all, which need so many bytes. ``is_rows``: each is a row."""
    made = "rows of the join" if is_rows else "pairs that the rows of the join are made of"
    return CapacityError(f"the {made} must fit into memory, but there are {pairs:,}, which take about "
                         f"{size_text(need)}, and {size_text(available_memory())} are free; {_REMEDY}")


def give_back() -> None:
    """Give freed memory back to the system, if the C library is glibc.

    It keeps freed arrays of some MiB for the next ones, but Arrow, which makes the columns of a result, has memory of
    its own. Takes a millisecond for some 40 MiB.
    """
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Any:
    """The function malloc_trim of glibc; None in other C libraries."""
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):  # Windows has no library of this name
        return None


def size_text(n: int) -> str:
    """``n`` bytes, as people read them."""
    if n < 2**20:
        return f"{n / 2**10:,.0f} KiB" if n >= 2**10 else f"{n:,} bytes"
    return f"{n / 2**30:,.1f} GiB" if n >= 2**30 else f"{n / 2**20:,.0f} MiB"


class MatchMemory:
    """Counts matches that are found but not gathered yet; raises `CapacityError` before gathering them needs too much.

    ``before``: pairs of the result that were found earlier. ``size``: bytes that gathering takes for each match, 0 for
    candidates, which are dropped instead. Threads may count at the same time.
    """

    def __init__(self, before: int = 0, size: int = MATCH_BYTES):
        self._before, self._size = before, size
        self._matches = self._checked = 0
        self._lock = threads.lock()

    def add(self, matches: int) -> None:
        """Count ``matches`` more."""
        with self._lock:
            self._matches += matches
            if (self._matches - self._checked) * self._size < _SMALL:
                return
            self._checked = self._matches
            found = self._matches
        check_memory(self._before + found, found * self._size)
