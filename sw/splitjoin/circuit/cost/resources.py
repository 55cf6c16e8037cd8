"""The resources of an FPGA family, and the numbers of them that comparators and Boolean trees take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from splitjoin.base.errors import UnsupportedError

#: Families with a cost model. For the others of `splitjoin_hw.tech.target.FAMILIES` the mapping is left to the vendor's
#: tools.
Family = Literal["ecp5", "ultrascale"]
FAMILIES: tuple[Family, ...] = ("ecp5", "ultrascale")
#: Inputs of a LUT.
_INPUTS: dict[Family, int] = {"ecp5": 4, "ultrascale": 6}


@dataclass(frozen=True)
class Resources:
    """Counts of FPGA resources, with addition and multiplication by a number.

    Attributes:
        lut: LUT4 on ECP5 (two for a carry cell, six for 16 × 4 bits of LUT RAM), LUT sites on UltraScale+.
        ff: Flip-flops.
        block_ram: Blocks of 18 Kbit.
        ram_bits: Bits stored in memories of either kind.
        dsp: Multipliers.
    """

    lut: int = 0
    ff: int = 0
    block_ram: int = 0
    ram_bits: int = 0
    dsp: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(self.lut + other.lut, self.ff + other.ff, self.block_ram + other.block_ram,
                         self.ram_bits + other.ram_bits, self.dsp + other.dsp)

    def __mul__(self, times: int) -> Resources:
        return Resources(self.lut * times, self.ff * times, self.block_ram * times, self.ram_bits * times,
                         self.dsp * times)


def check_family(family: str) -> Family:
    """Return ``family`` if it has a cost model. Raises `UnsupportedError` for another one."""
    for known in FAMILIES:
        if family == known:
            return known
    raise UnsupportedError(f"the cost model's family must be one of {', '.join(FAMILIES)}, not {family!r}")


def inputs(family: Family) -> int:
    """Inputs of a LUT."""
    return _INPUTS[family]


def lut_name(family: Family) -> str:
    """The family's name for its LUTs."""
    return f"LUT{_INPUTS[family]}"


def key_code(family: Family, width: int) -> tuple[int, int]:
    """The width of the comparison code of keys and bounds of ``width`` bits, and the LUTs that compute one.

    On ECP5, three bits need two functions that are not plain wires (`splitjoin_hw.tech.order`).
    """
    if family == "ultrascale":
        return width, 0
    groups = (width - 1) // 3
    # An odd number of half cells leaves room for a group's third half, which saves its code.
    groups -= groups > 0 and (width + 1 - groups) % 2 == 1
    return width + groups, 2 * groups


def comparator(family: Family, width: int) -> int:
    """LUTs of one comparison (≥ or ≤) of ``width`` bits.

    ECP5: half a carry cell for the lowest bit, two halves for three bits, one for each remaining bit, and one for the
    carry output; a cell is two LUT4. UltraScale+: two bits per LUT.
    """
    if family == "ultrascale":
        return -(-width // 2)
    groups = key_code(family, width)[0] - width
    halves = 1 + 2 * groups + (width - 1 - 3 * groups) + 1
    return 2 * -(-halves // 2)


def combine(family: Family, tree: object, inputs: Sequence[int]) -> int:
    """LUTs of a Boolean ``tree`` over tests, each of which is the AND of so many ``inputs``.

    Nodes are packed into LUTs by the algorithm of Chortle-crf (Francis, Rose, Vranesic: Chortle-crf, DAC 1991): the
    inputs of a gate by first fit, widest first; then the fullest LUT's output feeds the next LUT that has room.
    """
    if isinstance(tree, int) and inputs[tree] == 1:
        return 0
    luts, _ = _cover(tree, _INPUTS[family], inputs)
    return luts + 1


def _cover(tree: object, room: int, inputs: Sequence[int]) -> tuple[int, int]:
    """LUTs below the LUT at the root of ``tree``, and the number of inputs that the root uses."""
    if isinstance(tree, int):
        return 0, inputs[tree]
    assert isinstance(tree, tuple)
    parts = [_cover(part, room, inputs) for part in _operands(tree)]
    luts = sum(below for below, _ in parts)
    bins: list[int] = []
    for used in sorted((used for _, used in parts), reverse=True):
        _place(bins, used, room)
    while len(bins) > 1:
        bins.remove(max(bins))
        luts += 1
        _place(bins, 1, room)
    return luts, bins[0]


def _operands(tree: tuple[object, ...]) -> list[object]:
    """The operands of nested gates of one kind, flattened."""
    op, *parts = tree
    flat: list[object] = []
    for part in parts:
        flat += _operands(part) if isinstance(part, tuple) and part[0] == op else [part]
    return flat


def _place(bins: list[int], used: int, room: int) -> None:
    for n, inputs in enumerate(bins):
        if inputs + used <= room:
            bins[n] += used
            return
    bins.append(used)
