"""Counters of the devices in the tasks, collected on the driver with Spark accumulators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pyspark.accumulators import AccumulatorParam

from splitjoin.base.errors import UnsupportedError
from splitjoin.engines.effectiveness import effectiveness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The value of an accumulator: a group ("counters", "latencies", "rows") → a name or a number of cycles → how many.
Tally = dict[str, dict[Any, int]]


class _TallyParam(AccumulatorParam[Tally]):
    """Adds tallies name by name."""

    def zero(self, value: Tally) -> Tally:
        return {}

    def addInPlace(self, value1: Tally, value2: Tally) -> Tally:  # noqa: N802  # Spark's name
        for group, counts in value2.items():
            mine = value1.setdefault(group, {})
            for name, n in counts.items():
                mine[name] = mine.get(name, 0) + n
        return value1


class Latencies:
    """A histogram of latencies in cycles.

    ``cycles``: int64 (n,), ascending and distinct; ``counts``: int64 (n,), how many probes took that many.
    """

    def __init__(self, counts: Mapping[int, int]):
        self.cycles: npt.NDArray[np.int64] = np.array(sorted(counts), np.int64)
        self.counts: npt.NDArray[np.int64] = np.array([counts[int(c)] for c in self.cycles], np.int64)

    def __len__(self) -> int:
        """The number of probes that were measured."""
        return int(self.counts.sum())

    def percentile(self, q: float) -> int:
        """The smallest number of cycles within which at least ``q`` percent (0 to 100) of the probes were done.

        Raises `ValueError` when nothing was measured or q is out of range.
        """
        if not len(self) or not 0 <= q <= 100:
            raise ValueError(f"q must be 0 to 100 and something measured, but q is {q} with {len(self)} measurements")
        reached = np.cumsum(self.counts) >= q / 100 * len(self)
        return int(self.cycles[int(np.argmax(reached))])


class JoinMetrics:
    """Collects the devices' counters of all tasks of a `stream_join`.

    Give it as ``metrics=`` and read it after an action. Spark counts a task each time it runs: a result that is
    computed twice (two actions without ``cache()``), or a task that is repeated after a failure, counts twice. `reset`
    starts anew.

    Raises `UnsupportedError` on Spark Connect, which has no accumulators.
    """

    def __init__(self, spark: SparkSession):
        try:
            context = spark.sparkContext
        except Exception as error:
            raise UnsupportedError("metrics need Spark accumulators, which Spark Connect does not have; leave metrics "
                                   "out, or use a classic session") from error
        self._tally = context.accumulator({}, _TallyParam())

    def reset(self) -> None:
        """Reset all counters. Call it on the driver, between actions."""
        self._tally.value = {}

    def add(self, counters: Mapping[str, int], latencies: npt.NDArray[np.int64] | None, **rows: int) -> None:
        """Count one partition; called in tasks."""
        tally: Tally = {"counters": dict(counters), "rows": dict(rows)}
        if latencies is not None:
            cycles, counts = np.unique(latencies, return_counts=True)
            tally["latencies"] = dict(zip(cycles.tolist(), counts.tolist(), strict=True))
        self._tally.add(tally)

    @property
    def counters(self) -> dict[str, int]:
        """The devices' counters (``cycles``, ``comparisons``, …), summed over the partitions, warm rows included."""
        return dict(self._group("counters"))

    @property
    def effectiveness(self) -> float | None:
        """Pairs that are results per pair that was compared (ESJ's ϱ); None where the devices do not count both."""
        return effectiveness(self.counters)

    @property
    def latencies(self) -> Latencies:
        """Cycles from accepting a probe to the end of its results; without the warm rows' probes."""
        return Latencies(self._group("latencies"))

    @property
    def partitions(self) -> int:
        """The number of partitions that were joined; empty ones run nothing and do not count."""
        return self._group("rows").get("partitions", 0)

    @property
    def tuples(self) -> int:
        """Tuples of both streams, each counted once, in its home partition."""
        return self._group("rows").get("tuples", 0)

    @property
    def warm(self) -> int:
        """Tuples that were read again to fill the windows at the start of a partition."""
        return self._group("rows").get("warm", 0)

    @property
    def pairs(self) -> int:
        """Result rows."""
        return self._group("rows").get("pairs", 0)

    def _group(self, name: str) -> dict[Any, int]:
        return self._tally.value.get(name, {})
