"""The delays of a datapath's steps on ECP5 (`splitjoin.hls.delays`), from which the pipeline registers for a clock are
chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from splitjoin.hls.delays import CELL, CHAIN, FACTOR, GATE, MULTIPLIER, REGISTERS, chain_ns

from .schedule import additions
from .sums import AxisRelation, SumRelation, axis_value_bits, kept_bits


@dataclass(frozen=True)
class StageDelay:
    """The logic between two registers, in words, and its delay in ns."""

    what: str
    ns: float


def comparison(bits: int) -> StageDelay:
    """The step of an interval test that compares a key with a bound of ``bits`` bits."""
    return StageDelay(f"a comparison of {bits} bits", REGISTERS + CHAIN + CELL * -(-3 * bits // 8))


def equality(bits: int) -> StageDelay:
    """The step of an equality test on numbers of ``bits`` bits."""
    return StageDelay(f"a comparison of {bits} bits for being equal", REGISTERS + CHAIN + CELL * -(-bits // 4))


def width_digits(bits: int) -> StageDelay:
    """The step that computes a difference of ``bits`` bits and the outcome of each of its four-bit digits."""
    return StageDelay(f"a difference of {bits} bits and its digits", REGISTERS + chain_ns(bits) + GATE)


def combined_digits(bits: int, levels: int = 0) -> StageDelay:
    """The step that combines the digits of a difference of ``bits`` bits, and ``levels`` gates of the tree."""
    return StageDelay(f"the digits of {bits} bits together", REGISTERS + GATE * (_levels(-(-bits // 4)) + levels))


def tree(levels: int) -> StageDelay:
    """The step of ``levels`` gates in a row."""
    return StageDelay(f"{levels} {'gates' if levels > 1 else 'gate'} of four signals in a row",
                      REGISTERS + GATE * levels)


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
    compared = chain_ns(max(width, most.bit_length())) + GATE
    if apart:
        yield StageDelay(f"an addition of {width} bits", REGISTERS + chain_ns(width))
        yield StageDelay(f"a sum's comparison, of {width} bits", REGISTERS + compared)
    else:
        yield StageDelay(f"{rows} additions and a comparison of {width} bits",
                         REGISTERS + rows * chain_ns(width) + compared)


def _axis_steps(axis: AxisRelation, kept: int, *, apart: bool) -> Iterator[StageDelay]:
    if axis.kind == "differing":
        yield StageDelay("a count of eight bits", REGISTERS + 3 * GATE)
        counts = -(-axis.bits // 8)
        yield StageDelay(f"an addition of {counts} counts",
                         REGISTERS + additions(counts) * chain_ns(axis.bits.bit_length()))
        return
    looked_at = 0.0 if kept == axis.bits else GATE * (1 + _levels(axis.bits - kept + 1))
    difference = REGISTERS + chain_ns(axis.bits)
    yield StageDelay(f"a difference of {axis.bits} bits", difference if apart else difference + looked_at)
    yield StageDelay(f"a look at {axis.bits - kept + 1} bits of a difference", REGISTERS + looked_at)
    products = chain_ns(2 * kept - FACTOR) if kept > FACTOR else 0.0
    if axis.kind == "absolute":
        yield StageDelay(f"an absolute value of {kept} bits", REGISTERS + chain_ns(kept) + GATE)
    elif apart:
        yield StageDelay("a multiplication", REGISTERS + MULTIPLIER)
        yield StageDelay(f"an addition of products of {kept} bits", REGISTERS + products)
    else:
        yield StageDelay(f"a square of {kept} bits", REGISTERS + MULTIPLIER + 2 * products)


def _levels(signals: int) -> int:
    """The number of gates of four signals in a row that combine ``signals`` signals."""
    return -(-(signals - 1).bit_length() // 2)
