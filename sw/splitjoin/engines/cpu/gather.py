"""The gather side of the CPU engine: the workers' matches, probe by probe, as result items in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..device import ITEM, Items
from .jit import compiled
from .worker import Batch, Found

__all__ = ["gather"]

#: Runs a function of two items, which may be at the same time.
Two = Callable[[Callable[[int], int], tuple[int, int]], list[int]]


def gather(batch: Batch, found: Sequence[dict[str, Found]], every: int, inner: int,
           opened: npt.NDArray[np.int64], two: Two | None = None) -> tuple[Items, int]:
    """The items of a batch, and how many are pairs.

    ``found``: per worker and stream the probes' matches. ``every``: a star after so many probes of a stream, 0 for
    none. ``inner``: a star also between slices of so many stored tuples, 0 for none. ``opened`` (2,): probes of R and
    S since the last star; moves on. ``two``: runs a function for the first and for the second half of the arrivals, at
    the same time.
    """
    merged = {side: _merged([f[side] for f in found]) for side in ("r", "s")}
    matches = sum(len(rows) for _, rows in merged.values())
    room = matches + len(batch.stream)
    if inner:
        room += sum(int(((end - start) // inner).sum()) for start, end in batch.windows.values())
    items = np.empty(room, ITEM)
    lists = (batch.stream, batch.first["r"], batch.first["s"])
    if inner:
        n = _assemble_slices(*lists, *batch.windows["r"], *batch.windows["s"], *merged["r"], *merged["s"], every, inner,
                             opened, items)
    elif two is None:
        n = _assemble(*lists, *merged["r"], *merged["s"], every, opened, items)
    else:
        starts = [_Start(0, (0, 0), (0, 0), 0, opened.copy()), _middle(batch.stream, merged, every, opened)]
        ends = (starts[1].arrivals, len(batch.stream))

        def half(which: int) -> int:
            at, (r, s), (m_r, m_s) = starts[which], starts[which].probes, starts[which].matches
            return at.items + int(_assemble(
                batch.stream[at.arrivals:ends[which]], batch.first["r"] + r, batch.first["s"] + s, merged["r"][0][r:],
                merged["r"][1][m_r:], merged["s"][0][s:], merged["s"][1][m_s:], every, at.opened, items[at.items:]))

        n = two(half, (0, 1))[1]
        opened[:] = starts[1].opened
    # Unused room for stars is released, as the items may be kept for long.
    return (items if n == room else items[:n].copy()), matches


@dataclass(frozen=True)
class _Start:
    """The beginning of a part of a batch: the ``arrivals`` and ``items`` before it, the ``probes`` and ``matches`` of R
    and of S before it, and the probes since the last star.
    """

    arrivals: int
    probes: tuple[int, int]
    matches: tuple[int, int]
    items: int
    opened: npt.NDArray[np.int64]


def _middle(stream: npt.NDArray[np.uint8], merged: dict[str, Found], every: int,
            opened: npt.NDArray[np.int64]) -> _Start:
    """The beginning of the second half of the arrivals."""
    half = len(stream) // 2
    s = int(np.count_nonzero(stream[:half]))
    probes = (half - s, s)
    matches = (int(merged["r"][0][:probes[0]].sum()), int(merged["s"][0][:s].sum()))
    since = opened + probes
    stars = int((since // every).sum()) if every else 0
    return _Start(half, probes, matches, sum(matches) + stars, since % every if every else opened.copy())


def _merged(found: Sequence[Found]) -> Found:
    """One worker's list per probe behind the other's, sorted by row."""
    if len(found) == 1:
        return found[0]
    counts = np.stack([f[0] for f in found])
    rows = np.concatenate([f[1] for f in found])
    out = np.empty(len(rows), np.int64)
    _merge(counts, rows, np.array([0, *np.cumsum([len(f[1]) for f in found[:-1]])], np.int64), out)
    return counts.sum(axis=0), out


@compiled
def _put(out: Any, at: Any, kind: Any, side: Any, probe: Any, stored: Any) -> Any:
    out[at].kind = kind
    out[at].side = side
    out[at].r = stored if side else probe
    out[at].s = probe if side else stored
    return at + 1


@compiled
def _assemble(stream: Any, first_r: Any, first_s: Any, counts_r: Any, rows_r: Any, counts_s: Any, rows_s: Any,
              every: Any, opened: Any, out: Any) -> Any:
    """Write the items of a batch to ``out`` and return how many there are.

    ``stream`` (n,): the arrivals. Per stream: the row id of its first probe, how many matches each probe has, and their
    rows one after the other. ``every``: a star after so many probes of a stream, 0 for none. ``opened`` (2,): probes
    since the last star.
    """
    at = i_r = i_s = m_r = m_s = np.int64(0)
    open_r, open_s = opened[0], opened[1]
    for n in range(len(stream)):
        if stream[n] == 0:
            for _ in range(counts_r[i_r]):
                at = _put(out, at, 0, 0, first_r + i_r, rows_r[m_r])
                m_r += 1
            i_r += 1
            open_r += 1
            if open_r == every:
                open_r = 0
                at = _put(out, at, 1, 0, first_r + i_r - 1, -1)
        else:
            for _ in range(counts_s[i_s]):
                at = _put(out, at, 0, 1, first_s + i_s, rows_s[m_s])
                m_s += 1
            i_s += 1
            open_s += 1
            if open_s == every:
                open_s = 0
                at = _put(out, at, 1, 1, first_s + i_s - 1, -1)
    if every:
        opened[0], opened[1] = open_r, open_s
    return at


@compiled
def _assemble_slices(stream: Any, first_r: Any, first_s: Any, start_r: Any, end_r: Any, start_s: Any, end_s: Any,
                     counts_r: Any, rows_r: Any, counts_s: Any, rows_s: Any, every: Any, inner: Any, opened: Any,
                     out: Any) -> Any:
    """The same with a star also between slices of ``inner`` stored tuples; also takes the probes' windows."""
    at = np.int64(0)
    i_r = i_s = m_r = m_s = np.int64(0)
    for n in range(len(stream)):
        side = stream[n]
        if side == 0:
            probe, start, end, m, found = first_r + i_r, start_r[i_r], end_r[i_r], m_r, m_r + counts_r[i_r]
            i_r += 1
            m_r = found
        else:
            probe, start, end, m, found = first_s + i_s, start_s[i_s], end_s[i_s], m_s, m_s + counts_s[i_s]
            i_s += 1
            m_s = found
        limit = start + inner
        while m < found:
            row = rows_s[m] if side else rows_r[m]
            while row >= limit:
                at = _put(out, at, 1, side, probe, -1)
                limit += inner
            at = _put(out, at, 0, side, probe, row)
            m += 1
        while limit < end:
            at = _put(out, at, 1, side, probe, -1)
            limit += inner
        if every:
            opened[side] += 1
            if opened[side] >= every:
                opened[side] = 0
                at = _put(out, at, 1, side, probe, -1)
    return at


@compiled
def _merge(counts: Any, rows: Any, at: Any, out: Any) -> None:
    """``counts`` (workers, n); ``at`` (workers,): where each worker's rows begin; moves on."""
    n = np.int64(0)
    for p in range(counts.shape[1]):
        before, lists = n, 0
        for w in range(counts.shape[0]):
            lists += counts[w, p] > 0
            for _ in range(counts[w, p]):
                out[n] = rows[at[w]]
                at[w] += 1
                n += 1
        if lists > 1:
            out[before:n].sort()
