"""The kernels of the suite as typed Python: each is compiled as it stands."""

from __future__ import annotations

from splitjoin.hls import kernel, signed, unsigned

#: Coefficients of a low-pass filter of 16 taps, and the pattern of kmp.
TAPS = (-2, -5, -6, 3, 24, 55, 86, 101, 101, 86, 55, 24, 3, -6, -5, -2)
PATTERN = b"abacabab"
#: cos(n·π/16) · 2^10 for the odd part of the inverse transform, and for its even one.
C1, C2, C3, C5, C6, C7 = 1004, 946, 851, 569, 392, 200


def crc8(x: unsigned(8)):
    for _ in range(8):
        x = ((x << 1) ^ (7 if x & 128 != 0 else 0)) & 255
    return x


@kernel
class Crc32:
    crc: unsigned(32)

    def init(self):
        self.crc = 0xFFFFFFFF

    def step(self, x: unsigned(8)):
        crc = self.crc ^ x
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 == 1 else 0)
        self.crc = crc
        return crc ^ 0xFFFFFFFF


@kernel
class Adler32:
    a: unsigned(16)
    b: unsigned(16)

    def init(self):
        self.a = 1

    def step(self, x: unsigned(8)):
        a = self.a + x
        self.a: unsigned(16) = a - 65521 if a >= 65521 else a
        b = self.b + self.a
        self.b = b - 65521 if b >= 65521 else b
        return self.b << 16 | self.a


def isqrt(x: unsigned(32)):
    root, rest = 0, 0
    for n in range(16):
        rest: unsigned(n + 3) = (rest << 2) | (x >> 30 - 2 * n & 3)
        trial = (root << 2) | 1
        if rest >= trial:
            rest, root = rest - trial, (root << 1) | 1
        else:
            root = root << 1
    return root


def median(a: signed(32), b: signed(32), c: signed(32)):
    up, to_c = a < b, a < c
    if up == (b < c):
        return b
    return c if up == to_c else a


def product(a: signed(16), b: signed(16)):
    return min(max(a * b >> 8, -32768), 32767)


def gcd(a: unsigned(8), b: unsigned(8)):
    for _ in range(4):
        if a > b:
            a, b = b, a
        if a != 0:
            b: unsigned(8) = b - a
    return a, b


def sorted8(x: (unsigned(8),) * 8):
    v = list(x)
    for size, step in ((2, 1), (4, 2), (4, 1), (8, 4), (8, 2), (8, 1)):
        for n in range(8):
            other = n ^ step
            if other > n:
                low, high = min(v[n], v[other]), max(v[n], v[other])
                v[n], v[other] = (low, high) if n & size == 0 else (high, low)
    return tuple(v)


def idct(x: (signed(12),) * 8):
    s04, d04 = (x[0] + x[4]) * 724, (x[0] - x[4]) * 724
    e, o = x[2] * C2 + x[6] * C6, x[2] * C6 - x[6] * C2
    even = s04 + e, d04 + o, d04 - o, s04 - e
    odd = (x[1] * C1 + x[3] * C3 + x[5] * C5 + x[7] * C7, x[1] * C3 - x[3] * C7 - x[5] * C1 - x[7] * C5,
           x[1] * C5 - x[3] * C1 + x[5] * C7 + x[7] * C3, x[1] * C7 - x[3] * C5 + x[5] * C3 - x[7] * C1)
    return (even[0] + odd[0] >> 11, even[1] + odd[1] >> 11, even[2] + odd[2] >> 11, even[3] + odd[3] >> 11,
            even[3] - odd[3] >> 11, even[2] - odd[2] >> 11, even[1] - odd[1] >> 11, even[0] - odd[0] >> 11)


def distance(lat: signed(18), lon: signed(18), lat2: signed(18), lon2: signed(18), cos: unsigned(16)):
    """The square of the equirectangular distance, in steps of 2^−16 of a half turn and a cosine over 2^16."""
    x = (lon - lon2) * cos >> 16
    y = lat - lat2
    return x * x + y * y


@kernel
class Fir16:
    past: (signed(12),) * 15

    def step(self, x: signed(12)):
        # The filter is symmetric: one product for two taps.
        total = (x + self.past[14]) * TAPS[0]
        for n in range(7):
            total += (self.past[n] + self.past[13 - n]) * TAPS[n + 1]
        for n in range(14):
            self.past[14 - n] = self.past[13 - n]
        self.past[0] = x
        return total


@kernel
class PrefixSum:
    total: unsigned(32)

    def step(self, x: unsigned(16)):
        self.total = (self.total + x) & 0xFFFFFFFF
        return self.total


@kernel
class Varint:
    value: unsigned(28)
    place: unsigned(3)

    def step(self, x: unsigned(8)):
        value = self.value
        for n in range(4):
            if self.place == n:
                value: unsigned(28) = value | (x & 127) << 7 * n
        if x < 128:
            self.value, self.place = 0, 0
            return value
        self.value, self.place = value, min(self.place + 1, 4)
        return None


