"""How a circuit's cores find what a probe matches: by a scan, or by an index on some of the condition's tests.

ESJ's main and secondary predicates: an index narrows the sub-window to candidates by the main ones, and all tests are
checked on the candidates. Which test is best is the compiler's to say (`splitjoin.plan.passes.tree`); here it is
weighed against what the circuit is to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UnsupportedError
from ..plan.linear import ExactRelation
from ..plan.plan import Plan, leading_tests
from ..plan.relations import FloatBand, FloatOrder, Product, Relation, TextOrder, WideRelation
from .parameters import CircuitParameters

__all__ = ["SCAN", "SMALLEST", "CoreChoice", "choose_core"]

#: Sub-windows with fewer tuples are scanned: following an index costs a dozen cycles a probe, and memory.
SMALLEST = 256
#: Tests of a bucket index: with one more, the buckets that a probe reaches double.
_BANDS = 2


@dataclass(frozen=True)
class CoreChoice:
    """``kind``: scan, hash or bucket. ``index``: the tests it goes by, main one first. ``reason``: why, in words."""

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
    if core == "scan":
        return SCAN
    if core != "auto":
        return CoreChoice(core, _asked_for(plan, core), "it was asked for")
    if parameters.tables:
        return CoreChoice("scan", (), "tables, which are asked for, are of scans")
    if parameters.lanes > 1 or parameters.probes > 1:
        return CoreChoice("scan", (), "lanes and probes, of which more than one are asked for, are of scans")
    if parameters.capacity < SMALLEST:
        return CoreChoice("scan", (), f"an index does not pay below {SMALLEST} tuples a core")
    if main is None or main.test is None or main.kind is None:
        return CoreChoice("scan", (), "no test narrows a search" if main is None else main.reason)
    index = _hashed(plan, main.test) if main.kind == "hash" else _bucketed(plan, main.test)
    return CoreChoice(main.kind, index, main.reason)


def _asked_for(plan: Plan, core: str) -> tuple[int, ...]:
    points, bands = _points(plan), _bands(plan)
    best = None if plan.main is None else plan.main.test
    if core == "hash":
        if not points:
            other = "bucket" if bands else "scan"
            raise UnsupportedError(f"core hash needs an equality between the streams that holds for every result, such "
                                   f"as r.x = s.a, and this condition has none; use core='{other}'")
        return _hashed(plan, best if best in points else points[0])
    if not points and not bands:
        raise UnsupportedError("core bucket needs a test that holds for every result and bounds a key at both ends, "
                               "such as abs(r.x - s.a) <= 10, and this condition has none; use core='scan'")
    return _bucketed(plan, best if best in points or best in bands else (points + bands)[0])


def _hashed(plan: Plan, main: int) -> tuple[int, ...]:
    return _with(plan, main, _points(plan))


def _bucketed(plan: Plan, main: int) -> tuple[int, ...]:
    return _with(plan, main, _points(plan) + _bands(plan))[:_BANDS]


def _points(plan: Plan) -> list[int]:
    return [j for j in leading_tests(plan) if plan.tests[j].is_point]


def _bands(plan: Plan) -> list[int]:
    """Those whose intervals end on both sides, short of the keys' range."""
    return [j for j in leading_tests(plan) if not plan.tests[j].is_point
            and {end for relation in plan.tests[j].relations for end in _ends(relation)} == {"<", ">"}]


def _with(plan: Plan, main: int, others: Iterable[int]) -> tuple[int, ...]:
    """``main``, and those of ``others`` whose keys no earlier one is about, in either stream."""
    out = [main]
    for j in others:
        if all(plan.tests[j].r != plan.tests[k].r and plan.tests[j].s != plan.tests[k].s for k in out):
            out.append(j)
    return tuple(out)


def _ends(relation: Relation) -> str:
    """``<`` if ``relation`` bounds what falls with the keys of S, ``>`` if what rises with them, or both."""
    if isinstance(relation, WideRelation):
        relation = relation.exact
    if isinstance(relation, (ExactRelation, FloatBand, FloatOrder, TextOrder, Product)):
        ends = "<>" if relation.op == "=" else relation.op[0]
        turned = isinstance(relation, ExactRelation) and relation.h < 0
        return ends.translate(str.maketrans("<>", "><")) if turned else ends
    return ""
