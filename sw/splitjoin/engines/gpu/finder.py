"""`GpuFinder`: the matches of a batch's probes, by nested loops on the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import CapacityError
from splitjoin.lang.schema import SIDES, other_side

from ..cpu.finder import Batch, Finder, Found
from ..cpu.jit import load
from .comparison import Comparison, Layout
from .driver import Gpu, is_simulated
from .kernel_source import Shape, kernel_source, store_source, views
from .order import by_probe
from .ring import Ring
from .staging import Staging
from .tuning import DEFAULTS, GpuTuning

__all__ = ["SHAPE", "GpuFinder"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: How kernels divide the work; the simulator, which makes a thread of Python's of each of the GPU's, has small blocks.
SHAPE = Shape(threads=2, probes=4, tile=16, unrolled=2) if is_simulated() else Shape()
#: Blocks that keep a GPU busy: its multiprocessors, more than a hundred, run some of them at the same time.
_BLOCKS = 4 if is_simulated() else 2048
#: Threads of a block that stores keys, at most, and matches that are copied beside those that are expected.
_STORING, _SPARE = 256, 1 << 10
#: Rows of a batch's windows that kernels can number.
_MOST_ROWS = 1 << 32


#: Parts of the probes of a stream; the second one has one in so many of them.
_PARTS, _LAST = {"r": ("r", "last r"), "s": ("s", "last s")}, 4


@dataclass(frozen=True)
class _Part:
    """The blocks of probes from ``first`` to before ``until``, whose matches are in a buffer of this ``name``."""

    name: str
    first: int
    until: int


@dataclass(frozen=True)
class _Launch:
    """The work of a kernel: ``n`` probes, in ``blocks`` and ``slices``. ``origin``: the row that it counts from."""

    n: int
    origin: int
    blocks: int
    slices: int
    span: int
    shift: int


class GpuFinder(Finder):
    """Compares probes with all that they see, on ``gpu``.

    Attributes:
        received: Bytes that were copied from the GPU.
        dense: Batches of one stream's probes whose matches were counted before they were written.
    """

    def __init__(self, layout: Layout, gpu: Gpu, shape: Shape = SHAPE, sizes: GpuTuning = DEFAULTS):
        super().__init__()
        self._layout, self._gpu, self._shape, self._sizes = layout, gpu, shape, sizes
        self.received = self.dense = 0
        self._comparisons: dict[str, Comparison] = {}
        self._kernels: dict[str, Any] = {}
        names = {side: [(name, kind) for name, kind, _ in layout.stored[side]] for side in SIDES}
        self._views: dict[str, list[str]] = {side: views(names[side]) for side in SIDES}
        self._stores: dict[str, Any] = {side: load(store_source(names[side])) for side in SIDES}
        with gpu:
            # Matches are copied beside the kernel of the other stream's probes.
            self._stream, self._copies = gpu.cuda.stream(), gpu.cuda.stream()
            self._done: dict[str, Any] = {part: gpu.cuda.event() for parts in _PARTS.values() for part in parts}
            self._rings: dict[str, Ring] = {side: Ring(gpu, side, names[side], sizes.places) for side in SIDES}
        self._keys, self._bounds = Staging(gpu, "the keys of a batch"), Staging(gpu, "the bounds of a batch")
        self._buffers: dict[tuple[str, str], Any] = {}
        self._hosts: dict[str, Array] = dict.fromkeys(self._done, np.empty(0, np.uint64))
        self._room: dict[str, int] = dict.fromkeys(SIDES, sizes.room)
        self._expected: dict[str, int] = dict.fromkeys(self._done, 0)  # matches, as many as the last batch had

    def compare(self, comparisons: Mapping[str, Comparison]) -> None:
        """Find matches by ``comparisons``, one for the probes of each stream, from the next batch on."""
        for side, one in comparisons.items():
            if self._comparisons.get(side) != one:
                self._comparisons[side], self._kernels[side] = one, load(kernel_source(one, self._shape))

    @property
    def sent(self) -> int:
        """Bytes of keys, bounds and windows that were copied to the GPU."""
        return self._keys.sent + self._bounds.sent

    def keep(self, batch: Batch) -> None:
        """Store the keys of the batch on the GPU."""
        with self._gpu:
            at = self._keys.send({side: [_plain(batch.stored[side][n]) for *_, n in self._layout.stored[side]]
                                  for side in SIDES}, self._stream, batch.team)
            for side, ring in self._rings.items():
                n = len(batch.windows[side][0])
                place, threads = ring.extend(n), min(self._shape.block, _STORING)
                self._stores[side].store[max(1, -(-n // threads)), threads, self._stream](
                    n, place, ring.size - 1, *map(self._keys.view, self._views[side]), *at[side],
                    *(self._hits(other_side(side), part) for part in _PARTS[other_side(side)]), *ring.arrays.values())

    def expire(self, batch: Batch) -> None:
        """Drop the tuples that no probe after the batch sees."""
        for side, ring in self._rings.items():
            ring.trim(batch.starts[side])

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches; those of a part are put in order while the GPU looks for others."""
        launches = {side: self._launch(batch, side) for side in SIDES}
        some = [side for side in SIDES if launches[side] is not None]
        with self._gpu:
            at = self._bounds.send({side: self._arrays(batch, side, launch) for side, launch in launches.items()},
                                   self._stream, batch.team)
            parts = {side: self._begin(side, launch, at[side], some[-1:] == [side])
                     for side, launch in launches.items()}
            return {side: self._found(batch, side, launches[side], at[side], parts[side]) for side in SIDES}

    def _begin(self, side: str, launch: _Launch | None, at: tuple[int, int], last: bool) -> list[_Part]:
        """Start looking for the matches of the probes of stream ``side``: of the ``last`` ones in two parts, so that
        few are left to put in order when the GPU has ended.
        """
        if launch is None or not self._room[side]:
            return []
        cut = launch.blocks - launch.blocks // _LAST if last else launch.blocks
        parts = [_Part(name, first, until) for name, first, until in zip(
            _PARTS[side], (0, cut), (cut, launch.blocks), strict=True) if first < until]
        for part in parts:
            self._start("append", side, launch, at, self._room[side], self._hits(side, part.name), skipped=part.first,
                        blocks=part.until - part.first)
            self._done[part.name].record(self._stream)
        return parts

    def close(self) -> None:
        """Release the GPU's memory."""
        with self._gpu:
            self._rings.clear()
            self._buffers.clear()
            self._keys, self._bounds = Staging(self._gpu, ""), Staging(self._gpu, "")
            self._gpu.release()

    def _launch(self, batch: Batch, side: str) -> _Launch | None:
        """How the work for the probes of stream ``side`` is divided; None if there is none."""
        start, end = batch.windows[side]
        n = len(start)
        if not n or int(end[-1]) == int(start[0]):
            return None
        self.count_candidates(int(end.sum() - start.sum()))
        origin, shape, ring = int(start[0]), self._shape, self._rings[other_side(side)]
        if int(end[-1]) - origin >= _MOST_ROWS:
            raise CapacityError(f"the windows of a batch hold {int(end[-1]) - origin:,} tuples, but the GPU engine "
                                f"numbers {_MOST_ROWS - 1:,} at most; give shorter windows, or use device='cpu'")
        firsts = np.arange(0, n, shape.block)
        longest = int((end[np.minimum(firsts + shape.block, n) - 1] - start[firsts]).max())
        tiles, blocks = -(-longest // shape.tile), len(firsts)
        span = -(-tiles // min(tiles, max(1, _BLOCKS // blocks)))
        return _Launch(n, origin, blocks, -(-tiles // span), span * shape.tile, origin % ring.size)

    def _arrays(self, batch: Batch, side: str, launch: _Launch | None) -> list[Array]:
        """The windows and bounds of the probes of stream ``side``, as kernels read them."""
        if launch is None:
            return []
        windows = [(rows - launch.origin).astype(np.uint32) for rows in batch.windows[side]]
        places, arrays = self._layout.probe[side], batch.probes[side]
        return windows + [_plain(arrays[places[name]]) for name, _ in self._comparisons[side].probe]

    def _start(self, kernel: str, side: str, launch: _Launch, at: tuple[int, int], *arguments: Any, skipped: int = 0,
               blocks: int | None = None) -> None:
        """Start the ``kernel`` for ``blocks`` of probes of stream ``side``, or all, behind the first ``skipped``."""
        ring, one = self._rings[other_side(side)], self._comparisons[side]
        grid = launch.blocks if blocks is None else blocks, launch.slices
        getattr(self._kernels[side], kernel)[grid, self._shape.threads, self._stream](
            launch.n, skipped, launch.span, launch.shift, ring.size - 1,
            *map(self._bounds.view, views(one.stored, one.probe)), *at, *arguments,
            *(ring.arrays[name] for name, _ in one.stored))

    def _found(self, batch: Batch, side: str, launch: _Launch | None, at: tuple[int, int],
               parts: list[_Part]) -> Found:
        """The matches of the probes of stream ``side``, when the GPU has found them."""
        n = len(batch.windows[side][0])
        if launch is None:
            return Found.of(np.zeros(n, np.int64), [])
        found: list[tuple[int, int, Rows]] = []
        counts = np.empty(n, np.int64)
        for part in parts:
            if (hits := self._appended(side, part.name)) is None:
                break
            first, until = part.first * self._shape.block, min(part.until * self._shape.block, n)
            counts[first:until], rows = by_probe(hits, first, until, launch.origin)
            found.append((first, until, rows))
        if not parts or len(found) < len(parts):
            return self._counted(batch, side, launch, at)
        batch.memory.add(sum(len(rows) for *_, rows in found))
        return Found.of(counts, found)

    def _appended(self, side: str, part: str) -> Array | None:
        """The matches of a part of the probes of stream ``side``; None if there was no room for them."""
        self._done[part].wait(self._copies)
        begin, until, host = 0, min(self._expected[part], self._room[side]) + 1, self._hosts[part]
        while begin < until:
            if until > len(host):
                self._hosts[part] = more = self._gpu.cuda.pinned_array(1 << (until - 1).bit_length(), np.uint64)
                more[:begin] = host[:begin]
                host = more
            self._hits(side, part)[begin:until].copy_to_host(host[begin:until], self._copies)
            self._copies.synchronize()
            self.received += 8 * (until - begin)
            if (total := int(host[0])) > self._room[side]:
                return None
            begin, until = until, total + 1
        self._expected[part] = total + total // 4 + _SPARE
        return host[1:total + 1]

    def _counted(self, batch: Batch, side: str, launch: _Launch, at: tuple[int, int]) -> Found:
        """As `_found`, of a dense result: its matches are counted, and then written where they belong."""
        shape, slices = self._shape, launch.slices
        self.dense += 1
        parts = self._place(side, "counts", launch.n * slices, np.uint32)
        self._start("count", side, launch, at, parts, slices)
        host = np.empty(launch.n * slices, np.uint32)
        parts[:len(host)].copy_to_host(host, self._stream)
        self._stream.synchronize()
        self.received += host.nbytes
        places = np.zeros(len(host) + 1, np.int64)
        np.cumsum(host, out=places[1:])
        ends = places[::slices]
        total = int(ends[-1])
        batch.memory.add(total)
        # As many as there were come next time too.
        sizes = self._sizes
        self._room[side] = 0 if 2 * total > sizes.most_room else max(sizes.room, 1 << (2 * total).bit_length())
        found, block = [], 0
        while block < launch.blocks:
            until, begin = block + 1, int(ends[block * shape.block])
            most = begin + sizes.written
            while until < launch.blocks and int(ends[min((until + 1) * shape.block, launch.n)]) <= most:
                until += 1
            last = min(until * shape.block, launch.n)
            if (size := int(ends[last]) - begin):
                out, where = self._place(side, "out", size, np.uint32), self._place(side, "at", len(host), np.int64)
                where[:len(host)].copy_to_device(places[:-1] - begin, self._stream)
                self._start("write", side, launch, at, where, slices, out, skipped=block, blocks=until - block)
                rows = np.empty(size, np.uint32)
                out[:size].copy_to_host(rows, self._stream)
                self._stream.synchronize()
                self.received += rows.nbytes
                found.append((block * shape.block, last, rows + np.int64(launch.origin)))
            block = until
        return Found.of(np.diff(ends), found)

    def _hits(self, side: str, part: str) -> Any:
        """The number of matches of a part of the probes of stream ``side``, and room for them."""
        return self._place(side, part, self._room[side] + 1, np.uint64)

    def _place(self, side: str, name: str, n: int, kind: Any) -> Any:
        """Room on the GPU for ``n`` values or more, which the next call with this name overwrites."""
        found = self._buffers.get((side, name))
        if found is None or len(found) < n:
            self._buffers.pop((side, name), None)
            what = f"{n:,} values of a batch ({name})"
            self._buffers[side, name] = found = self._gpu.array(1 << (n - 1).bit_length(), kind, what)
        return found


def _plain(array: Array) -> Array:
    """``array`` with truth values as numbers of 32 bits."""
    return array.astype(np.uint32) if array.dtype == np.bool_ else array
