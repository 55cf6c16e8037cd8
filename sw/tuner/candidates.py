"""How many stored tuples a probe of an index core is compared with, expected from selectivity and buckets."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import lru_cache
from statistics import NormalDist

from ..circuit.wire import Configuration

__all__ = ["candidates", "most"]

#: How many times as wide as intervals cells are made where there would be more cells than buckets
#: (`splitjoin.circuit.bucket_cells`).
_WIDEST = 4.0
#: From this mean on a Poisson law is a normal one.
_LARGE = 200


def candidates(config: Configuration, tuples: float, selectivity: float, points: Collection[int]) -> float:
    """Candidates of a probe in a core that stores ``tuples`` of the other stream.

    ``selectivity``: the share of pairs that meet all tests of the index; with two bands each has the root of it.
    ``points``: the tests that are equalities. Keys are taken to be spread evenly, so that each bucket holds its share.
    """
    if config.core == "hash":
        # Those of the probe's key, and those that share the bucket.
        return tuples * (selectivity + (1 - selectivity) / config.buckets)
    share = 1.0
    each = selectivity ** (1 / len(config.index))
    for test, bits in zip(config.index, config.cell_bits, strict=True):
        # As many cells as there are intervals side by side, or up to four times fewer; a probe reaches its first one,
        # and a second one the more often the narrower they are.
        intervals, buckets = min(1 / each, 2.0**64) if each else 2.0**64, 2**bits
        width = min(max(intervals / buckets, 1.0), _WIDEST)
        share *= (1.0 if test in points else 1 + 1 / width) * max(width / intervals, 1 / buckets)
    return tuples * min(share, 1.0)


@lru_cache(maxsize=4096)
def most(means: tuple[float, ...], times: int = 1) -> list[float]:
    """Probability of 0, 1, 2, …: the largest of numbers of candidates, each by a Poisson law of its mean, ``times`` of
    each.

    Where means are large, and the law hardly matters, all of it is on the expected number (Blom, Statistical Estimates
    and Transformed Beta-Variables, 1958, for normal laws).
    """
    mean, n = max(means), len(means) * times
    if mean > _LARGE:
        further = NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) if n > 1 else 0.0
        return [0.0] * round(mean + further * math.sqrt(mean)) + [1.0]
    chances = [math.exp(-m) for m in means]
    below, before, out = [0.0] * len(means), 0.0, list[float]()
    while len(out) <= mean or before < 1 - 1e-9:
        below = [min(b + c, 1.0) for b, c in zip(below, chances, strict=True)]
        now = math.prod(below) ** times
        out.append(now - before)
        before = now
        chances = [c * m / len(out) for c, m in zip(chances, means, strict=True)]
        if len(out) > 2 * _LARGE:
            break
    return out
