"""The choice whether a circuit folds the aggregates of a query, and how: the values that S's tuples are stored with,
and the parts of the state of each R probe.

Regions fold the partners that were stored before the R tuple. Those that come later are folded where the R tuple is
stored, and the state leaves whole when it expires; or they are pairs, which the host adds to the state
(`splitjoin.rows.aggregates.state_operator`). What has no merge that regions could use is folded behind the gather
trees, by one unit, in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import SplitJoinError, UnsupportedError
from splitjoin.hls.graph import Graph, width_of
from splitjoin.hls.pipeline import scheduled
from splitjoin.hls.programs import build_graph
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.fold import Fold
from splitjoin.lang.ir import Expr, columns, text
from splitjoin.lang.properties import denominator, may_be_null, value_range
from splitjoin.lang.query import Query
from splitjoin.lang.types import Date, Duration, Timestamp, is_exact
from splitjoin.plan.keys import Codes

from .fold_bounds import StateBounds
from .fold_parts import (
    NO_MERGE,
    FoldPart,
    FoldValue,
    StateSlot,
    added,
    count_part,
    extreme_part,
    scheduled_add,
    sum_part,
)
from .parameters import CircuitParameters
from .plan import CircuitPlan
from .wire import ROW_BITS


@dataclass(frozen=True)
class StoredValue:
    """A value that S's tuples are stored with: that of ``expr``, or with 0 bits only whether it is there. ``low``,
    ``high``: the range of the whole numbers that are stored. ``expr`` is None for row ids, which are not stored, and
    for values of aggregates that the query does not ask for, which are stored as 0.
    """

    expr: Expr | None
    value: FoldValue
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class FoldChoice:
    """Values and parts of states that a circuit folds. ``outputs``: for each aggregate of the query the numbers of its
    parts: one for each of its terms, or one for a user-defined one. ``whole``: partners that come later are folded too;
    ``not_whole``: the reason why they are not, where that was tried. ``in_order``: the reason why one unit folds all
    parts in the order of arrival; empty where regions fold.
    """

    values: tuple[StoredValue, ...]
    parts: tuple[FoldPart, ...]
    outputs: tuple[tuple[int, ...], ...]
    whole: bool = False
    not_whole: str = ""
    in_order: str = ""


def fold_choice(query: Query, plan: CircuitPlan, parameters: CircuitParameters,
                built: Sequence[Aggregate] = (), *, whole: bool = False, in_order: str = "") -> FoldChoice:
    """The choice for a circuit with ``parameters``, whose capacity is not None, and ``query``, whose condition has
    ``plan``.

    ``built``: the aggregates that an existing circuit was built for;
    their parts of a state come first, and those of ``query`` are looked up among them. ``whole``: states are to leave
    whole. ``in_order``: one unit is to fold, for this reason. Raises `UnsupportedError`, with the reason, if pairs must
    leave.
    """
    check_folds(plan, parameters, in_order=bool(in_order))
    assert parameters.capacity is not None
    stored = parameters.cores * parameters.capacity
    made = (_OrderedChoice if in_order else _Choice)(_most_partners(query, stored) if whole else stored,
                                                     parameters.clock)
    return replace(made.of(query, built), whole=whole, in_order=in_order)


def _most_partners(query: Query, stored: int) -> int:
    """The most partners of a tuple of R, before and after it, in a circuit that holds up to ``stored`` tuples of S."""
    r, s = query.window_r, query.window_s
    if r.length is not None and s.length is not None and s.rows is None and s.length >= r.length:
        return 2 * stored  # when the last partner comes, S's window holds all that came after the tuple of R
    return int(2**ROW_BITS) - 1


def check_folds(plan: CircuitPlan, parameters: CircuitParameters, *, in_order: bool = False) -> None:
    """Raise `UnsupportedError`, with the reason, if no circuit with ``parameters`` and ``plan`` folds; ``in_order``: by
    a unit of its own.
    """
    if parameters.fold == "never":
        raise UnsupportedError("fold is 'never'")
    if plan.residual is not None:
        raise UnsupportedError("the host verifies the pairs that the tests let through")
    if plan.core.index and not (in_order and parameters.fold == "always"):
        raise UnsupportedError(f"cores of kind {plan.core.kind} do not fold; core='scan' does")
    if not parameters.structure.folds:
        raise UnsupportedError(f"{parameters.structure.title} does not fold")
    if parameters.row_bits < ROW_BITS:
        raise UnsupportedError(f"states leave in items with row ids of {ROW_BITS} bits, and row_bits is "
                               f"{parameters.row_bits}")
    if parameters.root_width > 1:
        raise UnsupportedError(f"states leave an item a cycle, and root_width is {parameters.root_width}")


def payload_fields(choice: FoldChoice, table: Any) -> dict[str, Codes | int]:
    """The values, by the names of `Configuration.payload`, that the tuples of S in ``table`` are stored with."""
    found: dict[str, Codes | int] = {}
    for n, stored in enumerate(choice.values):
        if stored.expr is None:
            continue
        with np.errstate(all="ignore"):
            v = evaluate(stored.expr, table)
        valid = v.valid
        if stored.value.nullable:
            found[f"present{n}"] = valid.astype(np.uint64)
        if stored.value.ranged:
            outside = ((v.values < stored.low) | (v.values > stored.high)).astype(np.bool_)
            found[f"wrong{n}"] = (outside & valid).astype(np.uint64)
            valid = valid & ~outside
        if stored.value.bits:
            found[f"value{n}"] = _codes(v, valid)
    return found


def _codes(v: Vector, valid: npt.NDArray[np.bool_]) -> Codes:
    """The whole numbers of ``v`` modulo 2^64, 0 where not ``valid``."""
    if v.values.dtype == object:
        return np.array([int(x) % 2**64 if ok else 0 for x, ok in zip(v.values, valid, strict=True)], np.uint64)
    whole = v.values if v.values.dtype == np.uint64 else v.values.astype(np.int64).view(np.uint64)
    out: Codes = np.where(valid, whole, np.uint64(0))
    return out


class _Choice:
    """Collects values and parts, each once."""

    def __init__(self, stored: int, clock: float | None):
        self._stored, self._clock = stored, clock
        self._values: dict[tuple[Expr, int, int], StoredValue] = {}
        self._parts: dict[Any, FoldPart] = {}

    def of(self, query: Query, built: Sequence[Aggregate]) -> FoldChoice:
        outputs = []
        for aggregate in (*built, *query.aggregates):
            try:
                outputs.append(self._aggregate(aggregate))
            except SplitJoinError as error:
                raise UnsupportedError(f"{aggregate.text}: {error}") from error
        parts, asked = self._made(), tuple(outputs[len(built):])
        # The columns of a query need not have the values for other aggregates that the circuit was built for.
        used = {n for output in asked for part in output for n in parts[part].values}
        values = tuple(v if n in used else replace(v, expr=None) for n, v in enumerate(self._values.values()))
        return FoldChoice(values, parts, asked)

    def _made(self) -> tuple[FoldPart, ...]:
        return tuple(self._parts.values())

    def _aggregate(self, aggregate: Aggregate) -> tuple[int, ...]:
        for e in aggregate.args:
            mixed = [c for c in columns(e) if c.side == "r"]
            if mixed:
                raise UnsupportedError(f"a circuit folds values of stored tuples, and r.{mixed[0].name} is not one")
        terms = aggregate.terms
        if not terms or not all(term.slides for term in terms):
            raise UnsupportedError(f"{aggregate.function} of {aggregate.args[0].type} is not folded in circuits")
        if any(t.kind in ("first", "last", "distinct") or (t.kind != "fold" and len(t.arguments) > 1) for t in terms):
            raise UnsupportedError(f"{aggregate.function} is not folded in circuits")
        return tuple(self._fold(term) if isinstance(term, FoldTerm) else self._term(term) for term in terms)

    def _term(self, term: Term) -> int:
        e = term.of
        if e is None or term.kind == "count":
            return self._count(e)
        if not (is_exact(e.type) or isinstance(e.type, (Date, Timestamp, Duration))):
            raise UnsupportedError(f"circuits fold whole numbers, decimals and times, and {text(e)} is {e.type}")
        per = denominator(e)
        low, high = (int(end * per) for end in value_range(e))
        number = self._value(e, low, high)
        if term.kind == "sum":
            return self._part(("sum", number), sum_part(number, low, high, self._stored))
        kind = "min" if term.kind == "least" else "max"
        return self._part((kind, number), extreme_part(number, low, high, kind))

    def _count(self, e: Expr | None) -> int:
        values: tuple[int, ...] = ()
        if e is not None and may_be_null(e):
            # A value that is stored anyway tells it too.
            known = [n for n, v in enumerate(self._values.values()) if v.expr == e]
            values = (known[0],) if known else (self._value(e, 0, 0, bits=0),)
        return self._part(("count", values), count_part(values, self._stored))

    def _fold(self, term: FoldTerm) -> int:
        fold = term.fold
        if fold.merge is None or fold.ordered:
            raise UnsupportedError(f"{fold.name} has no merge that does not depend on the order, and partners are "
                                 f"spread over lanes and cores")
        numbers = self._arguments(term)
        init = dict(zip((s.name for s in fold.slots), fold.init, strict=True))
        lift = scheduled(build_graph(fold.add, init, _argument_names(fold)), self._clock)
        merge = build_graph(fold.merge, {}, _slot_names(fold))
        cycles = scheduled(merge, self._clock).ahead
        if cycles > 1:
            raise UnsupportedError(f"a merge of {fold.name} takes {cycles} cycles at {self._clock:g} MHz, and a region "
                                 f"merges in each; ask for a slower clock")
        bounds = StateBounds(fold.slots, [lift.graph.nodes[n] for n in lift.graph.outputs], merge, self._stored)
        slots = [StateSlot(slot.width.bits, slot.width.signed, slot.init, bounds.may_exceed(n))
                 for n, slot in enumerate(fold.slots)]
        return self._part((fold, numbers), FoldPart(numbers, tuple(slots), lift, merge))

    def _arguments(self, term: FoldTerm) -> tuple[int, ...]:
        """The numbers of the values that are the arguments of ``term``."""
        fold, numbers = term.fold, []
        for argument, e in zip(fold.arguments, term.args, strict=True):
            if not is_exact(e.type):
                raise UnsupportedError(f"circuits fold whole numbers and decimals, and {text(e)} is {e.type}")
            low, high = argument.width.range
            least, most = value_range(e)
            numbers.append(self._value(e, low, high, ranged=not low <= least <= most <= high))
        return tuple(numbers)

    def _value(self, e: Expr, low: int, high: int, *, bits: int | None = None, ranged: bool = False) -> int:
        if bits is None:
            bits = width_of(low, high)
        if bits > 64:
            raise UnsupportedError(f"{text(e)} needs {bits} bits, and circuits store up to 64")
        made = StoredValue(e, FoldValue(bits, low < 0, may_be_null(e), ranged), low, high)
        key = e, bits, low
        self._values.setdefault(key, made)
        return list(self._values).index(key)

    def _part(self, key: Any, part: FoldPart) -> int:
        self._parts.setdefault(key, part)
        return list(self._parts).index(key)


class _OrderedChoice(_Choice):
    """Parts that one unit folds in the order of arrival, by their ``add``, all at one interval."""

    def __init__(self, stored: int, clock: float | None):
        super().__init__(stored, clock)
        self._adds: list[Graph] = []  # of each part

    def _made(self) -> tuple[FoldPart, ...]:
        pairs = list(zip(self._parts.values(), self._adds, strict=True))
        interval = max(scheduled_add(add, self._clock).interval for add in self._adds)
        return tuple(replace(part, lift=NO_MERGE[0], merge=NO_MERGE[1], add=scheduled_add(add, self._clock, interval))
                     for part, add in pairs)

    def _fold(self, term: FoldTerm) -> int:
        fold, numbers = term.fold, self._arguments(term)
        add = build_graph(fold.add)
        names = {"r": _slot_names(fold), "s": _argument_names(fold)}  # either may have the same names
        add = replace(add, nodes=tuple(replace(n, name=names[n.side][n.name]) if n.kind == "input" else n
                                       for n in add.nodes))
        slots = []
        for slot, number in zip(fold.slots, add.outputs, strict=True):
            low, high = slot.width.range
            fits = low <= add.nodes[number].low <= add.nodes[number].high <= high
            slots.append(StateSlot(slot.width.bits, slot.width.signed, slot.init, not fits))
        return self._part((fold, numbers), FoldPart(numbers, tuple(slots), *NO_MERGE), add)

    def _part(self, key: Any, part: FoldPart, add: Graph | None = None) -> int:
        if key not in self._parts:
            self._adds.append(added(part) if add is None else add)
        return super()._part(key, part)


def _slot_names(fold: Fold) -> dict[str, str]:
    return {s.name: f"slot{n}" for n, s in enumerate(fold.slots)}


def _argument_names(fold: Fold) -> dict[str, str]:
    return {a.name: f"argument{n}" for n, a in enumerate(fold.arguments)}
