"""Two bands over whole tables as two joins: by equal buckets of one key, and ranges of another one within them.

A sorted range decides one band alone, so where each band lets many pairs through, it has too many candidates. In
buckets as wide as the widest interval of a key, each interval meets one bucket, or that and the next; so a pair is of
the first bucket of its interval, or of the second. In either case buckets are equal keys (the cells of Böhm et al.,
Epsilon grid order, SIGMOD 2001).
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from .alternatives import Alternative
from .condition import Bounds, Condition
from .spans import Spans
from .table_work import Work
from .ways import ways

__all__ = ["in_buckets"]

#: The fewest buckets that are worth to read and sort the keys once more.
_FEWEST = 16


def in_buckets(condition: Condition, visible: Spans, work: Work) -> list[Alternative]:
    """The two joins by buckets of the key that has most of them; none unless ``condition`` has intervals of two keys at
    least, without equal keys.
    """
    bounds = condition.bounds("s")
    if condition.points or len(bounds) < 2 or not len(condition.possible_r) or not len(condition.possible_s):
        return []
    widths = [_width(b, condition) for b in bounds]
    counts = [_buckets(b, condition, width) for b, width in zip(bounds, widths, strict=True)]
    at = int(np.argmax(counts))
    if counts[at] < _FEWEST:
        return []
    chosen, width = bounds[at], np.uint64(widths[at])
    first, last, of_s = chosen.low // width, chosen.high // width, chosen.keys // width
    found, crosses = [], condition.possible_r & (last > first)
    for mine, possible in ((first, condition.possible_r), (first + np.uint64(1), crosses)):
        part = copy(condition)
        part.possible_r, part.points = possible, [(mine, of_s)]
        part.forget_groups()
        groups = part.groups()
        way = ways(part, groups, visible, work)[0]
        found.append(Alternative(replace(way, name=f"{way.name} in buckets of another key"), part, groups))
    return found


def _width(bounds: Bounds, condition: Condition) -> int:
    """The number of keys in the widest interval of a tuple that may have a partner; 0 if there is none."""
    some = condition.possible_r & (bounds.low <= bounds.high)
    return int((bounds.high - bounds.low).max(initial=0, where=some)) + 1 if some.any() else 0


def _buckets(bounds: Bounds, condition: Condition, width: int) -> int:
    """The number of buckets of this ``width`` between the least and the greatest key of S; 0 without a width."""
    if width < 1 or width >= 2**63 or not condition.possible_s.any():
        return 0
    least = int(bounds.keys.min(initial=2**64 - 1, where=condition.possible_s))
    return (int(bounds.keys.max(initial=0, where=condition.possible_s)) - least) // width
