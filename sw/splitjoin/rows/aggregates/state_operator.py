"""`StateOperator`: makes rows in sessions of circuits that fold, from states and later partners; and
`WholeStateOperator`, where the circuits fold the later partners too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array, Ints, Mask
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, Device, Items
from splitjoin.engines.registry import host
from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side

from ..changes import Changes
from ..device_times import DeviceTimes
from ..numbered import NumberedSession, RowIds
from ..operator import RowBatch
from .decided_bases import DecidedBases
from .fold import Gather, PairTerms, chunked, finished, vectors
from .operator import AggregateOperator
from .user_fold import fold_user

if TYPE_CHECKING:
    from splitjoin.circuit.folded_states import FoldedStates
    from splitjoin.circuit.folding import FoldChoice

#: The row ids of the first rows of both streams that are retained, and these rows in arrival order.
Retained = Callable[[], tuple[tuple[int, int], Arrivals]]


class StateOperator(AggregateOperator):
    """Makes rows from the states of a circuit, which folds the partners before base tuples by ``folding``.

    Its state is that of an `AggregateOperator`, so that a session may move from one to the other: where a session needs
    the pairs behind states, the CPU finds them again among the ``retained`` rows. So it does where a state left its
    width, as only the pairs tell where. ``gather`` gets columns of retained rows.
    """

    #: The streams whose probes find the partners that states hold.
    _folded_sides: ClassVar[tuple[int, ...]] = (0,)
    _gets_pairs = False

    def __init__(self, query: Query, folding: FoldChoice, retained: Retained, gather: Gather):
        super().__init__(query, gather)
        self._drops_lone = False  # pairs do not tell, as states hold partners too
        self._folding = folding
        self._retained, self._gather = retained, gather
        self._first = 0  # the base tuple of the first state
        self._states: dict[str, Array] = {}

    def open(self, device: Device, first: RowIds = (0, 0), settled: RowIds = (0, 0),
             times: DeviceTimes | None = None, changes: Changes | None = None, *, stars: bool = True
             ) -> NumberedSession:
        return NumberedSession(self._query, device, first, settled, folds=True, times=times, changes=changes)

    def follow(self, session: NumberedSession, end: int | None = None) -> None:
        self.note(session.states(end))

    def note(self, states: FoldedStates) -> None:
        """Note the ``states`` of the base tuples that follow those of the states before."""
        if not len(states):
            return
        fields = dict(states.fields)
        over = np.zeros(len(states), np.bool_)
        for name in fields:
            if name.startswith("over"):
                over |= fields[name]
        if over.any():
            pairs = self._folded_pairs()
            self._add_pairs(pairs[np.isin(pairs["r"], states.first + np.flatnonzero(over))])
            fields = {name: np.where(over, self._initial(name), values) for name, values in fields.items()}
        if not self._states:
            self._first, self._states = states.first, fields
            return
        gap = states.first - self._first - len(self._states["any"])
        for name, values in fields.items():
            old = self._states[name]
            self._states[name] = np.concatenate([old, np.full(gap, self._initial(name), old.dtype), values])

    def state(self) -> dict[str, Ints]:
        """The state of an `AggregateOperator`, with all pairs of undecided base tuples."""
        state = super().state()
        if self._states and self._states["any"].any():
            pairs = self._folded_pairs()
            pairs = pairs[np.isin(pairs["r"], self._first + np.flatnonzero(self._states["any"]))]
            state["pairs_r"] = np.concatenate([pairs["r"], state["pairs_r"]])
            state["pairs_s"] = np.concatenate([pairs["s"], state["pairs_s"]])
        return state

    def base_state(self) -> dict[str, Ints]:
        return {name: values for name, values in super().state().items() if not name.startswith("pairs_")}

    def renew(self, items: Items, session: NumberedSession) -> None:
        states, self._states = session.states(), {}
        self._forget_pairs()
        first = self.needed[0]
        gone = min(max(first - states.first, 0), len(states))
        self.note(_without(states, gone))
        self._add_pairs(items[(items["kind"] == PAIR) & (items["side"] == 1) & (items["r"] >= first)])

    def _initial(self, name: str) -> Any:
        """The value of a state's field ``name`` before the first partner."""
        if not name.startswith("slot"):
            return False
        part, slot = map(int, name.removeprefix("slot").split("_"))
        return self._folding.parts[part].slots[slot].init

    def _folded_pairs(self) -> Items:
        """The pairs of retained base tuples with partners that states hold, found by the CPU."""
        first, arrivals = self._retained()
        query = self._query.pairs
        with host().open(query) as session:
            session.push(arrivals)
            items = session.flush()
        found: Items = items[(items["kind"] == PAIR) & np.isin(items["side"], self._folded_sides)].copy()
        found["r"] += first[0]
        found["s"] += first[1]
        return found

    def _folded(self, decided: DecidedBases) -> RowBatch:
        bases = decided.bases
        states = {name: np.full(len(bases), self._initial(name), values.dtype)
                  for name, values in self._states.items()} or self._no_states(len(bases))
        at = bases - self._first
        known = (at >= 0) & (at < (len(self._states["any"]) if self._states else 0))
        for name, values in self._states.items():
            states[name][known] = values[at[known]]
        if len(bases) and self._states and int(at[-1]) >= 0:
            gone = int(at[-1]) + 1
            self._first, self._states = self._first + gone, {n: v[gone:] for n, v in self._states.items()}
        return RowBatch(*state_values(self._query, decided, self._folding, states, self._gather))

    def _no_states(self, n: int) -> dict[str, Array]:
        names = ["any", *(f"slot{part}_{slot}" for part, one in enumerate(self._folding.parts)
                          for slot in range(len(one.slots)))]
        names += [f"added{part}" for part in range(len(self._folding.parts))]
        return {name: np.full(n, self._initial(name), np.int64 if name.startswith("slot") else np.bool_)
                for name in names}


