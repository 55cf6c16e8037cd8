"""Restores what items of some circuits do not tell: whole row ids, and which tuple of a pair came later."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.base.sliding import SlidingArray
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, STAR, Items

Rows = npt.NDArray[np.int64]


class ProbeSides:
    """Tells which tuple of a pair is the probe, the later one, where tuples move and either may have found the other.

    It keeps 8 bytes for each tuple of R.
    """

    def __init__(self) -> None:
        self._before = SlidingArray()  # per tuple of R the tuples of S before it
        self._pushed = 0

    def push(self, arrivals: Arrivals) -> None:
        """Note the order of ``arrivals``, which are about to be sent."""
        self._before.append(arrivals.s_before + self._pushed)
        self._pushed += len(arrivals.s)

    def restore(self, items: Items) -> None:
        """Correct the sides of the pairs in ``items``."""
        pair = items["kind"] == PAIR
        items["side"][pair] = items["s"][pair] >= self._before.values[items["r"][pair]]


class _Probes:
    """The probes of one stream that stars have not covered yet."""

    def __init__(self) -> None:
        self.covered = -1  # the last probe that a star has covered
        self.base = 0  # the first probe in ``seen``
        self.seen: Rows = np.empty(0, np.int64)  # per probe the tuples of the other stream before it


class RowIds:
    """Restores row ids of ``bits`` bits exactly, in a session whose answer has stars.

    A star covers at most 2^``bits`` − 1 probes, so the stars before a pair give its probe. A probe sees the youngest
    tuples of the other stream, fewer than 2^``bits``; the host knows how many of them came before the probe.
    """

    def __init__(self, bits: int):
        self._mask = 2**bits - 1
        self._probes = (_Probes(), _Probes())
        self._pushed = [0, 0]

    def push(self, arrivals: Arrivals) -> None:
        """Note the order of ``arrivals``, which are about to be sent."""
        for number, probes in enumerate(self._probes):
            others = arrivals.stream != number
            before = np.cumsum(others, dtype=np.int64) + self._pushed[1 - number]
            probes.seen = np.concatenate([probes.seen, before[~others]])
        own = int((arrivals.stream == 0).sum())
        self._pushed[0] += own
        self._pushed[1] += len(arrivals.stream) - own

    def restore(self, items: Items) -> None:
        """Replace the row ids of ``items``, which follow those of the calls before; END is not among them."""
        for number, probes in enumerate(self._probes):
            own = np.flatnonzero(items["side"] == number)
            if len(own) == 0:
                continue
            probe_field, stored_field = ("r", "s") if number == 0 else ("s", "r")
            sent, is_star = items[probe_field][own], items["kind"][own] == STAR
            stars = sent[is_star]
            steps = np.diff(stars, prepend=probes.covered) & self._mask
            # Element n: the probe that the n-th star covers last; the first one is that of the calls before.
            covered = np.concatenate([[probes.covered], probes.covered + np.cumsum(steps)])
            before = covered[np.cumsum(is_star) - is_star]
            found = before + ((sent - before) & self._mask)
            items[probe_field][own] = found
            pair = items["kind"][own] == PAIR
            youngest = probes.seen[found[pair] - probes.base] - 1
            at = own[pair]
            items[stored_field][at] = youngest - ((youngest - items[stored_field][at]) & self._mask)
            self._forget(probes, int(covered[-1]))

    @staticmethod
    def _forget(probes: _Probes, covered: int) -> None:
        # The last covered probe stays: stars within a probe cover it before its last pairs come.
        probes.seen, probes.base = probes.seen[max(0, covered) - probes.base:], max(0, covered)
        probes.covered = covered
