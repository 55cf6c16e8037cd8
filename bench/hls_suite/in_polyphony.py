# ruff: noqa: B007, SIM108, SIM300  # what Polyphony does not compile otherwise
"""The functions of the suite that Polyphony 0.4.2 compiles, in its types. Polyphony reads it; nothing imports it."""

from polyphony import testbench
from polyphony.typing import bit8, bit16, bit32, int16, int32


def crc8(x: bit8) -> bit8:
    c: bit8 = x
    for i in range(8):
        if c & 128:
            c = ((c << 1) ^ 7) & 255
        else:
            c = (c << 1) & 255
    return c


def isqrt(x: bit32) -> bit16:
    root: bit32 = 0
    rest: bit32 = 0
    for n in range(16):
        rest = (rest << 2) | ((x >> (30 - 2 * n)) & 3)
        trial: bit32 = (root << 2) | 1
        if rest >= trial:
            rest = rest - trial
            root = (root << 1) | 1
        else:
            root = root << 1
    return root


def median(a: int32, b: int32, c: int32) -> int32:
    up = a < b
    to_c = a < c
    if up == (b < c):
        return b
    if up == to_c:
        return c
    return a


def product(a: int16, b: int16) -> int16:
    p: int32 = (a * b) >> 8
    if p > 32767:
        p = 32767
    if p < -32768:
        p = -32768
    return p


def gcd(a: bit8, b: bit8) -> bit8:
    for i in range(4):
        if a > b:
            t: bit8 = a
            a = b
            b = t
        if a != 0:
            b = b - a
    return b


@testbench
def test():
    # Polyphony compiles what its test calls.
    assert 7 == crc8(1)
    assert 31 == isqrt(1000)
    assert 2 == median(1, 2, 3)
    assert 1 == product(16, 16)
    assert 4 == gcd(8, 4)


test()
