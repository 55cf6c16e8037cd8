"""The items that a circuit must give for some tuples, by the reference model: pairs and stars, or folded states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, STAR, Items
from splitjoin.engines.golden import GoldenDevice, tuples_of
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.aggregate_functions import FoldFailure, FoldTerm, last_state
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.ir import Lit, columns
from splitjoin.lang.properties import denominator
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.types import BOOL
from splitjoin.plan.encoding import Coder, TupleCodes
from splitjoin.plan.plan import Tree

from ..formula import Formula
from ..lowering import device_order
from ..plan import CircuitPlan, SumTest
from ..query_circuit import QueryCircuit
from ..sums import AxisRelation
from ..wire import ROW_BITS, Configuration, ItemKind

_Pairs = npt.NDArray[np.bool_]


def candidates(plan: CircuitPlan, incoming: Arrivals) -> _Pairs:
    """True for each pair of a tuple of R and one of S, bool (R's tuples, S's tuples), that passes the tests of
    ``plan``. An R tuple's bounds are compared with an S tuple's keys, without the circuit's arithmetic.
    """
    coder = Coder(plan)
    r, s = (coder.codes(side, incoming.table(side)) for side in ("r", "s"))
    tests = [(low[:, None] <= s.keys[test.s]) & (s.keys[test.s] <= high[:, None])
             for test, low, high in zip(plan.tests, r.lows, r.highs, strict=True)]
    tests += [_sum(test, r, s) for test in plan.sums]
    if plan.formula is not None:
        tests.append(_formula(plan.formula, incoming))
    return _combined(plan.tree, tests, (len(incoming.r), len(incoming.s)))


def _combined(tree: Tree, tests: list[_Pairs], shape: tuple[int, int]) -> _Pairs:
    if isinstance(tree, int):
        return tests[tree]
    kind, *parts = tree
    join, start = (np.logical_and, True) if kind == "and" else (np.logical_or, False)
    return reduce(join, (_combined(part, tests, shape) for part in parts), np.full(shape, start))


def _formula(formula: Formula, incoming: Arrivals) -> _Pairs:
    """The outcome of ``formula``, by the meaning of its condition."""
    condition = compile_condition(formula.condition)
    rows_r, rows_s = (tuples_of(incoming.table(side), side, columns(formula.condition)) for side in SIDES)
    return np.array([[condition(r, s) is True for s in rows_s] for r in rows_r], np.bool_).reshape(
        len(incoming.r), len(incoming.s))


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


#: Partners, the row ids of S in the order of arrival, of a tuple of R.
_Partners = Mapping[int, list[int]]


def expected_items(query: Query, circuit: QueryCircuit, incoming: Arrivals) -> list[int]:
    """The items for all tuples ``incoming``, END included, as integers of `Configuration.item_record`.

    In order ``total``, and where states leave whole, they are in the circuit's sequence. A star has 0 in the field of
    the other stream, unless it carries a part of a state; a pair has side 0 where either tuple may find the other one.
    ``circuit`` is that of ``query``. Raises `InputError` if a
    state leaves its width.
    """
    config = circuit.config
    items = _items(circuit, incoming)
    end = [_item(config, ItemKind.END)]
    if not config.folds:
        return [_pair_or_star(config, *item) for item in items.tolist()] + end
    states = _States(query, circuit, incoming)
    found = states.of(_partners(items, config.whole_states))
    if config.whole_states:
        return [item for row, state in enumerate(found) for item in _state_items(config, row, state)] + end
    out: list[int] = []
    seen: set[int] = set()  # tuples of R with a later partner
    for kind, side, r, s in items.tolist():  # in order total, as of all queries that a circuit folds
        if side == 1:
            if kind == STAR or not config.first_hits or r not in seen:
                out.append(_pair_or_star(config, kind, side, r, s))
            seen |= {r} if kind == PAIR else set()
        elif kind == STAR:
            out += _state_items(config, r, found[r])
    return out + end


def _items(circuit: QueryCircuit, incoming: Arrivals) -> Items:
    """The pairs and stars of the reference model; of a circuit whose pairs the host verifies, with all candidates."""
    verified = circuit.plan.residual is not None
    query = replace(circuit.query, order=device_order(circuit.query, circuit.config, verified=verified))
    if verified:
        query = replace(query, predicate=Lit(BOOL, True))
    with GoldenDevice(cores=circuit.config.cores, expire=circuit.config.expire).open(query) as session:
        session.push(incoming)
        items = session.flush()
    if not verified:
        return items
    pair, found = items["kind"] == PAIR, candidates(circuit.plan, incoming)
    kept: Items = items[~pair | found[np.where(pair, items["r"], 0), np.where(pair, items["s"], 0)]]
    return kept


def _partners(items: Items, whole: bool) -> _Partners:
    """The partners that each tuple of R is folded with: those that came before it, and if ``whole`` the later ones."""
    found = defaultdict(list)
    for kind, side, r, s in items.tolist():
        if kind == PAIR and (whole or side == 0):
            found[r].append(s)
    return {r: sorted(partners) for r, partners in found.items()}


def _item(config: Configuration, kind: int, side: int = 0, r: int = 0, s: int = 0) -> int:
    mask, at = (1 << config.row_bits) - 1, config.item_record.offsets()
    return kind << at["kind"][0] | side << at["side"][0] | (r & mask) << at["r"][0] | (s & mask) << at["s"][0]


def _pair_or_star(config: Configuration, kind: int, side: int, r: int, s: int) -> int:
    side = side if kind == STAR or config.structure.later_probes else 0
    return _item(config, kind, side, 0 if kind == STAR and side == 1 else r, 0 if kind == STAR and side == 0 else s)


def _state_items(config: Configuration, row: int, state: int) -> list[int]:
    """The items that carry ``state`` of R's tuple ``row``: the low bits first, the last 32 in its star."""
    out, mask = [], 2**ROW_BITS - 1
    for _ in range(config.beats):
        out.append(_item(config, ItemKind.PAIR, 0, state & mask, state >> ROW_BITS & mask))
        state >>= 2 * ROW_BITS
    return [*out, _item(config, ItemKind.STAR, 0, row, state)]