@kernel
class Runs:
    value: unsigned(8)
    length: unsigned(8)

    def step(self, x: unsigned(8)):
        if x == self.value and self.length < 255:
            self.length += 1
            return None
        ended = self.value, self.length
        self.value, self.length = x, 1
        return ended


def _next(matched, byte):
    """The longest prefix of the pattern that ends in ``PATTERN[:matched]`` and ``byte``."""
    text = PATTERN[:matched] + byte
    return next(n for n in range(min(len(text), len(PATTERN)), -1, -1) if text.endswith(PATTERN[:n]))


NEXT = tuple(tuple(_next(m, bytes([c])) if m < 9 else 0 for m in range(16)) for c in b"abc")


@kernel
class Kmp:
    matched: unsigned(4)

    def step(self, x: unsigned(8)):
        m = self.matched
        if x == 97:
            self.matched = NEXT[0][m]
        elif x == 98:
            self.matched = NEXT[1][m]
        elif x == 99:
            self.matched = NEXT[2][m]
        else:
            self.matched = 0
        return self.matched == 8


@kernel
class Rise:
    last: unsigned(16)
    run: unsigned(16)
    best: unsigned(16)

    def step(self, x: unsigned(16)):
        self.run = self.run + 1 & 0xFFFF if x > self.last else 1
        self.best = max(self.best, self.run)
        self.last = x
        return self.best


@kernel
class Rolling:
    hash: unsigned(32)

    def step(self, x: unsigned(8)):
        self.hash = self.hash * 31 + x & 0xFFFFFFFF
        return self.hash


@kernel
class Top3:
    values: (unsigned(16),) * 3

    def step(self, x: unsigned(16)):
        # They are sorted, which ranges do not know: compared at once, x takes the place of the first that is less.
        first, second, third = self.values[0], self.values[1], self.values[2]
        is_first, is_second, is_third = first < x, second < x, third < x
        self.values[2] = second if is_second else x if is_third else third
        self.values[1] = first if is_first else x if is_second else second
        self.values[0] = x if is_first else first
        return self.values[2]


@kernel
class Flags:
    seen: unsigned(32)

    def step(self, x: unsigned(32)):
        self.seen |= x
        return self.seen


@kernel
class Squares:
    n: unsigned(16)
    total: signed(32)
    squares: unsigned(48)

    def step(self, x: signed(16)):
        self.n = self.n + 1 & 0xFFFF
        self.total: signed(32) = self.total + x
        self.squares = self.squares + x * x & (1 << 48) - 1
        return self.n, self.total, self.squares


@kernel
class Histogram:
    counts: (unsigned(16),) * 4

    def step(self, x: unsigned(8)):
        self.counts[x >> 6] += 1
        return self.counts[0], self.counts[1], self.counts[2], self.counts[3]


@kernel
class Vwap:
    money: unsigned(48)
    volume: unsigned(32)

    def step(self, price: unsigned(16), volume: unsigned(16)):
        self.money = self.money + price * volume & (1 << 48) - 1
        self.volume = self.volume + volume & 0xFFFFFFFF
        return self.money, self.volume


@kernel
class Extent:
    low: signed(16)
    high: signed(16)

    def init(self):
        self.low, self.high = 32767, -32768

    def step(self, x: signed(16)):
        self.low, self.high = min(self.low, x), max(self.high, x)
        return self.low, self.high


@kernel
class Saturated:
    total: signed(12)

    def step(self, x: signed(16)):
        self.total = max(min(self.total + x, 2047), -2048)
        return self.total


@kernel
class SecondBest:
    first: signed(16)
    second: signed(16)

    def init(self):
        self.first = self.second = -32768

    def step(self, x: signed(16)):
        if x > self.first:
            self.first, self.second = x, self.first
        elif x > self.second:
            self.second = x
        return self.second


@kernel
class BestVolume:
    price: unsigned(16)
    volume: unsigned(48)

    def step(self, price: unsigned(16), volume: unsigned(16)):
        if price > self.price:
            self.price, self.volume = price, volume
        elif price == self.price:
            self.volume = self.volume + volume & (1 << 48) - 1
        return self.volume


@kernel
class Smoothed:
    mean: signed(28)

    def step(self, x: signed(16)):
        self.mean: signed(28) = self.mean + ((x << 12) - self.mean >> 3)
        return self.mean


@kernel
class Bins:
    """In block RAM: what the last operands wrote is not yet there when the next ones are read."""

    counts: (unsigned(16),) * 4096

    def step(self, x: unsigned(12)):
        self.counts[x] = self.counts[x] + 1 & 0xFFFF
        return self.counts[x]


KERNELS = (crc8, Crc32, Adler32, isqrt, median, product, gcd, sorted8, idct, distance, Fir16, PrefixSum, Varint,
           Runs, Kmp, Rise, Rolling, Top3, Flags, Squares, Histogram, Vwap, Extent, Saturated, SecondBest, BestVolume,
           Smoothed, Bins)
