"""`DeliveredCounts`: how far the sources of two streams are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitjoin.lang.schema import SIDES, Side

__all__ = ["DeliveredCounts"]


class DeliveredCounts:
    """For each stream, how many tuples each of its sources has delivered."""

    def __init__(self) -> None:
        self._counts: dict[Side, list[int]] = {side: [] for side in SIDES}

    def add(self, side: Side, index: int, n: int) -> None:
        """Count ``n`` more tuples of source ``index`` of stream ``side``."""
        counts = self._counts[side]
        counts += [0] * (index + 1 - len(counts))
        counts[index] += n

    def state(self) -> dict[str, list[int]]:
        """The counts, from which `restore` continues."""
        return {side: list(counts) for side, counts in self._counts.items()}

    def restore(self, state: Mapping[str, Sequence[int]]) -> None:
        """Take over the counts of others."""
        self._counts = {side: list(state.get(side, ())) for side in SIDES}
