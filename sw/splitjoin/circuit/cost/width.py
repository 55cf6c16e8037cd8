"""Cost of tests of constant width: a difference and its digits, or an equality comparison."""

from __future__ import annotations

from .elements import adder, equal
from .resources import Family, Resources

__all__ = ["bound_codes", "width_test"]


def width_test(family: Family, bits: int, above: int, *, apart: bool) -> Resources:
    """The cost, for one pair of lane and probe, of a test whose low ends have ``bits`` bits and whose intervals have
    the constant width ``above`` (high end minus low end).

    ``apart``: True if the outcomes of the digits are combined in a cycle of their own (`splitjoin_hw.hls.width`).
    """
    if not above:
        # ECP5: half a carry cell for the lowest bit, one half for each further two bits, one for the carry output.
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
    """LUTs per low end of ``bits`` bits when a probe is loaded: for an equality on ECP5, inverters of every other bit
    (`splitjoin_hw.tech.equality`).
    """
    return (bits - 1) // 2 if family == "ecp5" and not above else 0
