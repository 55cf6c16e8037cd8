"""The delays of a datapath's elements on ECP5, from which the pipeline registers for a clock are chosen.

The figures are from datapaths placed and routed by themselves (nextpnr-ecp5, LFE5U-85F of speed grade 6, the slowest;
bench/clocks.py), rounded up. The delay of a wire is included in that of the element it drives.
"""

from __future__ import annotations

#: Bits of the factors of a multiplier block, in two's complement.
FACTOR = 18
#: Rows of a block of RAM, and bits of each.
BLOCK_RAM = {512: 36, 1024: 18, 2048: 9, 4096: 4, 8192: 2, 16384: 1}
#: Delays in ns: into and out of registers; a gate of four signals; a carry chain, and each of its cells, which holds
#: two bits of a sum or up to three of a comparison; a multiplier.
REGISTERS, GATE, CHAIN, CELL, MULTIPLIER = 1.3, 1.3, 1.95, 0.05, 5.6
#: Delays in ns of block RAM, beyond those of registers: out of it; and into it, with the choice of what is written
#: after a reset. Its wires are longer than others.
FETCH, STORE = 5.2, 2.5


def chain_ns(bits: int) -> float:
    """The delay in ns of a carry chain: an addition, a difference or a comparison by size of ``bits`` bits."""
    return CHAIN + CELL * -(-bits // 2)


def product_ns(bits: int, product: int) -> float:
    """The delay in ns of a product of ``product`` bits, whose wider factor has ``bits`` bits."""
    return MULTIPLIER + (0.0 if bits <= FACTOR else 2 * chain_ns(product))
