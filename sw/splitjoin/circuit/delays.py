"""The delays of a datapath's steps on ECP5, from which the pipeline registers for a clock are chosen.

The figures are from datapaths placed and routed by themselves (nextpnr-ecp5, LFE5U-85F of speed grade 6, the slowest;
bench/clocks.py), rounded up. The delay of a wire is included in that of the element it drives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .schedule import FACTOR, additions
from .sums import AxisRelation, SumRelation, axis_value_bits, kept_bits

__all__ = ["StageDelay", "chain_ns", "combined_digits", "comparison", "equality", "gate_ns", "product_ns",
           "register_ns", "sum_steps", "tree", "width_digits"]

#: Delays in ns: into and out of registers; a gate of four signals; a carry chain, and each of its cells, which holds
#: two bits of a sum or up to three of a comparison; a multiplier.
_REGISTERS, _GATE, _CHAIN, _CELL, _MULTIPLIER = 1.3, 1.3, 1.95, 0.05, 5.6


@dataclass(frozen=True)
class StageDelay:
    """The logic between two registers, in words, and its delay in ns."""

    what: str
    ns: float


def comparison(bits: int) -> StageDelay:
    """The step of an interval test that compares a key with a bound of ``bits`` bits."""
    return StageDelay(f"a comparison of {bits} bits", _REGISTERS + _CHAIN + _CELL * -(-3 * bits // 8))


def equality(bits: int) -> StageDelay:
    """The step of an equality test on numbers of ``bits`` bits."""
    return StageDelay(f"a comparison of {bits} bits for being equal", _REGISTERS + _CHAIN + _CELL * -(-bits // 4))


def width_digits(bits: int) -> StageDelay:
    """The step that computes a difference of ``bits`` bits and the outcome of each of its four-bit digits."""
    return StageDelay(f"a difference of {bits} bits and its digits", _REGISTERS + _added(bits) + _GATE)


def combined_digits(bits: int, levels: int = 0) -> StageDelay:
    """The step that combines the digits of a difference of ``bits`` bits, and ``levels`` gates of the tree."""
    return StageDelay(f"the digits of {bits} bits together", _REGISTERS + _GATE * (_levels(-(-bits // 4)) + levels))


def tree(levels: int) -> StageDelay:
    """The step of ``levels`` gates in a row."""
    return StageDelay(f"{levels} {'gates' if levels > 1 else 'gate'} of four signals in a row",
                      _REGISTERS + _GATE * levels)


def sum_steps(relation: SumRelation, *, apart: bool) -> Iterator[StageDelay]:
    """The steps of a sum test; ``apart``: with a cycle for each addition (`PipelineRegisters.sums`)."""
    most = max(relation.most, -1)
    keys = [key for key in (relation.r, relation.s) if key is not None]
    widths = [key.width for key in keys]
    for axis in relation.axes:
        kept = kept_bits(axis.kind, axis.bits, axis.shift, most)
        yield from _axis_steps(axis, kept, apart=apart)
        widths.append(axis_value_bits(axis.kind, kept, axis.shift))
    rows = additions(len(relation.axes) + bool(keys))
    width = max(widths) + rows
    compared = _added(max(width, most.bit_length())) + _GATE
    if apart:
        yield StageDelay(f"an addition of {width} bits", _REGISTERS + _added(width))
        yield StageDelay(f"a sum's comparison, of {width} bits", _REGISTERS + compared)
    else:
        yield StageDelay(f"{rows} additions and a comparison of {width} bits",
                         _REGISTERS + rows * _added(width) + compared)


def _axis_steps(axis: AxisRelation, kept: int, *, apart: bool) -> Iterator[StageDelay]:
    if axis.kind == "differing":
        yield StageDelay("a count of eight bits", _REGISTERS + 3 * _GATE)
        counts = -(-axis.bits // 8)
        yield StageDelay(f"an addition of {counts} counts",
                         _REGISTERS + additions(counts) * _added(axis.bits.bit_length()))
        return
    looked_at = 0.0 if kept == axis.bits else _GATE * (1 + _levels(axis.bits - kept + 1))
    difference = _REGISTERS + _added(axis.bits)
    yield StageDelay(f"a difference of {axis.bits} bits", difference if apart else difference + looked_at)
    yield StageDelay(f"a look at {axis.bits - kept + 1} bits of a difference", _REGISTERS + looked_at)
    products = _added(2 * kept - FACTOR) if kept > FACTOR else 0.0
    if axis.kind == "absolute":
        yield StageDelay(f"an absolute value of {kept} bits", _REGISTERS + _added(kept) + _GATE)
    elif apart:
        yield StageDelay("a multiplication", _REGISTERS + _MULTIPLIER)
        yield StageDelay(f"an addition of products of {kept} bits", _REGISTERS + products)
    else:
        yield StageDelay(f"a square of {kept} bits", _REGISTERS + _MULTIPLIER + 2 * products)


def gate_ns() -> float:
    """The delay in ns of a LUT."""
    return _GATE


def chain_ns(bits: int) -> float:
    """The delay in ns of a carry chain: an addition, a difference or a comparison by size of ``bits`` bits."""
    return _added(bits)


def product_ns(bits: int, product: int) -> float:
    """The delay in ns of a product of ``product`` bits, whose wider factor has ``bits`` bits."""
    return _MULTIPLIER + (0.0 if bits <= FACTOR else 2 * _added(product))


def register_ns() -> float:
    """The delay in ns into and out of registers."""
    return _REGISTERS


def _added(bits: int) -> float:
    """The delay in ns of an addition, a difference or a comparison by size of ``bits`` bits."""
    return _CHAIN + _CELL * -(-bits // 2)


def _levels(signals: int) -> int:
    """The number of gates of four signals in a row that combine ``signals`` signals."""
    return -(-(signals - 1).bit_length() // 2)