class _States:
    """The states of R's tuples, folded in plain Python, a partner at a time."""

    def __init__(self, query: Query, circuit: QueryCircuit, incoming: Arrivals):
        assert circuit.folding is not None
        self._config, self._folding, self._decides = circuit.config, circuit.folding, circuit.decides
        self._aggregates, self._count = query.aggregates, len(incoming.r)
        self._tuples = tuples_of(incoming.s, "s", (c for a in query.aggregates for e in a.args for c in columns(e)))

    def of(self, partners: _Partners) -> list[int]:
        """The state of each tuple of R, as an integer of `Configuration.state`."""
        return [self._state(row, partners.get(row, [])) for row in range(self._count)]

    def _state(self, row: int, partners: list[int]) -> int:
        fields: dict[str, int] = {"any": int(bool(partners))}
        for n, part in enumerate(self._config.folds):
            fields |= {f"slot{n}_{i}": slot.init for i, slot in enumerate(part.slots)}
        if self._decides is not None and self._decides.partner and partners:
            fields["slot0_0"] = max(partners) if self._decides.partner == "max" else min(partners)
        for aggregate, parts in zip(self._aggregates, self._folding.outputs, strict=True):
            fields |= self._parts(aggregate, parts, row, partners)
        state = 0
        for name, (at, width) in self._config.state.offsets().items():
            state |= (fields.get(name, 0) & (1 << width) - 1) << at
        return state

    def _parts(self, aggregate: Aggregate, parts: Sequence[int], row: int, partners: list[int]) -> dict[str, int]:
        fields: dict[str, int] = {}
        for term, n in zip(aggregate.terms, parts, strict=True):
            if isinstance(term, FoldTerm):
                fields |= self._fold(term, n, row, partners)
                continue
            values: list[Any] = [1] * len(partners)
            if term.of is not None:
                evaluate, per = compile_condition(term.of), denominator(term.of)
                found = [evaluate({}, self._tuples[s]) for s in partners]
                values = [1 if term.kind == "count" else int(v * per) for v in found if v is not None]
            fold = {"least": min, "greatest": max}.get(term.kind, sum)
            fields |= {f"added{n}": int(bool(values))} | ({f"slot{n}_0": fold(values)} if values else {})
        return fields

    def _fold(self, term: FoldTerm, part: int, row: int, partners: list[int]) -> dict[str, int]:
        evaluators = [compile_condition(e) for e in term.args]
        with np.errstate(all="ignore"):
            given = [[f({}, self._tuples[s]) for f in evaluators] for s in partners]
        try:
            state = last_state(term.fold, given, term.args)
        except FoldFailure:
            raise InputError(f"a testbench compares states, and {term.text} leaves its width at tuple {row} of r; give "
                             f"columns a narrower range, or fewer --testbench-tuples") from None
        slots = term.fold.init if state is None else state
        return {f"added{part}": int(state is not None)} | {f"slot{part}_{i}": n for i, n in enumerate(slots)}
