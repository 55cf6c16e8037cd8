"""The pairs that a circuit finds, where the host verifies them: by the tests of its plan, on whole numbers."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.plan.encoding import Coder, TupleCodes
from splitjoin.plan.plan import Tree

from ..plan import CircuitPlan, SumTest
from ..sum_relations import AxisRelation

__all__ = ["candidates"]

_Pairs = npt.NDArray[np.bool_]


def candidates(plan: CircuitPlan, incoming: Arrivals) -> _Pairs:
    """True for each pair of a tuple of R and one of S, bool (R's tuples, S's tuples), that passes the tests of
    ``plan``. An R tuple's bounds are compared with an S tuple's keys, without the circuit's arithmetic.
    """
    coder = Coder(plan)
    r, s = (coder.codes(side, incoming.table(side)) for side in ("r", "s"))
    tests = [(low[:, None] <= s.keys[test.s]) & (s.keys[test.s] <= high[:, None])
             for test, low, high in zip(plan.tests, r.lows, r.highs, strict=True)]
    return _combined(plan.tree, tests + [_sum(test, r, s) for test in plan.sums], (len(incoming.r), len(incoming.s)))


def _combined(tree: Tree, tests: list[_Pairs], shape: tuple[int, int]) -> _Pairs:
    if isinstance(tree, int):
        return tests[tree]
    kind, *parts = tree
    join, start = (np.logical_and, True) if kind == "and" else (np.logical_or, False)
    return reduce(join, (_combined(part, tests, shape) for part in parts), np.full(shape, start))


def _sum(test: SumTest, r: TupleCodes, s: TupleCodes) -> _Pairs:
    relation = test.relation
    total: Any = sum(_axis(axis, r.values[a].values.astype(object)[:, None], s.values[b].values.astype(object))
                     for axis, a, b in zip(relation.axes, test.r, test.s, strict=True))
    if test.rest_r is not None:
        total = total + r.values[test.rest_r].values.astype(object)[:, None]
    if test.rest_s is not None:
        total = total + s.values[test.rest_s].values.astype(object)
    return np.array(total > relation.limit if relation.above else total <= relation.limit, np.bool_)


def _axis(axis: AxisRelation, r: npt.NDArray[Any], s: npt.NDArray[Any]) -> Any:
    """The share of ``axis`` in the sum, for each pair of values."""
    if axis.kind == "differing":
        return np.vectorize(lambda a, b: ((int(a) ^ int(b)) & 2**axis.bits - 1).bit_count(), [object])(r, s)
    difference = r - s + axis.c
    return (difference * difference if axis.kind == "square" else abs(difference)) * 2**axis.shift
