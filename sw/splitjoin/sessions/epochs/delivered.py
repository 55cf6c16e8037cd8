"""`DeliveredCounts`: how far the sources of each stream are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitjoin.lang.schema import SIDES

__all__ = ["DeliveredCounts"]


class DeliveredCounts:
    """For each stream, how many tuples each of its sources has delivered."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {stream: [] for stream in SIDES}

    def add(self, stream: str, index: int, n: int) -> None:
        """Count ``n`` more tuples of source ``index`` of ``stream``."""
        counts = self._counts[stream]
        counts += [0] * (index + 1 - len(counts))
        counts[index] += n

    def of(self, stream: str) -> list[int]:
        """The counts of one stream."""
        return list(self._counts[stream])

    def resume(self, stream: str, counts: Sequence[int]) -> None:
        """Take over the counts of one stream."""
        self._counts[stream] = list(counts)

    def state(self) -> dict[str, list[int]]:
        """The counts, from which `restore` continues."""
        return {stream: list(counts) for stream, counts in self._counts.items()}

    def restore(self, state: Mapping[str, Sequence[int]]) -> None:
        """Take over the counts of others."""
        self._counts = {stream: list(state.get(stream, ())) for stream in self._counts}
