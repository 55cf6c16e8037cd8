"""Cost of sum tests: differences, squares, absolute values, counts of bits, the sum and its comparison."""

from __future__ import annotations

from splitjoin.hls.delays import FACTOR

from ..sums import Axis, Sum, axis_value_bits
from .elements import adder, gate
from .resources import Family, Resources

#: LUTs that count the ones among eight XORs of two bits, the XORs included.
_COUNT = {"ecp5": 18, "ultrascale": 17}
#: Widest factor that one multiplier takes, and two: MULT18X18D, DSP48E2 (27 × 18 bits).
_FACTORS = {"ecp5": (18, 18), "ultrascale": (18, 27)}


def sum_pair(family: Family, test: Sum, rest: int | None, *, apart: bool = False) -> Resources:
    """The cost of ``test`` for one pair of lane and probe, up to the register of its outcome.

    ``rest``: the width of the stored key that is added, or None. ``apart``: True if each addition has a cycle of its
    own.
    """
    total, widths, fits = Resources(lut=1, ff=1), [], 0
    for axis in test.axes:
        kept = test.kept(axis)
        total += _axis(family, axis, kept, apart=apart)
        if apart:
            total += _apart(family, axis, kept, wide=test.wide)
        fits += axis.kind != "differing" and kept < axis.bits
        widths.append(axis_value_bits(axis.kind, kept, axis.shift))
    widths += [] if rest is None else [rest]
    if apart:
        total += Resources(ff=_between(widths, test.additions) + test.additions * (fits > 0))
    added, width = _added(family, widths)
    compared = adder(family, max(width, test.limit_bits)) if test.limited else _constant(family, width)
    return total + Resources(lut=added + compared + gate(family, fits + 1))


def _apart(family: Family, axis: Axis, kept: int, *, wide: bool) -> Resources:
    """The additional cost of an axis if each addition has a cycle of its own; negative in parts for a square."""
    fits = axis.kind != "differing" and kept < axis.bits
    # Registers hold the dropped bits instead of the outcome of their check; the outcome and the value are delayed.
    resources = Resources(ff=(axis.bits - kept - 1 + wide) * fits)
    if axis.kind == "square" and kept > FACTOR:
        half = FACTOR - 1
        products = 2 * half + 2 * (kept - half) - 1 + FACTOR + kept - half
        one, two = _FACTORS[family]
        before = 1 if kept <= one else 2 if kept <= two else 4
        luts = adder(family, 2 * kept - 2 * half + half - 1) - (before - 1) * adder(family, kept + 5)
        return resources + Resources(lut=luts, ff=products, dsp=3 - before)
    value = {"square": 2 * kept - 1, "absolute": kept, "differing": axis.bits.bit_length()}[axis.kind]
    return resources + Resources(ff=value * wide)


def _between(widths: list[int], additions: int) -> int:
    """Pipeline registers between ``additions`` additions in a row."""
    registers = 0
    for _ in range(additions):
        pairs = [max(widths[n:n + 2]) + 1 for n in range(0, len(widths) - 1, 2)]
        widths = pairs + widths[2 * len(pairs):]
        registers += sum(widths)
    return registers


def _axis(family: Family, axis: Axis, kept: int, *, apart: bool) -> Resources:
    if axis.kind == "differing":
        counts = [min(8, axis.bits - at) for at in range(0, axis.bits, 8)]
        widths = [n.bit_length() for n in counts]
        return Resources(lut=len(counts) * _COUNT[family] + _added(family, widths)[0],
                         ff=sum(widths) + axis.bits.bit_length())
    fits = kept < axis.bits
    upper = axis.bits - kept + 1
    resources = Resources(lut=adder(family, axis.bits) + (_alike(family, upper, apart=apart) if fits else 0),
                          ff=kept + 2 * fits)
    if axis.kind == "absolute":
        # The negation, and the multiplexer.
        choice = kept * 3 // 2 if family == "ecp5" else kept * 2 // 3
        return resources + Resources(lut=adder(family, kept) + choice, ff=kept)
    # Wider factors take two or four partial products, which are added up.
    one, two = _FACTORS[family]
    parts = 1 if kept <= one else 2 if kept <= two else 4
    return resources + Resources(lut=(parts - 1) * adder(family, kept + 5), ff=2 * kept - 1, dsp=parts)


def _alike(family: Family, bits: int, *, apart: bool) -> int:
    """LUTs of the check that ``bits`` bits are all equal. With ``apart`` the bits come from registers, else from a
    carry chain: then Yosys, which maps for delay, turns more than ten of them into wide functions of several LUT4 each,
    2.8 LUT4 per bit (measured up to 60 bits).
    """
    gates = 2 * gate(family, bits) + 1
    return gates if apart or family != "ecp5" else max(gates, 14 * bits // 5 - 19)


def _added(family: Family, widths: list[int]) -> tuple[int, int]:
    """LUTs of a tree of additions over numbers of ``widths`` bits, and the sum's width."""
    luts = 0
    while len(widths) > 1:
        pairs = [max(widths[n:n + 2]) + 1 for n in range(0, len(widths) - 1, 2)]
        luts += adder(family, *pairs)
        widths = pairs + widths[2 * len(pairs):]
    return luts, widths[0]


def _constant(family: Family, width: int) -> int:
    """LUTs of a comparison with a constant: a carry bit per LUT4; three bits per LUT6."""
    return adder(family, width) if family == "ecp5" else -(-width // 3)
