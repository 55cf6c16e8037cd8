"""Speed of cores that scan."""

from __future__ import annotations

from collections.abc import Iterator

from ...geometry import stores, waiting_tasks
from ...wire import Configuration
from ..arrival import stretch
from ..workload import Workload
from .kind import CORE_INPUT, CoreSpeed, Shape

__all__ = ["ScanSpeed"]

#: Least cycles of a pass, however few tuples it reads: the emitter handles one batch after the other.
_TURN = 18
#: With tables: cycles that a probe on an idle core waits for its table to be written; reads before the end of a pass
#: after which the next batch takes no more probes; and cycles per probe of that batch.
_WRITTEN, _CLOSED, _COLLECTED = 7, 6, 5
#: Cycles of latency in which the hits of several probes are sorted, if there are no more than four of them.
_SORTING = 6
#: Numbers of lanes and probes to try: all lanes, some probes.
_LANES = (1, 2, 4, 8)
_PROBES = (1, 2, 3, 4, 6, 8, 12, 16)


class ScanSpeed(CoreSpeed):
    """The speed of cores whose passes read the union of their probes' windows."""

    def input_cycles(self, expiry: float) -> float:
        return CORE_INPUT + expiry

    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        # A pass reads L tuples a cycle for B probes. With tables it serves only the probes that came early enough in
        # the previous pass for their tables to be written.
        probes = 1 if load.single else config.probes
        work = max((load.tuples + probes) / config.cores / config.lanes, _TURN)
        came = min(probes, (work - _CLOSED) / _COLLECTED) if config.tables else probes
        return work / came / 2 * stretch(
            work, max(1, round(came)), load.arrival, config.queue, waiting_tasks(config), stores(config))

    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        work = -(-load.tuples // config.cores) / config.lanes
        sorting = 0 if config.probes == 1 else _SORTING + (config.probes > 4)
        return (work + _WRITTEN + sorting, max(0.0, work - _WRITTEN)) if config.tables else (work + sorting, work)

    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        for some in sorted({*_LANES, lanes or 1}):
            for many in sorted({*_PROBES, probes or 1}):
                yield Shape(max(least, 2 * some), some, many)
