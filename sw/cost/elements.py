"""LUTs of the elements that circuits outside the datapath are made of: adders, multiplexers, equalities, gates."""

from __future__ import annotations

from .resources import Family, Resources, inputs

__all__ = ["adder", "control", "counter", "equal", "fifo", "gate", "memory", "mux"]

#: Addresses of a block → bits at each, of blocks of 18 Kbit (ECP5 DP16KD, of which 16 Kbit count below 9 bits).
_BLOCKS = {512: 36, 1024: 18, 2048: 9, 4096: 4, 8192: 2, 16384: 1}


def adder(family: Family, *widths: int) -> int:
    """Adders, subtractors or comparisons by size, one of each width: a carry bit a LUT, on ECP5 in cells of two."""
    return sum(2 * -(-width // 2) if family == "ecp5" else width for width in widths)


def control(family: Family, luts: int) -> int:
    """Logic of so many LUT4 that has no arithmetic: a LUT of more inputs does more of it."""
    return luts * 3 // (inputs(family) - 1)


def counter(family: Family, *widths: int) -> int:
    """Counters, and sums with a constant: on UltraScale+ the carry chain does without LUTs."""
    return adder(family, *widths) if family == "ecp5" else 0


def gate(family: Family, signals: int) -> int:
    """An AND or OR of so many signals: a tree of LUTs."""
    return max(0, -(-(signals - 1) // (inputs(family) - 1)))


def equal(family: Family, *widths: int) -> int:
    """Comparisons for equality: some bit pairs a LUT, and a gate over these."""
    pairs = inputs(family) // 2
    return sum(-(-width // pairs) + gate(family, -(-width // pairs)) for width in widths)


def mux(family: Family, ways: int, width: int = 1) -> int:
    """One of ``ways`` words: two ways a LUT4, four a LUT6; what is wider goes through the slices' own multiplexers."""
    return 0 if ways < 2 else -(-ways // (2 if family == "ecp5" else 4)) * width


def fifo(family: Family, width: int, depth: int) -> Resources:
    """A `splitjoin.hw.network.queue.Queue` in LUT RAM: 16 × 4 bits are six LUT4, of UltraScale+ 32 × 14 bits eight."""
    bits = (depth - 1).bit_length()
    if family == "ecp5":
        rows = -(-depth // 16)
        luts = -(-width // 4) * rows * 6 + (mux(family, rows, width) if rows > 1 else 0)
    else:
        luts = -(-width // 14) * 8 * -(-depth // 32)
    # Two pointers and a level; full, empty, and how far it is filled.
    return Resources(lut=luts + adder(family, bits, bits, bits + 1) + equal(family, bits, bits + 1, bits + 1)
                     + mux(family, 2, 2 * bits), ff=3 * bits + 1, ram_bits=width * depth)


def memory(family: Family, width: int, depth: int) -> Resources:
    """A `splitjoin.hw.tech.ram.Ram` of ``depth`` rows, with the register behind it."""
    bits = width * depth
    if depth <= 16:
        luts = 6 * -(-width // 4) if family == "ecp5" else 8 * -(-width // 14)
        return Resources(lut=luts, ff=2 * width, ram_bits=bits)
    if depth > max(_BLOCKS):
        return Resources(block_ram=-(-depth // max(_BLOCKS)) * width, ram_bits=bits)
    rows = min(n for n in _BLOCKS if n >= depth)
    # ECP5's blocks are instantiated with their own output register.
    return Resources(ff=0 if family == "ecp5" else width, block_ram=-(-width // _BLOCKS[rows]), ram_bits=bits)

