"""Samples of a bench's matrix of cases: every two values of different axes meet, or all combinations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def every_pair(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Few combinations of ``axes`` (one value of each) in which every two values of two axes occur together.

    Greedy: the combination with the most new pairs next. Most faults depend on two values at most.
    """
    rows = [tuple(enumerate(row)) for row in product(*(range(len(axis)) for axis in axes))]
    pairs = {row: set(combinations(row, 2)) for row in rows}
    left = set().union(*pairs.values())
    chosen = []
    while left:
        best = max(rows, key=lambda row: len(pairs[row] & left))  # the first of several, so always the same
        chosen.append(tuple(axis[n] for axis, (_, n) in zip(axes, best, strict=True)))
        left -= pairs[best]
    return chosen


def sampled(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All combinations of ``axes`` under `make test-long`, which sets $SPLITJOIN_TEST_EXAMPLES; else `every_pair`."""
    return list(product(*axes)) if _at_length() else every_pair(*axes)


def every_value(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All combinations of ``axes`` under `make test-long`; else as many as the longest axis has values, all of each."""
    if _at_length():
        return list(product(*axes))
    return [tuple(axis[n % len(axis)] for axis in axes) for n in range(max(map(len, axes)))]


def _at_length() -> bool:
    return float(os.environ.get("SPLITJOIN_TEST_EXAMPLES", "1")) > 1
