"""Cost of tests of constant width: a difference and its digits, or a comparison for being equal."""

from __future__ import annotations

from .elements import adder, equal
from .resources import Family, Resources

__all__ = ["bound_codes", "width_test"]


def width_test(family: Family, bits: int, above: int, *, apart: bool) -> Resources:
    """What a pair takes for a test whose low ends have so many ``bits``, and whose intervals end ``above`` these.

    ``apart``: what the digits say is combined in a cycle of its own (`splitjoin.hw.hls.width`).
    """
    if not above:
        # ECP5: a half carry cell for the lowest bit, one for two bits each, one to bring the carry out.
        return Resources(lut=2 * -(-(2 + bits // 2) // 2) if family == "ecp5" else equal(family, bits), ff=1)
    luts = ff = 0
    signals = 0
    for n, at in enumerate(range(0, bits, 4)):
        size, of = min(4, bits - at), above >> at & 15
        found = (of > 0 and n > 0) + (of < 2**size - 1)
        ff += found
        luts += found
        signals += found
    combined = -(-max(0, signals - 1) // 3)
    return Resources(lut=adder(family, bits) + luts + combined, ff=ff + apart)


def bound_codes(family: Family, bits: int, above: int) -> int:
    """LUTs that a low end of so many ``bits`` takes when a probe is loaded: of an equality on ECP5, inverters of every
    other bit (`splitjoin.hw.tech.equality`).
    """
    return (bits - 1) // 2 if family == "ecp5" and not above else 0
