"""Aggregates from states that a circuit folded: pairs with partners that came later are added, and values finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.device import PAIR, Items
from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query

from .decided_bases import DecidedBases
from .fold import Gather, chunked, finished, vectors
from .terms import PairTerms
from .user_fold import fold_user

if TYPE_CHECKING:
    from splitjoin.circuit.folding import FoldChoice

Array = npt.NDArray[Any]


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


def _merged(term: Term, state: Array, added: npt.NDArray[np.bool_], later: Vector) -> Vector:
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
