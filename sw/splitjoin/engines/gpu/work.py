"""`ProbeWork`: the GPU's work for the probes of one stream, in the order of a CUDA stream of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from splitjoin.base.arrays import Array, Ints
from splitjoin.base.errors import CapacityError
from splitjoin.lang.schema import other_side

from ..compiled.jit import load
from ..cpu.finder import Batch, Found
from .comparison import KernelComparison, Layout
from .driver import Gpu, is_simulated
from .kernel_source import KernelShape, kernel_source, store_source, views
from .order import order_source, pieces, sort_many
from .ring import Ring
from .staging import Numbers, StagedRowIds, Staging
from .tuning import GpuTuning

#: Blocks that keep a GPU busy: its multiprocessors, more than a hundred, run some of them at the same time.
_BLOCKS = 4 if is_simulated() else 2048
#: Threads of a block that stores keys, at most, and matches that are copied beside those that are expected.
_STORING, _SPARE = 256, 1 << 10
#: Rows of a batch's windows, and matches of a block of probes, that kernels can number.
_MOST_ROWS, _MOST_MATCHES = 1 << 32, 1 << 31
#: Parts of the probes whose matches threads may verify at the same time, and matches of a part.
_PARTS, _PART = 16, 1 << 13


@dataclass(frozen=True)
class _Launch:
    """The work of a kernel: ``n`` probes, in ``blocks`` and ``slices``. ``origin``: the row that it counts from."""

    n: int
    origin: int
    blocks: int
    slices: int
    span: int
    shift: int


@dataclass(frozen=True)
class _Begun:
    """What runs for a batch: its ``launch``, and where its probes are among what was sent. ``room``: for appended
    matches of each block, 0 if none are; so many of all are on their way to the host.
    """

    launch: _Launch
    at: tuple[int, int]
    room: int = 0
    copied: int = 0


class ProbeWork:
    """Stores the other stream's tuples, and finds what the probes of stream ``side`` match among them.

    Attributes:
        ring: The stored tuples.
        received: Bytes that were copied from the GPU.
    """

    def __init__(self, side: str, layout: Layout, gpu: Gpu, shape: KernelShape, sizes: GpuTuning):
        self._side, self._other, self._gpu, self._shape, self._sizes = side, other_side(side), gpu, shape, sizes
        self._stored, self._places = layout.stored[self._other], layout.probe[side]
        numbers = [(name, kind) for name, kind, _ in self._stored]
        self._views, self._store, self._order = views(numbers), load(store_source(numbers)), load(order_source(shape))
        self._comparison: KernelComparison | None = None
        self._kernels: Any = None
        self.stream = gpu.cuda.stream()
        self.ring = Ring(gpu, self._other, numbers, sizes.places)
        self._staging = Staging(gpu, "the keys and bounds of a batch")
        self._buffers: dict[str, Any] = {}
        self._host: Ints = np.empty(0, np.int64)
        self._room = sizes.room
        self._expected = 0  # matches, as many as the last batch had, and some more
        self._begun: _Begun | None = None
        self.received = 0

    @property
    def sent(self) -> int:
        """Bytes of keys, bounds and windows that were copied to the GPU."""
        return self._staging.sent

    def compare(self, one: KernelComparison) -> None:
        """Find matches by comparison ``one`` from the next batch on."""
        if self._comparison != one:
            self._comparison, self._kernels = one, load(kernel_source(one, self._shape))

    def begin(self, batch: Batch, *, storing: bool, finding: bool) -> None:
        """Start what there is to do for ``batch``: to store its tuples, and to find what its probes match."""
        arriving = len(batch.windows[self._other][0]) if storing else 0
        place = self.ring.extend(arriving)
        launch = self._divide(batch) if finding else None
        groups: dict[str, list[Numbers | StagedRowIds]] = {}
        if arriving:
            groups["stored"] = [Numbers(_plain(batch.stored[self._other][at])) for *_, at in self._stored]
        if launch is not None:
            groups["probes"] = self._arrays(batch, launch)
        self._begun = None
        if not any(groups.values()):
            return
        at = self._staging.send(groups, self.stream, batch.team)
        counters = self._place("counters", launch.blocks if launch is not None else 1, np.uint32)
        threads = min(self._shape.block, _STORING)
        self._store.store[max(1, -(-arriving // threads)), threads, self.stream](
            arriving, place, self.ring.size - 1, *map(self._staging.view, self._views), *at.get("stored", (0, 0)),
            counters, *self.ring.arrays.values())
        if launch is not None:
            self._begun = self._append(launch, at["probes"], counters)

    def _append(self, launch: _Launch, at: tuple[int, int], counters: Any) -> _Begun:
        """Start to append matches, to put them in order, and to copy as many as are expected."""
        if not self._room:
            return _Begun(launch, at)
        blocks = launch.blocks
        room = min(max(1, self._room // blocks), _MOST_MATCHES)
        hits, placed = (self._place(name, blocks * room, np.uint64) for name in ("hits", "placed"))
        before, copied = blocks + launch.n, min(self._expected, blocks * room)
        out = self._place("ordered", before + blocks * room, np.int64)
        self.start("append", launch, at, room, counters, hits)
        self._order.order[blocks, self._shape.threads, self.stream](
            launch.n, launch.origin, room, counters, hits, placed, out)
        self._make_room(before + copied, 0)
        self._gpu.copy_out(self._host, out, 8 * (before + copied), self.stream)
        self.received += 8 * (before + copied)
        return _Begun(launch, at, room, copied)

    def found(self, batch: Batch) -> Found:
        """The matches of the probes of ``batch``, when the GPU has found them; they are overwritten by the next."""
        if (begun := self._begun) is None:
            return Found.of(np.zeros(len(batch.windows[self._side][0]), np.int64), [])
        launch = begun.launch
        if begun.room:
            self.stream.synchronize()
            counters = self._host[:launch.blocks]
            if int(counters.max()) <= begun.room:
                return self._ordered(batch, begun, int(counters.sum()))
        return self._counted(batch, launch, begun.at)

    def _ordered(self, batch: Batch, begun: _Begun, total: int) -> Found:
        """The ``total`` matches that the GPU has put in order."""
        launch, before = begun.launch, begun.launch.blocks + begun.launch.n
        if total > begun.copied:
            begin, until = before + begun.copied, before + total
            self._make_room(until, begin)
            self._buffers["ordered"][begin:until].copy_to_host(self._host[begin:until], self.stream)
            self.stream.synchronize()
            self.received += 8 * (until - begin)
        self._expected = total + total // 4 + _SPARE
        batch.memory.add(total)
        counts, rows = self._host[launch.blocks:before], self._host[before:before + total]
        if int(counts.sum()) != total:  # what writes the items would read other memory
            raise RuntimeError(f"the GPU has {total} matches, but probes with {counts.sum()}; please report it")
        sort_many(rows, counts, self._shape.few)
        return Found.of(counts, [(first, until, rows[a:b]) for first, until, a, b in pieces(
            self._host[:launch.blocks], self._shape.block, launch.n, _PART, _PARTS)])

    def _make_room(self, n: int, kept: int) -> None:
        """Make room for ``n`` numbers from the GPU, of which the first ``kept`` are there."""
        if n > len(self._host):
            more = self._gpu.cuda.pinned_array(1 << (n - 1).bit_length(), np.int64)
            more[:kept] = self._host[:kept]
            self._host = more

    def _divide(self, batch: Batch) -> _Launch | None:
        """How the work for the probes is divided; None if there is none."""
        start, end = batch.windows[self._side]
        n = len(start)
        if not n or int(end[-1]) == int(start[0]):
            return None
        origin, shape = int(start[0]), self._shape
        if int(end[-1]) - origin >= _MOST_ROWS:
            raise CapacityError(f"the windows of a batch hold {int(end[-1]) - origin:,} tuples, but the GPU engine "
                                f"numbers {_MOST_ROWS - 1:,} at most; give shorter windows, or use device='cpu'")
        firsts = np.arange(0, n, shape.block)
        longest = int((end[np.minimum(firsts + shape.block, n) - 1] - start[firsts]).max())
        if not longest:  # all are empty, in different places
            return None
        tiles, blocks = -(-longest // shape.tile), len(firsts)
        span = -(-tiles // min(tiles, max(1, _BLOCKS // blocks)))
        return _Launch(n, origin, blocks, -(-tiles // span), span * shape.tile, origin % self.ring.size)

    def _arrays(self, batch: Batch, launch: _Launch) -> list[Numbers | StagedRowIds]:
        """The windows and bounds of the probes, as kernels read them."""
        assert self._comparison is not None
        arrays = batch.probes[self._side]
        return [*(StagedRowIds(rows, launch.origin) for rows in batch.windows[self._side]),
                *(Numbers(_plain(arrays[self._places[name]])) for name, _ in self._comparison.probe)]

    def start(self, kernel: str, launch: _Launch, at: tuple[int, int], *arguments: Any, blocks: int | None = None
              ) -> None:
        """Start the ``kernel`` for the first ``blocks`` of probes, or all. ``at``: where these are in what was sent."""
        one = self._comparison
        assert one is not None
        grid = launch.blocks if blocks is None else blocks, launch.slices
        getattr(self._kernels, kernel)[grid, self._shape.threads, self.stream](
            launch.n, launch.span, launch.shift, self.ring.size - 1,
            *map(self._staging.view, views(one.stored, one.probe)), *at, *arguments,
            *(self.ring.arrays[name] for name, _ in one.stored))

    def _counted(self, batch: Batch, launch: _Launch, at: tuple[int, int]) -> Found:
        """As `found`, of a dense result: its matches are counted, and then written where they belong."""
        shape, slices = self._shape, launch.slices
        parts = self._place("counts", launch.n * slices, np.uint32)
        self.start("count", launch, at, parts, slices)
        host = np.empty(launch.n * slices, np.uint32)
        parts[:len(host)].copy_to_host(host, self.stream)
        self.stream.synchronize()
        self.received += host.nbytes
        places = np.zeros(len(host) + 1, np.int64)
        np.cumsum(host, out=places[1:])
        ends = places[::slices]
        total = int(ends[-1])
        batch.memory.add(total)
        # As many as there were come next time too, in each block of probes as many as in the fullest.
        sizes, blocks = self._sizes, launch.blocks
        at_ends = ends[np.minimum(np.arange(blocks + 1) * shape.block, launch.n)]
        room = 2 * blocks * int(np.diff(at_ends).max())
        self._room = 0 if room > sizes.most_room else max(sizes.room, 1 << room.bit_length())
        found, block = [], 0
        while block < blocks:
            until, begin = block + 1, int(at_ends[block])
            while until < blocks and int(at_ends[until + 1]) <= begin + sizes.written:
                until += 1
            last = min(until * shape.block, launch.n)
            if (size := int(at_ends[until]) - begin):
                out, where = self._place("out", size, np.uint32), self._place("at", len(host), np.int64)
                where[:len(host)].copy_to_device(places[:-1] - begin, self.stream)
                self.start("write", launch, at, where, slices, out, block, blocks=until - block)
                rows = np.empty(size, np.uint32)
                out[:size].copy_to_host(rows, self.stream)
                self.stream.synchronize()
                self.received += rows.nbytes
                found.append((block * shape.block, last, rows + np.int64(launch.origin)))
            block = until
        return Found.of(np.diff(ends), found)

    def _place(self, name: str, n: int, kind: Any) -> Any:
        """Room on the GPU for ``n`` values or more, which the next call with this name overwrites."""
        found = self._buffers.get(name)
        if found is None or len(found) < n:
            self._buffers.pop(name, None)
            what = f"{n:,} values of a batch ({name})"
            self._buffers[name] = found = self._gpu.array(1 << (n - 1).bit_length(), kind, what)
        return found


def _plain(array: Array) -> Array:
    """``array`` with truth values as numbers of 32 bits."""
    return array.astype(np.uint32) if array.dtype == np.bool_ else array
