"""Latency of probes and of pairs, from the cycles in which records were accepted and items were received."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.circuit.encode import Words
from splitjoin.circuit.wire import ItemKind, Op
from splitjoin.engines.device import Items

Cycles = npt.NDArray[np.uint64]


class LatencyLog:
    """Collects the cycles of transfers."""

    def __init__(self) -> None:
        self._accepted: list[tuple[npt.NDArray[Any], Cycles]] = []
        self._starred: list[tuple[npt.NDArray[Any], Cycles]] = []
        self._paired: list[tuple[npt.NDArray[Any], Cycles]] = []

    def sent(self, records: Words, cycles: Cycles) -> None:
        """Note that records (n, words) were accepted in ``cycles`` (n,)."""
        tuples = (records[:, 0] & 3) == Op.TUPLE
        self._accepted.append(((records[tuples, 0] >> 2) & 1, cycles[tuples]))

    def received(self, items: Items, cycles: Cycles) -> None:
        """Note that ``items`` (n,) were received in ``cycles`` (n,)."""
        pairs = items["kind"] == ItemKind.PAIR
        self._paired.append((np.stack([items["r"][pairs], items["s"][pairs]], 1), cycles[pairs]))
        stars = items["kind"] == ItemKind.STAR
        self._starred.append((items["side"][stars], cycles[stars]))

    def latencies(self) -> npt.NDArray[np.int64] | None:
        """Cycles from accepting each probe to its star, in arrival order; None where not each has a star of its own."""
        streams, accepted = _joined(self._accepted)
        sides, starred = _joined(self._starred)
        out = np.empty(len(accepted), np.int64)
        for number in (0, 1):
            went, came = accepted[streams == number], starred[sides == number]
            if len(went) != len(came):
                return None
            out[streams == number] = (came - went).astype(np.int64)
        return out

    def accepted(self) -> npt.NDArray[np.int64]:
        """The cycle (n,) in which each tuple was accepted, in arrival order."""
        return _joined(self._accepted)[1].astype(np.int64)

    def pair_latencies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Pairs (n, 2), and the cycles (n,) from accepting the later tuple of each to the pair, for whole row ids."""
        streams, accepted = _joined(self._accepted)
        of_r, of_s = (accepted[streams == number] for number in (0, 1))
        pairs = np.concatenate([np.empty((0, 2), np.int64), *(pairs for pairs, _ in self._paired)])
        _, received = _joined(self._paired)
        later = np.maximum(of_r[pairs[:, 0]], of_s[pairs[:, 1]])
        return pairs, received.astype(np.int64) - later.astype(np.int64)


def _joined(parts: list[tuple[npt.NDArray[Any], Cycles]]) -> tuple[npt.NDArray[Any], Cycles]:
    if not parts:
        return np.empty(0, np.uint32), np.empty(0, np.uint64)
    return np.concatenate([a for a, _ in parts]), np.concatenate([c for _, c in parts])
