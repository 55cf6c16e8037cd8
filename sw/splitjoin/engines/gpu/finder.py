"""`GpuFinder`: the matches of a batch's probes, by nested loops on the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import CapacityError
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from ..cpu.codes import lane
from ..cpu.finder import Batch, Finder, Found
from ..cpu.jit import load
from ..cpu.tests_source import used_slots
from .driver import Gpu, is_simulated
from .kernel_source import Shape, kernel_source
from .order import by_probe
from .ring import Ring

__all__ = ["SHAPE", "GpuFinder", "ring_kinds"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: How kernels divide the work; the simulator, which makes a thread of Python's of each of the GPU's, has small blocks.
SHAPE = Shape(threads=2, probes=4, tile=16, unrolled=2) if is_simulated() else Shape()
#: Blocks that keep a GPU busy: its multiprocessors, more than a hundred, run some of them at the same time.
_BLOCKS = 4 if is_simulated() else 2048
#: Room for appended matches of a stream's probes: at first, and at most.
_ROOM, _MOST_ROOM = 1 << 18, 1 << 23
#: Matches of a dense result that are written at a time, as far as one block of probes has no more.
_DENSE = 1 << 25
#: Rows of a batch's windows that kernels can number.
_MOST_ROWS = 1 << 32


def ring_kinds(plan: Plan, side: str) -> list[Any]:
    """The types of the keys of stream ``side`` that its ring has."""
    return [lane(plan.slots(side)[slot].key) for slot in used_slots(plan, side)]


@dataclass(frozen=True)
class _Launch:
    """A kernel that runs: of ``n`` probes, ``blocks`` and ``slices``. ``origin``: the row that it counts from."""

    n: int
    origin: int
    blocks: int
    slices: int
    arguments: tuple[Any, ...]
    arrays: tuple[Any, ...]


class GpuFinder(Finder):
    """Compares probes with all that they see, on ``gpu``.

    Attributes:
        sent, received: Bytes that were copied to the GPU, and from it.
        dense: Batches of one stream's probes whose matches were counted before they were written.
    """

    def __init__(self, plan: Plan, gpu: Gpu, shape: Shape = SHAPE):
        super().__init__()
        self._plan, self._gpu, self._shape = plan, gpu, shape
        self.sent = self.received = self.dense = 0
        with gpu:
            self._streams: dict[str, Any] = {side: gpu.cuda.stream() for side in SIDES}
            self._rings: dict[str, Ring] = {side: Ring(gpu, side, ring_kinds(plan, side)) for side in SIDES}
            self._kernels: dict[str, Any] = {side: load(kernel_source(plan, other_side(side), shape)) for side in SIDES}
            self._totals: dict[str, Any] = {side: gpu.cuda.device_array(1, np.int64) for side in SIDES}
        self._buffers: dict[tuple[str, str], Any] = {}
        self._room: dict[str, int] = dict.fromkeys(SIDES, _ROOM)

    def keep(self, batch: Batch) -> None:
        """Store the keys of the batch on the GPU."""
        with self._gpu:
            for side, ring in self._rings.items():
                keys = [batch.stored[side][slot] for slot in used_slots(self._plan, side)]
                ring.append(keys, len(batch.windows[side][0]), self._streams[side])
                self.sent += sum(key.nbytes for key in keys)
            for stream in self._streams.values():
                stream.synchronize()  # the other stream's probes read them

    def expire(self, batch: Batch) -> None:
        """Drop the tuples that no probe after the batch sees."""
        for side, ring in self._rings.items():
            ring.trim(batch.starts[side])

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches; those of R are put in order while the GPU looks for those of S."""
        with self._gpu:
            launches = {side: self._launch(batch, side) for side in SIDES}
            for side, launch in launches.items():
                if launch is not None and self._room[side]:
                    self._append(side, launch)
            return {side: self._found(batch, side, launch) for side, launch in launches.items()}

    def close(self) -> None:
        """Release the GPU's memory."""
        with self._gpu:
            self._rings, self._totals = {}, {}
            self._buffers.clear()
            self._gpu.release()

    def _launch(self, batch: Batch, side: str) -> _Launch | None:
        """Copy the bounds and windows of the probes of stream ``side``, and divide the work; None if there is none."""
        start, end = batch.windows[side]
        self.count_candidates(int((end - start).sum()))
        n = len(start)
        if not n or int(end[-1]) == int(start[0]):
            return None
        origin, shape, ring = int(start[0]), self._shape, self._rings[other_side(side)]
        if int(end[-1]) - origin >= _MOST_ROWS:
            raise CapacityError(f"the windows of a batch hold {int(end[-1]) - origin:,} tuples, but the GPU engine "
                                f"numbers {_MOST_ROWS - 1:,} at most; give shorter windows, or use device='cpu'")
        firsts = np.arange(0, n, shape.block)
        longest = int((end[np.minimum(firsts + shape.block, n) - 1] - start[firsts]).max())
        tiles = -(-longest // shape.tile)
        blocks = len(firsts)
        span = -(-tiles // min(tiles, max(1, _BLOCKS // blocks)))
        tests = len(self._plan.tests)
        ends = batch.probes[side]
        bounds = [self._sent(side, f"{name}{j}", ends[j + skipped])
                  for j in range(tests) for name, skipped in (("lo", 0), ("hi", tests))]
        windows = [self._sent(side, name, (rows - origin).astype(np.uint32))
                   for name, rows in (("start", start), ("end", end))]
        return _Launch(n, origin, blocks, -(-tiles // span),
                       (span * shape.tile, origin % ring.size, ring.size - 1, *windows), (*ring.arrays, *bounds))

    def _append(self, side: str, launch: _Launch) -> None:
        room, stream = self._room[side], self._streams[side]
        found = self._place(side, "found", room, np.uint64)
        self._totals[side].copy_to_device(np.zeros(1, np.int64), stream)
        self._kernels[side].append[(launch.blocks, launch.slices), self._shape.threads, stream](
            launch.n, 0, *launch.arguments, room, found, self._totals[side], *launch.arrays)

    def _found(self, batch: Batch, side: str, launch: _Launch | None) -> Found:
        """The matches of the probes of stream ``side``, when the GPU has found them."""
        n = len(batch.windows[side][0])
        if launch is None:
            return Found.of(np.zeros(n, np.int64), [])
        stream = self._streams[side]
        if self._room[side]:
            total = int(self._totals[side].copy_to_host(stream=stream)[0])
            stream.synchronize()
            if total <= self._room[side]:
                batch.memory.add(total)
                hits = np.empty(total, np.uint64)
                if total:
                    self._place(side, "found", total, np.uint64)[:total].copy_to_host(hits, stream)
                    stream.synchronize()
                self.received += hits.nbytes + 8
                counts, rows = by_probe(hits, n, launch.origin)
                return Found.of(counts, [(0, n, rows)])
        return self._counted(batch, side, launch)

    def _counted(self, batch: Batch, side: str, launch: _Launch) -> Found:
        """As `_found`, of a dense result: its matches are counted, and then written where they belong."""
        shape, stream, kernels, slices = self._shape, self._streams[side], self._kernels[side], launch.slices
        self.dense += 1
        parts = self._place(side, "counts", launch.n * slices, np.uint32)
        kernels.count[(launch.blocks, slices), shape.threads, stream](
            launch.n, 0, *launch.arguments, parts, slices, *launch.arrays)
        host = np.empty(launch.n * slices, np.uint32)
        parts[:len(host)].copy_to_host(host, stream)
        stream.synchronize()
        self.received += host.nbytes
        places = np.zeros(len(host) + 1, np.int64)
        np.cumsum(host, out=places[1:])
        ends = places[::slices]
        total = int(ends[-1])
        batch.memory.add(total)
        # As many as there were come next time too.
        self._room[side] = 0 if 2 * total > _MOST_ROOM else max(_ROOM, 1 << (2 * total).bit_length())
        found, block = [], 0
        while block < launch.blocks:
            until, begin = block + 1, int(ends[block * shape.block])
            while until < launch.blocks and int(ends[min((until + 1) * shape.block, launch.n)]) - begin <= _DENSE:
                until += 1
            last = min(until * shape.block, launch.n)
            if (size := int(ends[last]) - begin):
                out = self._place(side, "out", size, np.uint32)
                where = self._sent(side, "places", places[:-1] - begin)
                kernels.write[(until - block, slices), shape.threads, stream](
                    launch.n, block, *launch.arguments, where, slices, out, *launch.arrays)
                rows = np.empty(size, np.uint32)
                out[:size].copy_to_host(rows, stream)
                stream.synchronize()
                self.received += rows.nbytes
                found.append((block * shape.block, last, rows + np.int64(launch.origin)))
            block = until
        return Found.of(np.diff(ends), found)

    def _sent(self, side: str, name: str, values: Array) -> Any:
        """A copy of ``values`` (n,) on the GPU, until the next one of that name."""
        buffer = self._place(side, name, len(values), values.dtype)[:len(values)]
        buffer.copy_to_device(np.ascontiguousarray(values), self._streams[side])
        self.sent += values.nbytes
        return buffer

    def _place(self, side: str, name: str, n: int, kind: Any) -> Any:
        """Room on the GPU for ``n`` values or more, which the next call with this name overwrites."""
        found = self._buffers.get((side, name))
        if found is None or len(found) < n:
            self._buffers.pop((side, name), None)
            what = f"{n:,} values of a batch ({name})"
            self._buffers[side, name] = found = self._gpu.array(max(1 << (n - 1).bit_length(), 1), kind, what)
        return found


