"""Speed of cores that scan."""

from __future__ import annotations

from collections.abc import Iterator

from ...circuit.wire import Configuration
from ..workload import Workload
from .kind import CORE_INPUT, CoreSpeed, Shape

__all__ = ["ScanSpeed"]

#: Cycles of a pass at least, however little it reads: batches follow each other through the emitter.
_TURN = 18
#: With tables, cycles that a probe which meets no pass waits for them to be written; and how many reads before the end
#: of a pass the next batch takes no more, of which a probe comes in so many cycles.
_WRITTEN, _CLOSED, _COLLECTED = 7, 6, 5
#: Lanes and probes that are tried: all lanes, some probes.
_LANES = (1, 2, 4, 8)
_PROBES = (1, 2, 3, 4, 6, 8, 12, 16)


class ScanSpeed(CoreSpeed):
    """The speed of cores whose passes read the union of their probes' windows."""

    def input_cycles(self, expiry: float) -> float:
        return CORE_INPUT + expiry

    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        # A pass reads L tuples a cycle, for B probes; with tables for those that came so early in the pass before that
        # they could be written meanwhile.
        probes = 1 if load.single else config.probes
        work = max((load.tuples + probes) / config.cores / config.lanes, _TURN)
        came = min(probes, (work - _CLOSED) / _COLLECTED) if config.tables else probes
        return work / came / 2

    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        work = -(-load.tuples // config.cores) / config.lanes
        return (work + _WRITTEN, max(0.0, work - _WRITTEN)) if config.tables else (work, work)

    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        for some in sorted({*_LANES, lanes or 1}):
            for many in sorted({*_PROBES, probes or 1}):
                yield Shape(max(least, 2 * some), some, many)
