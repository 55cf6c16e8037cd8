"""Cost of tests of constant width: computed (a difference and its digits, or an equality comparison), or looked up in
tables in LUT RAM, with their writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..geometry import DIGIT, LOOKED_UP, PROBE_GROUP, probe_groups
from .elements import adder, equal, gate
from .resources import Family, Resources


def width_test(family: Family, bits: int, above: int, *, apart: bool) -> Resources:
    """The cost, for one pair of lane and probe, of a test whose low ends have ``bits`` bits and whose intervals have
    the constant width ``above`` (high end minus low end).

    ``apart``: True if the outcomes of the digits are combined in a cycle of their own (`splitjoin_hw.hls.compare`).
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


#: LUTs that compute the table contents of a digit: of an equality; of a band; of a low part in one digit, and in two.
_WRITTEN: dict[Family, tuple[int, int, int, int]] = {"ecp5": (2, 3, 3, 11), "ultrascale": (1, 2, 1, 5)}


@dataclass(frozen=True)
class TableCost:
    """The cost of one test that is looked up. ``pair``, ``lane``, ``probe``, ``region``: like those of
    `splitjoin.circuit.cost.datapath.DatapathCost`, without the tables. ``place``: for each probe of a group that is
    written together, its bounds and the logic of the table contents. ``outputs``: bits that each table of a lane yields
    for a probe. ``signals``: number of signals of the outcome.
    """

    pair: Resources
    lane: Resources
    probe: Resources
    region: Resources
    place: Resources
    outputs: tuple[int, ...]
    signals: int

    def tables(self, family: Family, probes: int) -> Resources:
        """The cost of a lane's tables of 16 rows: six LUT4 for 4 bits, on UltraScale+ eight LUTs for 14."""
        resources = Resources()
        for size in probe_groups(probes):
            for bits in (outputs * size for outputs in self.outputs):
                luts = 6 * -(-bits // 4) if family == "ecp5" else 8 * -(-bits // 14)
                resources += Resources(lut=luts, ram_bits=16 * bits)
        return resources


def writer(family: Family, tests: Sequence[TableCost], lanes: int, probes: int) -> Resources:
    """The cost of the writer of a region's tables: counters of row and group, copied in each lane with the selects of
    the halves that are read and written; the bounds of a group, and the logic of the table contents.
    """
    groups, places = len(probe_groups(probes)), min(PROBE_GROUP, probes)
    resources = Resources(lut=4 + groups + lanes * (5 + groups) + places * gate(family, groups),
                          ff=DIGIT + groups + lanes * (DIGIT + groups + 2))
    return sum((test.place * places for test in tests), resources)


def table_cost(family: Family, width: int, above: int, *, apart: bool) -> TableCost:
    """The cost of a test on keys of ``width`` bits whose intervals have the constant width ``above`` (high end minus
    low end); ``apart``: True if the outcomes of the digits are combined in a cycle of their own.
    """
    least = above.bit_length()
    k = min(next((k for k in (DIGIT - 1, LOOKED_UP - 1) if least <= k), least), width) if above else 0
    low = k + 1 if above else 0
    subtracted = low > LOOKED_UP
    digits = 0 if subtracted else -(-low // DIGIT)  # of the low part
    high = -(-(width - k) // DIGIT)
    single, band, one, two = _WRITTEN[family]
    written = high * (band if above else single) + (0, one, two)[digits]
    # The high part plus one, and the bits in which its code differs.
    changes = adder(family, width + 1 - k) + width - k if above else 0
    # The code of a low end is computed after its register; the subtracted part is held at the comparator.
    held = low if subtracted else 0
    bound = low - held + (2 if above else 1) * (width + 1 - k)
    outputs = (*([2, 2] if digits == 2 else [1] * digits), *[1] * high)

    signals = -(-(high + (digits == 1)) // 4) + (digits == 2)
    pair = Resources(lut=signals, ff=signals)
    if apart:
        pair, signals = pair + Resources(lut=gate(family, signals), ff=1), 1
    if subtracted:
        pair, signals = pair + width_test(family, low, above, apart=apart), signals + 1
    return TableCost(pair, Resources(lut=width - k - 1, ff=low + width - k),
                     Resources(ff=2 * held), Resources(lut=width - k + changes, ff=width + 1),
                     Resources(lut=written, ff=bound + sum(outputs)), outputs, signals)
