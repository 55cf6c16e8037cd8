"""`GpuFinder`: the matches of a batch's probes, by nested loops on the GPU."""

from __future__ import annotations

from collections.abc import Mapping

from splitjoin.lang.schema import SIDES, other_side

from ..cpu.finder import Batch, Finder, Found
from .comparison import KernelComparison, Layout
from .driver import Gpu, is_simulated
from .kernel_source import KernelShape
from .tuning import DEFAULTS, GpuTuning
from .work import ProbeWork

#: How kernels divide the work; the simulator, which makes a thread of Python's of each of the GPU's, has small blocks.
SHAPE = KernelShape(threads=2, probes=4, tile=16, unrolled=2, few=3) if is_simulated() else KernelShape()


class GpuFinder(Finder):
    """Compares probes with all that they see, on ``gpu``.

    The keys that a batch adds to S travel with the bounds of R's probes, which compare them, and the other way round.
    So the GPU looks for the matches of R's probes while those of S are sent.
    """

    def __init__(self, layout: Layout, gpu: Gpu, shape: KernelShape = SHAPE, sizes: GpuTuning = DEFAULTS):
        super().__init__()
        self._gpu = gpu
        with gpu:
            self.works: dict[str, ProbeWork] = {
                side: ProbeWork(side, layout, gpu, shape, sizes) for side in SIDES}
        self._bytes = 0, 0  # sent and received, when the session is closed
        self._kept: Batch | None = None  # whose keys are not sent yet

    def compare(self, comparisons: Mapping[str, KernelComparison]) -> None:
        """Find matches by ``comparisons``, one for the probes of each stream, from the next batch on."""
        for side, one in comparisons.items():
            self.works[side].compare(one)

    @property
    def sent(self) -> int:
        """Bytes of keys, bounds and windows that were copied to the GPU."""
        return self._bytes[0] + sum(work.sent for work in self.works.values())

    @property
    def received(self) -> int:
        """Bytes that were copied from the GPU."""
        return self._bytes[1] + sum(work.received for work in self.works.values())

    def keep(self, batch: Batch) -> None:
        """Store the keys of the batch on the GPU: with the bounds, if `find` is next."""
        self._store_kept()
        self._kept = batch

    def expire(self, batch: Batch) -> None:
        self._store_kept()
        for side, work in self.works.items():
            work.ring.trim(batch.starts[other_side(side)])

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches, which the next batch overwrites."""
        if self._kept is not batch:
            self._store_kept()
        storing, self._kept = self._kept is batch, None
        self.count_candidates(batch.extent[0])
        with self._gpu:
            for work in self.works.values():
                work.begin(batch, storing=storing, finding=True)
            return {side: work.found(batch) for side, work in self.works.items()}

    def close(self) -> None:
        """Release the GPU's memory."""
        with self._gpu:
            self._bytes = self.sent, self.received
            self.works.clear()
            self._gpu.release()

    def _store_kept(self) -> None:
        """Store the keys of a batch whose probes are not looked at."""
        if (batch := self._kept) is not None:
            self._kept = None
            with self._gpu:
                for work in self.works.values():
                    work.begin(batch, storing=True, finding=False)
