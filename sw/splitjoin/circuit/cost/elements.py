"""LUTs of the elements of circuits outside the datapath: adders, multiplexers, equalities, gates."""

from __future__ import annotations

from .resources import Family, Resources, inputs

#: Addresses of a block RAM → bits at each, for blocks of 18 Kbit (ECP5 DP16KD, of which 16 Kbit count below 9 bits).
_BLOCKS = {512: 36, 1024: 18, 2048: 9, 4096: 4, 8192: 2, 16384: 1}


def adder(family: Family, *widths: int) -> int:
    """LUTs of adders, or comparisons by size, one for each width: a carry bit a LUT, on ECP5 in cells of two."""
    return sum(2 * -(-width // 2) if family == "ecp5" else width for width in widths)


def control(family: Family, luts: int) -> int:
    """LUTs of control logic, given in LUT4: families with wider LUTs need fewer."""
    return luts * 3 // (inputs(family) - 1)


def counter(family: Family, *widths: int) -> int:
    """LUTs of counters and additions of a constant: on UltraScale+ the carry chain needs no LUTs."""
    return adder(family, *widths) if family == "ecp5" else 0


def gate(family: Family, signals: int) -> int:
    """LUTs of an AND or OR of ``signals`` signals: a tree of LUTs."""
    return max(0, -(-(signals - 1) // (inputs(family) - 1)))


def equal(family: Family, *widths: int) -> int:
    """LUTs of equality comparisons: a LUT for a few bit pairs, and a gate over these."""
    pairs = inputs(family) // 2
    return sum(-(-width // pairs) + gate(family, -(-width // pairs)) for width in widths)


def mux(family: Family, ways: int, width: int = 1) -> int:
    """LUTs of a multiplexer over ``ways`` words: two ways a LUT4, four a LUT6; wider ones use the slices' own."""
    return 0 if ways < 2 else -(-ways // (2 if family == "ecp5" else 4)) * width


def fifo(family: Family, width: int, depth: int) -> Resources:
    """The cost of a `splitjoin_hw.network.queue.Queue` in LUT RAM: six LUT4 for 16 × 4 bits, or eight for 32 × 14."""
    bits = (depth - 1).bit_length()
    if family == "ecp5":
        rows = -(-depth // 16)
        luts = -(-width // 4) * rows * 6 + (mux(family, rows, width) if rows > 1 else 0)
    else:
        luts = -(-width // 14) * 8 * -(-depth // 32)
    # Two pointers and a level; the flags full and empty, and the occupancy.
    return Resources(lut=luts + adder(family, bits, bits, bits + 1) + equal(family, bits, bits + 1, bits + 1)
                     + mux(family, 2, 2 * bits), ff=3 * bits + 1, ram_bits=width * depth)


def memory(family: Family, width: int, depth: int) -> Resources:
    """The cost of a `splitjoin_hw.tech.ram.Ram` of ``depth`` rows and its output register."""
    bits = width * depth
    if depth <= 16:
        luts = 6 * -(-width // 4) if family == "ecp5" else 8 * -(-width // 14)
        return Resources(lut=luts, ff=2 * width, ram_bits=bits)
    if depth > max(_BLOCKS):
        return Resources(block_ram=-(-depth // max(_BLOCKS)) * width, ram_bits=bits)
    rows = min(n for n in _BLOCKS if n >= depth)
    # ECP5's blocks are instantiated with their own output register.
    return Resources(ff=0 if family == "ecp5" else width, block_ram=-(-width // _BLOCKS[rows]), ram_bits=bits)

