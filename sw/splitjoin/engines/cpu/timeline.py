"""The window of each probe, as an interval of the other stream's row ids (semantics, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Rows
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..compiled.helpers import Team
from ..compiled.store import ReusedArrays, Store
from ..loops import entries as loop_entries, loops
from ..tuning import DEFAULTS
from .tasks import Block, Field, Job

#: Per stream its probes' windows: first row id of the other stream, and the one behind the last.
Windows = dict[str, tuple[Rows, Rows]]

#: Arrivals of a part, if several threads share a batch.
CHUNK = 2048
_UNLIMITED = 2**62


@dataclass(frozen=True)
class Arriving:
    """A batch of arrivals, as far as jobs tell that run with the others of the batch.

    Attributes:
        windows: Those of their probes.
        before: Behind the first entry, how many tuples of S are in each part of the arrivals; all but the last part
            are as long as the first.
        extents: Per part the pairs in its windows and the tuples of the longest one, one behind the other.
        phases: The jobs that write these arrays, in phases that follow each other.
    """

    windows: Windows
    before: Rows
    extents: Rows
    phases: list[list[Job]]


class Timeline:
    """Counter of both streams' tuples, and the event times that RANGE windows need."""

    def __init__(self, query: Query, slack: int = DEFAULTS.slack):
        self._extents = {side: query.window(side) for side in ("r", "s")}
        #: Event times of what RANGE windows may hold.
        self.times = {side: Store(slack) for side in ("r", "s")}
        self.moving = np.zeros(2, np.int64)  # where R's and S's windows begin, for the last probe that looked
        #: Rows of the windows of R and of S.
        self.limits = np.array([_UNLIMITED if extent.rows is None else min(extent.rows, _UNLIMITED)
                                for extent in self._extents.values()])
        self._ranged = [side for side, extent in self._extents.items() if extent.length is not None]
        self._block, self._reused = self.new_block(), ReusedArrays()
        self.ends = {"r": 0, "s": 0}

    def new_block(self) -> Block:
        """A block of the entries, which knows the session's windows."""
        block = Block(_FIELDS)
        block.put("starts", self.moving)
        for number, (side, extent) in enumerate(self._extents.items()):
            block.put(f"limit_{side}", int(self.limits[number]))
            length = 2**64 - 1 if extent.length is None else min(extent.length, 2**64 - 1)
            block.put(f"length_{side}", length - 2**64 if length >= 2**63 else length)
        return block

    @property
    def starts(self) -> dict[str, int]:
        """Per stream the first row that a future probe may still see."""
        found = {}
        for n, side in enumerate(("r", "s")):
            rows = self._extents[side].rows
            found[side] = max(int(self.moving[n]), 0 if rows is None else self.ends[side] - rows)
        return found

    def next(self, arrivals: Arrivals, stream: npt.NDArray[np.uint8], team: Team) -> Arriving:
        """What is known of the next arrivals, of ``stream`` (n,), which are counted."""
        n, lengths, put, array = len(stream), {side: len(arrivals.table(side)) for side in SIDES}, self._block.put, (
            self._reused.array)
        parts = -(-n // CHUNK) if team.size > 1 else 1
        before, extents = array("before", parts + 1, np.int64), array("extents", 2 * parts, np.int64)
        before[-1] = lengths["s"]
        windows: Windows = {side: (array(f"first_{side}", k, np.int64), array(f"last_{side}", k, np.int64))
                   for side, k in lengths.items()}
        for name, value in (("stream", stream), ("size", -(-n // parts) if n else 1), ("before", before),
                            ("extents", extents)):
            put(name, value)
        for number, side in enumerate(SIDES):
            put(f"begin_{side}", int(self.moving[number]))
            put(f"row_{side}", self.ends[side])
            put(f"first_{side}", windows[side][0])
            put(f"last_{side}", windows[side][1])
            self.ends[side] += lengths[side]
            self.moving[number] = max(int(self.moving[number]), self.ends[side] - int(self.limits[number]))
        phases = [[Job(_entry("count"), self._block, parts)]] if parts > 1 else [[]]
        phases.append([Job(_entry("place"), self._block, parts)])
        if self._ranged and n:
            assert arrivals.ts is not None
            put("ts", arrivals.ts)
            for side in SIDES:
                times, k = self.times[side], lengths[side]
                put(f"now_{side}", times.added([np.int64], k)[0] if side in self._ranged else array(
                    f"now_{side}", k, np.int64))
                put(f"times_{side}", times.room[0] if side in self._ranged else self.moving)
                put(f"base_{side}", times.base)
            phases[1].append(Job(_entry("divide"), self._block, parts))
            phases.append([Job(_entry("narrow"), self._block, parts)])
        return Arriving(windows, before, extents, phases)

    def trim(self) -> None:
        """Drop the event times that no future probe needs."""
        if not any(times.end for times in self.times.values()):
            return
        starts = self.starts
        for side, times in self.times.items():
            if times.end:
                times.trim(min(starts[side], times.end))


def extent(windows: Windows) -> tuple[int, int]:
    """The number of pairs of probes and stored tuples in ``windows``, and the tuples of the longest window."""
    told = np.empty(2, np.int64)
    loops()["extent"](*windows["r"], *windows["s"], told)
    return int(told[0]), int(told[1])


#: The block of the library's entries (``windows.hpp``).
_FIELDS = (Field("stream", "uint8"), Field("size", dimensions=0), Field("before"),
           *(Field(f"{name}_{side}", dimensions=0) for name in ("begin", "row", "limit") for side in SIDES),
           *(Field(f"{name}_{side}") for side in SIDES for name in ("first", "last")), Field("extents"), Field("ts"),
           *(Field(f"{name}_{side}") for name in ("now", "times") for side in SIDES),
           *(Field(f"{name}_{side}", dimensions=0) for name in ("base", "length") for side in SIDES), Field("starts"))


def _entry(name: str) -> int:
    return loop_entries()[f"{name}_part"][0]


def entries(*, ranged: bool, counted: bool) -> list[tuple[int, int]]:
    """The phases and the entries of jobs for the windows of a batch, in their order; ``ranged``: by times too;
    ``counted``: of a batch of several parts, in phase 0.
    """
    return [*([(0, _entry("count"))] if counted else []), (1, _entry("place")),
            *([(1, _entry("divide")), (2, _entry("narrow"))] if ranged else [])]
