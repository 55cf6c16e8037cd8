"""Pass ``clock``: the datapath gets as many registers as a clock that is asked for needs.

A comparison is cut into parts, the Boolean tree into stages, and each addition of a sum gets a cycle of its own; only
where a step would otherwise take longer than a cycle, by the times of `splitjoin.circuit.delays`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...errors import UnsupportedError
from ...plan.plan import Test
from ..delays import Step, combined_digits, comparison, sum_steps, tree
from ..plan import CircuitPlan
from ..schedule import Gate, PipelineRegisters, arranged

__all__ = ["pipelined"]

#: Bits of a comparison's part, at least: with fewer it is hardly faster.
_LEAST = 4
#: As many gates in a row as any tree has.
_ANY = 2**31


def pipelined(plan: CircuitPlan, clock: float | None) -> CircuitPlan:
    """``plan`` with the pipeline registers that ``clock``, in MHz, needs; None for those that every datapath has.

    Raises `UnsupportedError` for a clock that no registers are enough for, with the highest that is to be had.
    """
    if clock is None:
        return plan
    slowest = max(_steps(plan), key=lambda step: step.ns)
    period = 1000 / clock
    if slowest.ns > period:
        raise UnsupportedError(
            f"clock must be one that the datapath of the condition can have on ECP5, but at {clock:g} MHz a cycle is "
            f"{period:.2f} ns, and {slowest.what} takes {slowest.ns:.2f} ns; the nearest clock that it can have is "
            f"{math.floor(1000 / slowest.ns)} MHz")
    wide = _widest(plan)
    chain = next((bits for bits in range(wide, _LEAST, -1) if comparison(bits + (bits < wide)).ns <= period),
                 min(wide, _LEAST))
    depth = _depth(plan)
    levels = next(n for n in range(max(depth, 1), 0, -1) if n == 1 or tree(n).ns <= period)
    apart, digits = (any(step.ns > period for sum_ in plan.sums for step in sum_steps(sum_.relation, apart=False)),
                     any(combined_digits(bits, depth).ns > period for bits in _differences(plan)))
    return replace(plan, clock=clock, registers=PipelineRegisters(
        chain if chain < wide else 64, levels if levels < depth else 0, apart, digits))


def _steps(plan: CircuitPlan) -> Iterator[Step]:
    """What the datapath does between two registers each, with as many as there can be."""
    yield tree(1)
    wide = _widest(plan)
    if wide:
        yield comparison(min(wide, _LEAST + 1))
    yield from map(combined_digits, _differences(plan))
    for sum_ in plan.sums:
        yield from sum_steps(sum_.relation, apart=True)


def _widest(plan: CircuitPlan) -> int:
    """Bits of the widest comparison with two bounds."""
    return max((_bits(plan, test) for test, width in _with_widths(plan) if width is None), default=0)


def _differences(plan: CircuitPlan) -> Iterator[int]:
    """Bits of the differences of tests with a width."""
    return (_bits(plan, test) + 1 for test, width in _with_widths(plan) if width)


def _with_widths(plan: CircuitPlan) -> Iterator[tuple[Test, int | None]]:
    return zip(plan.tests, plan.widths, strict=True)


def _bits(plan: CircuitPlan, test: Test) -> int:
    return max(plan.slots_r[test.r].key.width, plan.slots_s[test.s].key.width)


def _depth(plan: CircuitPlan) -> int:
    """Gates in a row that the whole tree is."""
    signals = [1 if plan.sums or width is not None else 2 for width in plan.widths] + [1] * len(plan.sums)
    root = arranged(plan.tree, _ANY, signals)
    return root.depth if isinstance(root, Gate) else 1