class WholeStateOperator(StateOperator):
    """A `StateOperator` for circuits whose states hold all partners, and leave when their base tuples expire.

    Such circuits give no items. A base tuple's row needs its state, so arrivals count as settled up to the one that
    decides the first base tuple whose state has not come. A circuit does not know which event times only heartbeats
    have reached: `expire` tells it those that decide base tuples.
    """

    _folded_sides: ClassVar[tuple[int, ...]] = (0, 1)

    def __init__(self, query: Query, folding: FoldChoice, retained: Retained, gather: Gather):
        super().__init__(query, folding, retained, gather)
        self._end = 0  # the base tuple of the next state

    @property
    def settled(self) -> tuple[int, int]:
        """The row ids (R's, S's) before which all tuples are settled."""
        return self.before_decision(self._end)

    def follow(self, session: NumberedSession, end: int | None = None) -> None:
        super().follow(session, end)
        session.settled_to(self.settled)

    def expire(self, session: NumberedSession, passed: Mapping[Side, int | None]) -> bool:
        times = [time for time in passed.values() if time is not None]
        if len(times) < len(passed) or self.decided_by(min(times)) <= self._end:
            return False
        session.advance(min(times))
        return True

    def note(self, states: FoldedStates) -> None:
        """Note ``states``; those that were noted before, of another session, are passed over."""
        again = min(max(self._end - states.first, 0), len(states))
        new = _without(states, again)
        if len(new):
            assert new.first == self._end, "states come in the order of their base tuples"
            self._end += len(new)
            super().note(new)

    def _taken(self, items: Items, settled: tuple[int, int]) -> Items:
        settled = self.settled
        return super()._taken(self.stars(settled), settled)

    def _finished(self, items: Items) -> Items:
        return super()._finished(self.stars(self.settled))

    def state(self) -> dict[str, Ints]:
        """The state of an `AggregateOperator`, with all pairs of undecided base tuples that settled probes found."""
        pairs, (done_r, done_s) = self._folded_pairs(), self.done
        pairs = pairs[(pairs["r"] >= self.needed[0]) & (pairs["r"] < done_r) & (pairs["s"] < done_s)]
        return {"pairs_r": pairs["r"], "pairs_s": pairs["s"], **self.base_state()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        """Take over the ``state`` of another operator of the same query; this one must be fresh. All states of
        undecided base tuples must come again.
        """
        # Base tuples that a heartbeat has decided have no state either: `advance` follows once these have come.
        kept = {name: values for name, values in state.items() if not name.startswith("pairs_")}
        super().restore({**kept, "frontier": np.empty(0, np.int64)})
        self._end = self.needed[0]

    def renew(self, items: Items, session: NumberedSession) -> None:
        self._states, self._end = {}, self.needed[0]
        self._forget_pairs()
        self.note(session.states())


def state_operator(query: Query, folding: FoldChoice, retained: Retained, gather: Gather) -> StateOperator:
    """The operator for the states that a circuit folds by ``folding``."""
    return (WholeStateOperator if folding.whole else StateOperator)(query, folding, retained, gather)


def _without(states: FoldedStates, n: int) -> FoldedStates:
    """``states`` without the first ``n``."""
    return replace(states, first=states.first + n, fields={name: values[n:] for name, values in states.fields.items()})


def state_values(query: Query, decided: DecidedBases, folding: FoldChoice, states: Mapping[str, Array],
                 gather: Gather) -> tuple[Items, list[pa.ChunkedArray]]:
    """The rows of ``query`` and the values of its aggregates, of all base tuples that are ``decided``, as of a left
    join. ``states``: by field, those of the base tuples; partners of ``decided`` are added to them.
    """
    if query.kind.is_inner:  # base tuples without partners are no rows
        kept = states["any"] | (decided.lengths > 0)
        rows = np.flatnonzero(decided.items["kind"] == PAIR)
        states = {name: values[kept] for name, values in states.items()}
        decided = DecidedBases(np.delete(decided.items, rows[~kept]), decided.bases[kept], decided.lengths[kept],
                               decided.partners)
    needed = list(dict.fromkeys(c for a in query.aggregates for e in a.args for c in columns(e)))
    pairs = PairTerms(vectors(gather, "s", needed, decided.partners), decided)
    made = []
    for aggregate, parts in zip(query.aggregates, folding.outputs, strict=True):
        values = [_value(term, n, pairs, decided, folding, states)
                  for term, n in zip(aggregate.terms, parts, strict=True)]
        made.append(chunked(finished(aggregate, values, decided.bases)))
    return decided.items, made


def _value(term: Term, n: int, pairs: PairTerms, decided: DecidedBases, folding: FoldChoice,
           states: Mapping[str, Array]) -> Vector:
    """The values of ``term``, which part ``n`` of the circuit folds, with the partners of ``decided``."""
    slots = [states[f"slot{n}_{slot}"] for slot in range(len(folding.parts[n].slots))]
    added = states.get(f"added{n}", states["any"])
    if isinstance(term, FoldTerm):
        return fold_user(term, [pairs.vector(e) for e in term.args], decided, (slots, added))
    return _merged(term, slots[0], added, pairs.fold(term))


def _merged(term: Term, state: Array, added: Mask, later: Vector) -> Vector:
    """The values of ``term`` for base tuples with these states, valid where partners were ``added``, and these values
    of ``later`` partners.
    """
    valid, denominator = added | later.valid, later.denominator
    if term.kind not in ("least", "greatest"):
        more = later.values
        wide = _wide(state) or _wide(more)
        return Vector(state.astype(object) + more.astype(object) if wide else state + more, valid, denominator)
    pick = np.minimum if term.kind == "least" else np.maximum
    found = np.where(added, state, 0).astype(later.values.dtype)
    both = np.where(added, pick(found, later.values), later.values)
    return Vector(np.where(later.valid, both, found), valid, denominator)


def _wide(values: Array) -> bool:
    """True unless sums of ``values`` and of other int64 numbers surely fit int64."""
    if values.dtype == object:
        return True
    if not len(values):
        return False
    return bool(max(abs(int(values.min())), abs(int(values.max()))) >= 2**62)
