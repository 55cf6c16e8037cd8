"""Eleven user-defined aggregates, which docs/user-aggregates.md shows, and their values by plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import splitjoin
from splitjoin import fixed, signed, unsigned


@splitjoin.aggregate
class Variance:
    """n² times the variance, in integers."""

    n: unsigned(16)
    total: signed(32)
    squares: unsigned(48)

    def add(self, x: signed(16)):
        self.n += 1
        self.total += x
        self.squares += x * x

    def merge(self, other):
        self.n += other.n
        self.total += other.total
        self.squares += other.squares

    def remove(self, x: signed(16)):
        self.n -= 1
        self.total -= x
        self.squares -= x * x

    def result(self):
        return self.n * self.squares - self.total * self.total


BINS = 8


@splitjoin.aggregate
class Histogram:
    """The fullest of eight bins of 32."""

    counts: (unsigned(16),) * BINS

    def add(self, x: unsigned(8)):
        self.counts[x >> 5] += 1

    def merge(self, other):
        for n in range(BINS):
            self.counts[n] += other.counts[n]

    def remove(self, x: unsigned(8)):
        self.counts[x >> 5] -= 1

    def result(self) -> unsigned(3):
        best, at = self.counts[0], 0
        for n in range(1, BINS):
            if self.counts[n] > best:
                best, at = self.counts[n], n
        return at


def in_order(a, b):
    """Both, the greater first."""
    return (a, b) if a >= b else (b, a)


@splitjoin.aggregate
class SecondBest:
    """The second largest value, or NULL."""

    n: unsigned(2)
    first: signed(16)
    second: signed(16)

    def init(self):
        self.n = 0
        self.first = self.second = -(2**15)

    def add(self, x: signed(16)):
        self.n = min(self.n + 1, 2)
        self.first, rest = in_order(self.first, x)
        self.second = max(self.second, rest)

    def merge(self, other):
        self.n = min(self.n + other.n, 2)
        self.first, rest = in_order(self.first, other.first)
        self.second = max(min(rest, self.first), max(self.second, other.second))

    def result(self) -> signed(16):
        if self.n < 2:
            return None
        return self.second


@splitjoin.aggregate
class Smoothed:
    """An exponential moving average with factor 1/8, in fixed point."""

    is_set: unsigned(1)
    mean: fixed(32, 12)

    def add(self, x: signed(16)):
        if self.is_set == 0:
            self.mean = x
        else:
            self.mean += (x - self.mean) * 0.125
        self.is_set = 1

    def result(self) -> fixed(32, 12):
        return self.mean


@splitjoin.aggregate
class Vwap:
    """The mean price, weighted by volume."""

    money: unsigned(48)
    volume: unsigned(32)

    def add(self, price: unsigned(16), volume: unsigned(16)):
        self.money += price * volume
        self.volume += volume

    def merge(self, other):
        self.money += other.money
        self.volume += other.volume

    def result(self) -> float:
        if self.volume == 0:
            return None
        return self.money / self.volume


@splitjoin.aggregate
class Extent:
    """The greatest value minus the least."""

    low: signed(16)
    high: signed(16)

    def init(self):
        self.low, self.high = 2**15 - 1, -(2**15)

    def add(self, x: signed(16)):
        self.low, self.high = min(self.low, x), max(self.high, x)

    def merge(self, other):
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def result(self) -> unsigned(16):
        return self.high - self.low


@splitjoin.aggregate(ordered=True)
class Rises:
    """The number of values that are greater than the one before."""

    n: unsigned(16)
    is_set: unsigned(1)
    first: signed(16)
    last: signed(16)

    def add(self, x: signed(16)):
        if self.is_set == 1 and x > self.last:
            self.n += 1
        if self.is_set == 0:
            self.first = x
        self.last = x
        self.is_set = 1

    def merge(self, other):
        if self.is_set == 0:
            self.n, self.first = other.n, other.first
            self.last, self.is_set = other.last, other.is_set
        elif other.is_set == 1:
            self.n += other.n + (1 if other.first > self.last else 0)
            self.last = other.last

    def result(self) -> unsigned(16):
        return self.n


@splitjoin.aggregate
class Checksum:
    """The exclusive or of all values, each turned by three places."""

    bits: unsigned(16)

    def add(self, x: unsigned(16)):
        self.bits ^= (x << 3) & 0xFFF8 | x >> 13

    def merge(self, other):
        self.bits ^= other.bits

    def remove(self, x: unsigned(16)):
        self.bits ^= (x << 3) & 0xFFF8 | x >> 13

    def result(self) -> unsigned(16):
        return self.bits


@splitjoin.aggregate
class Saturated:
    """A sum that stays at its limits."""

    total: signed(12)

    def add(self, x: signed(16)):
        self.total = max(min(self.total + x, 2047), -2048)

    def result(self) -> signed(12):
        return self.total


@splitjoin.aggregate
class MeanDeviation:
    """The mean distance from a level, in steps of 1/16, rounded down."""

    n: unsigned(16)
    total: fixed(40, 4)

    def add(self, x: fixed(20, 4), level: fixed(20, 4)):
        self.n += 1
        self.total += abs(x - level)

    def merge(self, other):
        self.n += other.n
        self.total += other.total

    def result(self) -> fixed(24, 4):
        return (self.total * 16) // self.n * 0.0625


@splitjoin.aggregate
class BestVolume:
    """The volume at the best price."""

    price: unsigned(16)
    volume: unsigned(48)

    def add(self, price: unsigned(16), volume: unsigned(16)):
        if price > self.price:
            self.price, self.volume = price, volume
        elif price == self.price:
            self.volume += volume

    def merge(self, other):
        if other.price > self.price:
            self.price, self.volume = other.price, other.volume
        elif other.price == self.price:
            self.volume += other.volume

    def result(self) -> unsigned(48):
        return self.volume


def _smoothed(xs: Sequence[int]) -> float:
    mean = None
    for x in xs:
        mean = x * 4096 if mean is None else mean + math.floor((x * 4096 - mean) / 8)
    assert mean is not None
    return mean / 4096


class Place(NamedTuple):
    """A place on the globe, in steps of 2^−11 of a half turn."""

    lat: signed(12)
    lon: signed(12)


@splitjoin.aggregate
class Travelled:
    """The sum of the squares of equirectangular distances from each place to the next; the cosine is over 2^12."""

    is_set: unsigned(1)
    last: Place
    total: unsigned(40)

    def add(self, lat: signed(12), lon: signed(12), cos: unsigned(12)):
        if self.is_set == 1:
            x, y = (lon - self.last.lon) * cos >> 12, lat - self.last.lat
            self.total += x * x + y * y
        self.last, self.is_set = Place(lat, lon), 1

    def result(self) -> unsigned(40):
        return self.total


def _turned(xs: Sequence[int]) -> int:
    bits = 0
    for x in xs:
        bits ^= (x << 3) & 0xFFF8 | x >> 13
    return bits


def _saturated(xs: Sequence[int]) -> int:
    total = 0
    for x in xs:
        total = max(min(total + x, 2047), -2048)
    return total


def _fullest(xs: Sequence[int]) -> int:
    counts = [sum(x // 32 == n for x in xs) for n in range(BINS)]
    return counts.index(max(counts))


def _vwap(pairs: Sequence[tuple[int, int]]) -> float | None:
    volume = sum(v for _, v in pairs)
    return sum(p * v for p, v in pairs) / volume if volume else None


#: The class, the least and the greatest value of each argument (in its steps), and the value of partners' arguments.
EXAMPLES: list[tuple[Any, tuple[tuple[int, int], ...], Callable[[Sequence[Any]], Any]]] = [
    (Variance, ((-(2**15), 2**15 - 1),), lambda xs: len(xs) * sum(x * x for x in xs) - sum(xs)**2),
    (Histogram, ((0, 255),), _fullest),
    (SecondBest, ((-(2**15), 2**15 - 1),), lambda xs: sorted(xs)[-2] if len(xs) > 1 else None),
    (Smoothed, ((-(2**15), 2**15 - 1),), _smoothed),
    (Vwap, ((0, 2**16 - 1), (0, 2**16 - 1)), _vwap),
    (Extent, ((-(2**15), 2**15 - 1),), lambda xs: max(xs) - min(xs)),
    (Rises, ((-(2**15), 2**15 - 1),), lambda xs: sum(b > a for a, b in itertools.pairwise(xs))),
    (Checksum, ((0, 2**16 - 1),), _turned),
    (Saturated, ((-(2**15), 2**15 - 1),), _saturated),
    (BestVolume, ((0, 2**16 - 1), (0, 2**16 - 1)),
     lambda xs: sum(v for p, v in xs if p == max(p for p, _ in xs))),
    (MeanDeviation, ((-100, 100), (-100, 100)), lambda xs: sum(abs(a - b) for a, b in xs) // len(xs) / 16),
]
