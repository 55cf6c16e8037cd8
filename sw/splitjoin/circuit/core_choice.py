"""The choice of a circuit's cores: those that scan, or those with an index on some of the condition's tests.

ESJ's main and secondary predicates: an index narrows the sub-window to candidates by the main ones, and all tests are
checked on the candidates. The compiler picks the main test (`splitjoin.plan.passes.tree`); this module decides whether
an index on it suits the circuit's parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.errors import UnsupportedError
from splitjoin.plan.plan import Plan

from .core_kinds import KINDS
from .parameters import CircuitParameters

#: Sub-windows with fewer tuples are scanned: following an index costs a dozen cycles a probe, and memory.
SMALLEST = 256


@dataclass(frozen=True)
class CoreChoice:
    """The kind of core for a condition.

    Attributes:
        kind: Its name, of `splitjoin.circuit.core_kinds.KINDS`.
        index: The tests that its index is built on, main one first; empty without an index.
        reason: Why this kind, in words.
    """

    kind: str
    index: tuple[int, ...]
    reason: str


#: Cores that scan, which every condition can have.
SCAN = CoreChoice("scan", (), "it was asked for")


def choose_core(plan: Plan, parameters: CircuitParameters) -> CoreChoice:
    """Choose the cores for ``plan``: the kind that ``parameters`` ask for, or for ``auto`` the kind that suits a
    sub-window of the given capacity, which must not be None.

    Raises `UnsupportedError` if the condition has no test for the requested kind of index.
    """
    assert parameters.capacity is not None
    core = parameters.core
    main = plan.main
    if core != "auto":
        return CoreChoice(core, KINDS[core].suitable_index(plan), "it was asked for")
    if parameters.structure.sequential or parameters.structure.moves:
        return CoreChoice("scan", (), f"{parameters.structure.title} scans")
    if parameters.tables:
        return CoreChoice("scan", (), "tables, which are asked for, are of scans")
    if (parameters.lanes > 1 or parameters.probes > 1) and parameters.memory == "bram":
        return CoreChoice("scan", (), "lanes and probes, of which more than one are asked for, are of scans")
    if parameters.memory != "bram":
        if main is None or main.test is None or main.kind is None:
            raise UnsupportedError(f"memory='{parameters.memory}' needs a condition with an index, an equality or a "
                                   f"band that holds for every result, such as abs(r.x - s.a) <= 10, and this one has "
                                   f"none; use memory='bram', or device='cpu'")
        return CoreChoice(main.kind, KINDS[main.kind].index_with(plan, main.test), main.reason)
    if parameters.capacity < SMALLEST:
        return CoreChoice("scan", (), f"an index does not pay below {SMALLEST} tuples a core")
    if main is None or main.test is None or main.kind is None:
        return CoreChoice("scan", (), "no test narrows a search" if main is None else main.reason)
    return CoreChoice(main.kind, KINDS[main.kind].index_with(plan, main.test), main.reason)
