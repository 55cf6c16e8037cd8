"""The pipeline registers of a predicate's datapath, and the latency in cycles of its tests and its Boolean tree.

Without a required clock, every test takes one cycle and so does the tree, whatever their width and depth. Pass
``clock`` chooses other `PipelineRegisters` where that would be too slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

#: Cycles from keys to the outcome of a sum test without further registers: differences, the axes' values, the
#: comparison.
SUM_STAGES = 3
#: Most signals that a gate of an arranged tree combines: the inputs of a LUT4.
_INPUTS = 4


@dataclass(frozen=True)
class PipelineRegisters:
    """The pipeline registers of a datapath beside those that every datapath has. ``chain``: bits of a comparison that
    are decided in one cycle, 1 to 64. ``levels``: gates of four signals in a row between two registers of the Boolean
    tree; 0 for the whole tree. ``sums``: True if each addition of a sum has a cycle of its own, as do those of a
    square's partial products and the sum's comparison. ``digits``: True if, in a test of constant width, the outcomes
    of a difference's digits are combined in a cycle of their own.
    """

    chain: int = 64
    levels: int = 0
    sums: bool = False
    digits: bool = False


@dataclass(frozen=True)
class Gate:
    """AND or OR of tests (numbers) and gates.

    ``stage``: the cycle of the tree in which the gate is computed, from 0; earlier inputs wait in registers. ``depth``:
    gates in a row since the previous register.
    """

    op: str
    inputs: tuple[Gate | int, ...]
    stage: int
    depth: int


@dataclass(frozen=True)
class Schedule:
    """The latency of a datapath. ``ready``: cycles from each test's keys to its outcome, the sum tests and then the
    formula test last. ``root``: the arranged Boolean tree.
    """

    ready: tuple[int, ...]
    root: Gate | int

    @classmethod
    def of(cls, registers: PipelineRegisters, widths: Sequence[int], further: Sequence[int], tree: object,
           constant: Sequence[int | None] = (), *, tables: bool = False, formula: int | None = None) -> Schedule:
        """The schedule of a datapath.

        Args:
            registers: Its pipeline registers.
            widths: Bits of each interval test.
            further: For each sum test, the additional cycles if each of its additions has one.
            tree: How the tests combine.
            constant: For each interval test its constant width (`splitjoin.circuit.plan.CircuitPlan.widths`).
            tables: True if tests of constant width are looked up (`splitjoin.circuit.wire.Configuration.tables`).
            formula: Cycles of the pipeline of the formula test; None without one.
        """
        constant = constant or [None] * len(widths)
        ready = ([1 + len(parts(width, registers.chain)) if wide is None
                  else 2 + (registers.digits and (tables or wide > 0))
                  for width, wide in zip(widths, constant, strict=True)]
                 + [1 + SUM_STAGES + cycles * registers.sums for cycles in further]
                 + ([] if formula is None else [1 + formula]))
        # The outcome of an interval test is two signals, one per comparison, until a register holds it for a later
        # test.
        signals = [2 if n < len(widths) and constant[n] is None and cycles == max(ready) else 1
                   for n, cycles in enumerate(ready)]
        return cls(tuple(ready), arranged(tree, registers.levels, signals))

    @cached_property
    def together(self) -> int:
        """Cycles until the outcomes of all tests are ready."""
        return max(self.ready)

    @property
    def stages(self) -> int:
        """Cycles from the keys to the outcome of the predicate."""
        return self.together + (self.root.stage if isinstance(self.root, Gate) else 0) + 1


def parts(width: int, chain: int) -> tuple[int, ...]:
    """Bits of a ``width``-bit comparison that each cycle decides, as equal as possible, the lowest first."""
    count = -(-width // chain)
    return tuple(width // count + (n < width % count) for n in range(count))


def additions(numbers: int) -> int:
    """Depth of a tree of additions over ``numbers`` numbers."""
    return (numbers - 1).bit_length()


def arranged(tree: object, levels: int, signals: Sequence[int]) -> Gate | int:
    """``tree`` as gates with ``levels`` gates in a row between registers; earlier signals are combined first.

    ``signals``: the number of signals of each test's outcome until a register holds it. If ``levels`` is 0, a gate has
    all inputs of its operator and there is one stage, which the synthesis tool maps freely.
    """
    if isinstance(tree, int):
        return tree
    assert isinstance(tree, tuple)
    op, *operands = tree
    made = [arranged(operand, levels, signals) for operand in operands]
    if not levels:
        return Gate(op, tuple(made), 0, 1)
    while len(made) > 1:
        made.sort(key=_time)
        group, room = [made[0]], _INPUTS - _signals(made[0], signals)
        for node in made[1:]:
            room -= _signals(node, signals)
            if room < 0 and len(group) > 1:
                break
            group.append(node)
        made = [_gate(op, tuple(group), levels), *made[len(group):]]
    return made[0]


def _gate(op: str, inputs: tuple[Gate | int, ...], levels: int) -> Gate:
    stage = max(_time(node)[0] for node in inputs)
    depth = 1 + max(_time(node)[1] for node in inputs if _time(node)[0] == stage)
    return Gate(op, inputs, stage, depth) if depth <= levels else Gate(op, inputs, stage + 1, 1)


def _time(node: Gate | int) -> tuple[int, int]:
    return (node.stage, node.depth) if isinstance(node, Gate) else (0, 0)


def _signals(node: Gate | int, signals: Sequence[int]) -> int:
    return signals[node] if isinstance(node, int) else 1
