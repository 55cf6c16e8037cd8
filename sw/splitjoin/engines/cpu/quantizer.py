"""`Quantizer`: codes as small numbers, levels, learnt from a sample so that tuples spread evenly over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Array

from ..loops import loops
from ..tuning import DEFAULTS

#: Entries of a table: the knots of a piecewise linear map. The table fits the first-level cache.
_ENTRIES = 1 << 10
#: The most codes of a sample that are used.
_SAMPLE = 1 << 14
#: Share of the sample at either end that the table does not resolve, so that outliers do not widen its range.
_OUTLIERS = 0.002
#: Levels count as even if pairs of tuples share one of _BINS bins at most _UNEVEN times as often as on even levels.
_UNEVEN, _BINS = 1.25, 1 << 10
#: For a trend: the largest share of the late half of the sample that may lie on the wrong side of the early half's
#: median.
_CROSSING = 0.05
#: Kinds of levels.
LINEAR, FLOAT, TABLE, HASH, CYCLE = 0, 1, 2, 3, 4
_NO_TABLE = np.zeros(1, np.int32)


@dataclass(frozen=True)
class Quantizer:
    """A map from codes to the levels 0 to ``count`` − 1.

    ``numbers`` (5,) holds the kind of the map and its integers, ``reals`` (2,) its floats. ``table`` matters for
    `TABLE` only. Codes outside the range of a map are moved to its nearest end. By kind, ``numbers`` and ``reals`` are:

    * `LINEAR`: ``(kind, low, span, 0, 0)`` and ``(0, factor)``. The level is (code − low) · factor.
    * `FLOAT`: ``(kind, low, high, 0, 0)`` and ``(origin, factor)``. The level is (x − origin) · factor for the float x
      that the code stands for.
    * `TABLE`: ``(kind, low, span, left, right)``. The level is interpolated between knots, the entries of ``table``,
      which are a power of two of codes apart. (code − low) << left >> right is the number of the knot below, with 16
      bits behind the point.
    * `HASH`, for equalities: ``(kind, 0, 0, 0, right)``. The level is the upper bits of a product, shifted right.
    * `CYCLE`, for values with a trend: ``(kind, 0, 0, left, right)``. The level is code << left >> right, modulo
      ``count``, a power of two.
    """

    numbers: npt.NDArray[np.uint64]
    reals: npt.NDArray[np.float64]
    table: npt.NDArray[np.int32]
    count: int

    def of(self, codes: Array, kind: type[Any] = np.int32) -> Array:
        """The levels of the unsigned ``codes`` (n,), as an array of type ``kind``."""
        out = np.empty(len(codes), np.int32)
        loops()[f"write_levels<{codes.dtype.name}_t>"](codes, self.numbers, self.reals, self.table, self.count, out)
        return out.astype(kind, copy=False)


def constant() -> Quantizer:
    """One level for all codes."""
    return _table(0, 1, 0, np.zeros(3), 1)


def learn(sample: Array, count: int) -> Quantizer:
    """``count`` levels over which the codes of ``sample`` (n,) spread evenly; one level if the sample is empty."""
    if not len(sample):
        return constant()
    if len(sample) > _SAMPLE:
        sample = sample[np.linspace(0, len(sample) - 1, _SAMPLE).astype(np.int64)]
    outliers = int(len(sample) * _OUTLIERS)
    ends = np.partition(sample, [outliers, len(sample) - 1 - outliers])
    low, high = int(ends[outliers]), int(ends[len(sample) - 1 - outliers])
    for levels in _even(low, high, sample.dtype.itemsize, count):
        if _is_even(levels, sample):
            return levels
    shift = max(0, (high - low).bit_length() - (_ENTRIES - 1).bit_length())
    size = ((high - low) >> shift) + 1
    inside = np.clip(sample, low, high) - sample.dtype.type(low)
    mass = np.bincount((inside >> sample.dtype.type(shift)).astype(np.int64), minlength=size).astype(np.float64)
    mass += mass.sum() / (64 * size)  # ranges without a code in the sample get some levels, too
    knots = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum() * (count - 1)
    # The last knot occurs twice, as interpolation also reads the entry after a knot.
    return _table(low, min(size << shift, 2**64 - 1), shift, np.minimum([*knots, count - 1], count - 1), count)


def hashed(bits: int) -> Quantizer:
    """2**bits levels, by a hash of the code."""
    return _made((HASH, 0, 0, 0, 64 - bits), 1 << bits)


def has_trend(sample: Array, least: int = DEFAULTS.trend_sample) -> bool:
    """True if the codes of ``sample`` (n,), in arrival order, rise or fall over time, as ``least`` early ones tell."""
    if len(sample) > _SAMPLE:
        sample = sample[np.linspace(0, len(sample) - 1, _SAMPLE).astype(np.int64)]
    early, late = sample[:len(sample) // 2], sample[len(sample) // 2:]
    if len(early) < least:
        return False
    median = np.partition(early, len(early) // 2)[len(early) // 2]
    return bool(max(np.sum(late < median), np.sum(late > median)) >= (1 - _CROSSING) * len(late))


def cyclic(sample: Array, count: int) -> Quantizer:
    """At least ``count`` cyclic levels; one cycle covers about the range of ``sample`` (n,), which is not empty."""
    if len(sample) > _SAMPLE:
        sample = sample[np.linspace(0, len(sample) - 1, _SAMPLE).astype(np.int64)]
    # The codes of NULL and of outliers are far from all others, and must not widen the range.
    ends = np.sort(sample)[[int(len(sample) * part) for part in (_CROSSING, 1 - _CROSSING)]]
    bits = (max(count, 256) - 1).bit_length()
    shift = (int((int(ends[1]) - int(ends[0])) / (1 - 2 * _CROSSING))).bit_length() - bits
    return _made((CYCLE, 0, 0, max(-shift, 0), max(shift, 0)), 1 << bits)


def _made(numbers: tuple[int, ...], count: int, reals: tuple[Any, Any] = (0, 0), table: Array = _NO_TABLE) -> Quantizer:
    return Quantizer(np.array(numbers, np.uint64), np.array(reals, np.float64), table, count)


def _table(low: int, span: int, shift: int, knots: Array, count: int) -> Quantizer:
    return _made((TABLE, low, span, max(16 - shift, 0), max(shift - 16, 0)), count, table=knots.astype(np.int32))


def _even(low: int, high: int, size: int, count: int) -> Iterator[Quantizer]:
    """Levels that suit uniformly distributed values from ``low`` to ``high``: of codes of ``size`` bytes, and of the
    floats that such codes stand for.
    """
    if low == high:
        return
    yield _made((LINEAR, low, high - low, 0, 0), count, (0, count / (high - low)))
    code, real = (np.uint32, np.float32) if size == 4 else (np.uint64, np.float64)
    top = 1 << 8 * size - 1
    a, b = (np.array([c & ~top if c & top else ~c % 2**(8 * size)], code).view(real)[0] for c in (low, high))
    with np.errstate(all="ignore"):
        width = b - a
        factor = real(count) / width
    if np.isfinite(width) and width > 0 and np.isfinite(factor):
        yield _made((FLOAT, low, high, 0, 0), count, (a, factor))


def _is_even(levels: Quantizer, sample: Array) -> bool:
    """True if a tuple of ``sample`` shares its level with about as many others as on even levels."""
    bins = min(levels.count, _BINS)
    found = np.bincount(levels.of(sample).astype(np.int64) * bins // levels.count, minlength=bins) / len(sample)
    return bool(bins * (found ** 2).sum() <= _UNEVEN + bins / len(sample))
