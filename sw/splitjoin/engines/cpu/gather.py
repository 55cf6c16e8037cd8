"""The gather side of the CPU engine: the matches of all probes as result items in order, each written once.

Threads share the arrivals of a batch. The place of each part's items follows from how many the parts before it have.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiled.intrinsics import load_int64
from ..compiled.jit import compiled
from ..compiled.store import ReusedArrays
from ..device import ITEM, Items
from . import tickets
from .block import Block, Field, entry_of
from .finder import Batch, Found
from .tickets import claim, complete, make_control

__all__ = ["ITEM_FIELDS", "PARTS", "entry_for_many", "entry_for_one", "gather", "gather_parts"]

#: Digests of these are part of what machine code here depends on.
COMPILED_WITH = (tickets,)
#: Parts for each thread.
PARTS = 2
#: What they take.
ITEM_FIELDS = (
    Field("control"), Field("limits"), Field("stream", "uint8"), Field("cuts"), Field("parts", dimensions=2),
    Field("first_r", dimensions=0), Field("first_s", dimensions=0), Field("start_r"), Field("end_r"), Field("start_s"),
    Field("end_s"), Field("counts_r"), Field("pieces_r", dimensions=2), Field("counts_s"),
    Field("pieces_s", dimensions=2), Field("every", dimensions=0), Field("inner", dimensions=0), Field("opened"),
    Field("out", "ITEM"))


def gather(batch: Batch, found: dict[str, Found], every: int, inner: int, opened: npt.NDArray[np.int64]
           ) -> tuple[Items, int]:
    """The items of a batch, and how many are pairs.

    ``found``: per stream the probes' matches. ``every``: a star after so many probes of a stream, 0 for none.
    ``inner``: a star also between slices of so many stored tuples, 0 for none. ``opened`` (2,): probes of R and S since
    the last star; moves on.
    """
    matches = sum(of.matches for of in found.values())
    since = [int(opened[n]) + len(found[side].counts) for n, side in enumerate(("r", "s"))]  # the last stars
    room = matches + (since[0] // every + since[1] // every if every else 0)
    if inner:
        room += sum(int(np.maximum((end - start - 1) // inner, 0).sum()) for start, end in batch.windows.values())
    items = np.empty(room, ITEM)
    fixed = (batch.first["r"], batch.first["s"], *batch.windows["r"], *batch.windows["s"], found["r"].counts,
             found["r"].pieces, found["s"].counts, found["s"].pieces, every, inner, opened, items)
    if batch.team.size == 1:
        assemble(batch.stream, 0, 0, 0, 0, 0, *fixed)
    else:
        n = PARTS * batch.team.size
        cuts, limits = len(batch.stream) * np.arange(n + 1) // n, n * np.arange(1, 4)
        kept = batch.team.kept
        block, reused = kept.get("gather") or kept.setdefault("gather", (Block(ITEM_FIELDS), ReusedArrays()))
        control = make_control(limits, patient=batch.team.is_patient, reused=reused)
        values = control, limits, batch.stream, cuts, np.zeros((n, 4), np.int64), *fixed
        for field, value in zip(ITEM_FIELDS, values, strict=True):
            block.put(field.name, value)
        batch.team.share(entry_for_many(), block.address)
    if every:
        opened[0], opened[1] = since[0] % every, since[1] % every
    return items, matches


@cache
def entry_for_many() -> int:
    """The entry by which threads share the writing of items, of a block of `ITEM_FIELDS`."""
    return entry_of(gather_parts, ITEM_FIELDS, sys.modules[__name__], tickets)


@cache
def entry_for_one() -> int:
    """The entry that writes all items, for one thread; of a block of `ITEM_FIELDS`, of which ``control``, ``limits``,
    ``cuts`` and ``parts`` are not read.
    """
    taken = [field.name for field in ITEM_FIELDS if field.name not in ("control", "limits", "stream", "cuts", "parts")]
    return entry_of(assemble, ITEM_FIELDS, sys.modules[__name__], tickets, body=(
        f"assemble(stream, 0, 0, 0, 0, 0, {', '.join(taken)})"))


@compiled
def gather_parts(thread: Any, control: Any, limits: Any, stream: Any, cuts: Any, parts: Any, first_r: Any, first_s: Any,
          start_r: Any, end_r: Any, start_s: Any, end_s: Any, counts_r: Any, pieces_r: Any, counts_s: Any,
          pieces_s: Any, every: Any, inner: Any, opened: Any, out: Any) -> None:
    """Three phases of a task for each part of the arrivals: count its probes, count their matches, write the items.

    ``cuts`` (parts + 1,): where the parts begin. ``parts`` (parts, 4): the probes of S, then the matches of R's and
    S's probes, and the stars within these.
    """
    n = len(parts)
    while True:
        task = claim(control, limits, thread)
        if task < 0:
            return
        part = task % n
        a, b = cuts[part], cuts[part + 1]
        if task < n:
            s = np.int64(0)
            for i in range(a, b):
                s += stream[i]
            parts[part, 0] = s
        else:
            s = m_r = m_s = slices = np.int64(0)
            for before in range(part):
                s += parts[before, 0]
                m_r += parts[before, 1]
                m_s += parts[before, 2]
                slices += parts[before, 3]
            if task >= 2 * n:
                assemble(stream[a:b], a - s, s, m_r, m_s, slices, first_r, first_s, start_r, end_r, start_s, end_s,
                          counts_r, pieces_r, counts_s, pieces_s, every, inner, opened, out)
            else:
                r, to_s = a - s, s + parts[part, 0]
                to_r = b - to_s
                parts[part, 1], parts[part, 2] = _total(counts_r, r, to_r), _total(counts_s, s, to_s)
                if inner:
                    parts[part, 3] = _slices(start_r, end_r, r, to_r, inner) + _slices(start_s, end_s, s, to_s, inner)
        complete(control, limits)


@compiled
def _total(counts: Any, begin: Any, end: Any) -> Any:
    n = np.int64(0)
    for p in range(begin, end):
        n += counts[p]
    return n


@compiled
def _slices(start: Any, end: Any, begin: Any, until: Any, inner: Any) -> Any:
    """The stars between slices of ``inner`` stored tuples in the windows of probes ``begin`` to ``until``."""
    n = np.int64(0)
    for p in range(begin, until):
        n += max((end[p] - start[p] - 1) // inner, 0)
    return n


@compiled
def _put(out: Any, at: Any, kind: Any, side: Any, probe: Any, stored: Any) -> Any:
    out[at].kind = kind
    out[at].side = side
    out[at].r = stored if side else probe
    out[at].s = probe if side else stored
    return at + 1


@compiled
def _place(pieces: Any, match: Any) -> Any:
    """The piece that has match number ``match``, the address of this match, and how many the piece has from it on."""
    piece = np.int64(0)
    while piece < len(pieces) and match >= pieces[piece, 3]:
        match -= pieces[piece, 3]
        piece += 1
    if piece == len(pieces):
        return piece, np.int64(0), np.int64(0)
    return piece, pieces[piece, 2] + 8 * match, pieces[piece, 3] - match


@compiled
def assemble(stream: Any, r: Any, s: Any, m_r: Any, m_s: Any, slices: Any, first_r: Any, first_s: Any, start_r: Any,
              end_r: Any, start_s: Any, end_s: Any, counts_r: Any, pieces_r: Any, counts_s: Any, pieces_s: Any,
              every: Any, inner: Any, opened: Any, out: Any) -> None:
    """Write the items of the arrivals ``stream`` (n,), whose first probes are ``r`` and ``s``, to ``out``, behind those
    of ``m_r`` and ``m_s`` matches and ``slices`` stars between slices.

    Per stream: the row id of the batch's first probe, the windows, how many matches each probe has, and the pieces of
    their rows (`Found`).
    """
    at, open_r, open_s = m_r + m_s + slices, opened[0] + r, opened[1] + s
    if every:
        at += open_r // every + open_s // every
        open_r, open_s = open_r % every, open_s % every
    piece_r, from_r, left_r = _place(pieces_r, m_r)
    piece_s, from_s, left_s = _place(pieces_s, m_s)
    for n in range(len(stream)):
        if stream[n] == 0:
            limit = start_r[r] + inner
            for _ in range(counts_r[r]):
                if left_r == 0:
                    piece_r += 1
                    from_r, left_r = pieces_r[piece_r, 2], pieces_r[piece_r, 3]
                row = load_int64(from_r, 0)
                from_r += 8
                left_r -= 1
                if inner:
                    while row >= limit:
                        at = _put(out, at, 1, 0, first_r + r, -1)
                        limit += inner
                at = _put(out, at, 0, 0, first_r + r, row)
            if inner:
                while limit < end_r[r]:
                    at = _put(out, at, 1, 0, first_r + r, -1)
                    limit += inner
            open_r += 1
            if open_r == every:
                open_r = 0
                at = _put(out, at, 1, 0, first_r + r, -1)
            r += 1
        else:
            limit = start_s[s] + inner
            for _ in range(counts_s[s]):
                if left_s == 0:
                    piece_s += 1
                    from_s, left_s = pieces_s[piece_s, 2], pieces_s[piece_s, 3]
                row = load_int64(from_s, 0)
                from_s += 8
                left_s -= 1
                if inner:
                    while row >= limit:
                        at = _put(out, at, 1, 1, first_s + s, -1)
                        limit += inner
                at = _put(out, at, 0, 1, first_s + s, row)
            if inner:
                while limit < end_s[s]:
                    at = _put(out, at, 1, 1, first_s + s, -1)
                    limit += inner
            open_s += 1
            if open_s == every:
                open_s = 0
                at = _put(out, at, 1, 1, first_s + s, -1)
            s += 1
