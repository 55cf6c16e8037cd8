"""The plan of a circuit: tests lowered to the operations of a datapath, and to its cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from splitjoin.base.errors import plural
from splitjoin.lang.ir import text
from splitjoin.plan.plan import BOTH_ENDS, Plan, plan_lines

from .core_choice import SCAN, CoreChoice
from .formula import Formula
from .schedule import PipelineRegisters
from .sums import SumRelation


@dataclass(frozen=True)
class SumTest:
    """A sum test. ``r``, ``s``: the slots of the axes' keys; ``rest_r``, ``rest_s``: those of the keys beside them."""

    relation: SumRelation
    r: tuple[int, ...]
    s: tuple[int, ...]
    rest_r: int | None = None
    rest_s: int | None = None


@dataclass(frozen=True)
class CircuitPlan(Plan):
    """A plan lowered to a circuit. In ``tree`` the sum tests are numbered on from the interval tests, and the formula
    test from these.

    Attributes:
        sums: The sum tests.
        formula: The formula test; None without one.
        widths: The constant width of each interval test's intervals (high end minus low end), apart from intervals that
            a key's range cuts off or that are empty; None where widths differ, or both ends are needed.
        registers: The pipeline registers of the datapath beside those that every datapath has.
        clock: The clock that the registers were chosen for, in MHz; None where none was asked for.
        core: The way in which cores find the matches of a probe.
    """

    sums: tuple[SumTest, ...] = ()
    formula: Formula | None = None
    widths: tuple[int | None, ...] = ()
    registers: PipelineRegisters = field(default_factory=PipelineRegisters)
    clock: float | None = None
    core: CoreChoice = SCAN

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The plan in words, one line for each key, test and fact."""
        sums = [t.relation.described((*t.r, t.rest_r), (*t.s, t.rest_s)) for t in self.sums]
        if self.formula is not None:
            cycles = self.formula.pipeline.ahead
            sums.append(f"{text(self.formula.condition)}, computed in the circuit in {cycles} "
                        f"{plural(cycles, 'cycle')}; a probe brings the keys that this reads")
        yield from plan_lines(self, sums, map(_brought, self.widths))
        if self.clock is not None:
            yield f"clock       {_registers(self.registers, self.clock)}"


def _brought(width: int | None) -> str:
    """The part of an interval in a probe's record, in words, for an interval test of constant ``width``."""
    return {None: BOTH_ENDS, 0: "a key to equal"}.get(width, f"the low end of an interval {width} wide")


def _registers(registers: PipelineRegisters, clock: float) -> str:
    """The registers of the datapath beside those that every datapath has, in words."""
    said = [] if registers.chain == 64 else [f"after {registers.chain} bits of a comparison"]
    said += [f"after {registers.levels} gates in a row of the tree"] if registers.levels else []
    said += ["after each addition of a sum"] if registers.sums else []
    said += ["after the digits of a difference"] if registers.digits else []
    return f"for {clock:g} MHz, registers {', '.join(said) or 'nowhere but where every datapath has them'}"
