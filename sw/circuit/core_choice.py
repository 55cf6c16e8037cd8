"""The choice of a circuit's cores: those that scan, or those with an index on some of the condition's tests.

ESJ's main and secondary predicates: an index narrows the sub-window to candidates by the main ones, and all tests are
checked on the candidates. Which test is best is the compiler's to say (`splitjoin.plan.passes.tree`); here it is
weighed against what the circuit is to be.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..plan.plan import Plan
from .core_kinds import KINDS
from .parameters import CircuitParameters

__all__ = ["SCAN", "SMALLEST", "CoreChoice", "choose_core"]

#: Sub-windows with fewer tuples are scanned: following an index costs a dozen cycles a probe, and memory.
SMALLEST = 256


@dataclass(frozen=True)
class CoreChoice:
    """The kind of core for a condition.

    Attributes:
        kind: Its name, of `splitjoin.circuit.core_kinds.KINDS`.
        index: The tests that its index goes by, main one first; empty without an index.
        reason: Why this kind, in words.
    """

    kind: str
    index: tuple[int, ...]
    reason: str


#: Cores that scan, which every condition can have.
SCAN = CoreChoice("scan", (), "it was asked for")


def choose_core(plan: Plan, parameters: CircuitParameters) -> CoreChoice:
    """The cores for ``plan``: those that ``parameters`` ask for, or if that is ``auto`` those that suit a sub-window of
    its capacity, which is not None.

    Raises `UnsupportedError` where the condition has nothing for the kind of index that was asked for.
    """
    assert parameters.capacity is not None
    core = parameters.core
    main = plan.main
    if core != "auto":
        return CoreChoice(core, KINDS[core].suitable_index(plan), "it was asked for")
    if parameters.tables:
        return CoreChoice("scan", (), "tables, which are asked for, are of scans")
    if parameters.lanes > 1 or parameters.probes > 1:
        return CoreChoice("scan", (), "lanes and probes, of which more than one are asked for, are of scans")
    if parameters.capacity < SMALLEST:
        return CoreChoice("scan", (), f"an index does not pay below {SMALLEST} tuples a core")
    if main is None or main.test is None or main.kind is None:
        return CoreChoice("scan", (), "no test narrows a search" if main is None else main.reason)
    return CoreChoice(main.kind, KINDS[main.kind].index_with(plan, main.test), main.reason)
