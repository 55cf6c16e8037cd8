"""The gather side of the CPU engine: the matches of all probes as result items in order, each written once
(``gather.hpp``).
"""

from __future__ import annotations

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.lang.schema import SIDES

from ..compiled.store import ReusedArrays
from ..device import ITEM, Items
from .finder import Batch, Found
from .tasks import Block, Field, library_entry, make_control

#: Parts for each of several threads.
PARTS = 2
#: What the entry takes.
ITEM_FIELDS = (
    Field("control"), Field("limits"), Field("cuts"), Field("parts"), Field("stream", "uint8"),
    *(Field(f"{name}_{side}", dimensions=0 if name in ("first", "width") else 1)
      for side in SIDES for name in ("first", "start", "end", "counts", "pieces", "width")),
    Field("every", dimensions=0), Field("inner", dimensions=0), Field("opened"), Field("out", "ITEM"))


def entry() -> int:
    """The entry by which threads share the writing of items, of a block of `ITEM_FIELDS`."""
    return library_entry("gather", ITEM_FIELDS)


def gather(batch: Batch, found: dict[str, Found], every: int, inner: int, opened: Ints) -> tuple[Items, int]:
    """The items of a batch, and how many are pairs.

    ``found``: per stream the probes' matches. ``every``: a star after so many probes of a stream, 0 for none.
    ``inner``: a star also between slices of so many stored tuples, 0 for none. ``opened`` (2,): probes of R and S since
    the last star; moves on.
    """
    matches = sum(of.matches for of in found.values())
    since = [int(opened[n]) + len(found[side].counts) for n, side in enumerate(SIDES)]  # the last stars
    room = matches + (since[0] // every + since[1] // every if every else 0)
    if inner:
        room += sum(int(np.maximum((end - start - 1) // inner, 0).sum()) for start, end in batch.windows.values())
    items = np.empty(room, ITEM)
    n = 1 if batch.team.size == 1 else PARTS * batch.team.size
    cuts, limits = len(batch.stream) * np.arange(n + 1) // n, n * np.arange(1, 4)
    kept = batch.team.kept
    block, reused = kept.get("gather") or kept.setdefault("gather", (Block(ITEM_FIELDS), ReusedArrays()))
    block.put_all((
        ("control", make_control(limits, patient=batch.team.is_patient, reused=reused)), ("limits", limits),
        ("cuts", cuts), ("parts", np.zeros(4 * n, np.int64)), ("stream", batch.stream), ("every", every),
        ("inner", inner), ("opened", opened), ("out", items)))
    for side in SIDES:
        of, (start, end) = found[side], batch.windows[side]
        block.put_all((
            (f"first_{side}", batch.first[side]), (f"start_{side}", start), (f"end_{side}", end),
            (f"counts_{side}", of.counts), (f"pieces_{side}", np.ascontiguousarray(of.pieces).reshape(-1)),
            (f"width_{side}", of.pieces.shape[1])))
    batch.team.share(entry(), block.address)
    if every:
        opened[0], opened[1] = since[0] % every, since[1] % every
    return items, matches
