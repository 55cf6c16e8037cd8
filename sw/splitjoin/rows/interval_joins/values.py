"""Values of aggregates, as Arrow arrays, from what an engine folded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.engines.device import ITEM
from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.eval.vector import Vector, evaluate_columns, joined_halves
from splitjoin.lang.ir import columns
from splitjoin.lang.properties import denominator
from splitjoin.lang.types import is_exact

from ..aggregates import DecidedBases
from ..aggregates.fold import Gather, chunked, finished, vectors
from ..aggregates.user_fold import user_states
from ..aggregates.user_values import results
from .form import IntervalForm
from .state import FoldedBases


def aggregate_values(form: IntervalForm, found: FoldedBases, bases: Ints, gather: Gather) -> list[pa.ChunkedArray]:
    """The values of each aggregate for base tuples with row ids ``bases``; ``gather`` gets columns of S by row id.

    Raises `InputError` for a sum that does not fit its type.
    """
    made = []
    for aggregate, numbers in zip(form.query.aggregates, form.of, strict=True):
        terms = [_term(term, number, form, found, bases, gather)
                 for term, number in zip(aggregate.terms, numbers, strict=True)]
        made.append(chunked(finished(aggregate, terms, bases)))
    return made


def _term(term: Term, number: int, form: IntervalForm, found: FoldedBases, bases: Ints, gather: Gather) -> Vector:
    """The values of ``term``, which primitive ``number`` of ``form`` folds; −1 for one that all engines have."""
    if isinstance(term, FoldTerm):
        return _user_values(term, found, found.users[number], bases, gather)
    everywhere = np.ones(len(found.counts), np.bool_)
    if term.kind == "rows":
        return Vector(found.counts, everywhere)
    if term.kind in ("first", "last"):
        ends = found.ends[0 if term.kind == "first" else 1]
        return _partners(term, np.where(found.counts > 0, ends, -1), gather)
    valid, a, b = found.values[number]
    if term.kind == "count":
        return Vector(valid, everywhere)
    if term.kind == "distinct":
        return Vector(a, everywhere)
    if term.kind in ("least", "greatest"):
        return _partners(term, np.where(valid > 0, a, -1), gather)
    if form.primitives[number].kind == "float sum":
        return Vector(a.view(np.float64), valid > 0)
    assert term.of is not None
    return Vector(joined_halves(a, b), valid > 0, denominator(term.of) if is_exact(term.of.type) else 1)


def _user_values(term: FoldTerm, found: FoldedBases, out: Ints, bases: Ints, gather: Gather) -> Vector:
    """The values of a user-defined aggregate; those that ``out`` is not certain of are folded anew, which finds the
    partner for an error.
    """
    again = np.flatnonzero(out[1])
    if len(again):
        each = [found.partners[n] for n in again.tolist()]
        partners, lengths = np.concatenate(each), np.array([len(rows) for rows in each])
        values = vectors(gather, "s", list(dict.fromkeys(c for e in term.args for c in columns(e))), partners)
        with np.errstate(all="ignore"):
            args = [evaluate_columns(e, values, len(partners)) for e in term.args]
        states, counts = user_states(term, args, DecidedBases(np.empty(0, ITEM), bases[again], lengths, partners))
        out[0, again] = counts
        for number, state in enumerate(states):
            out[2 + number, again] = state
    return results(term, list(out[2:]), out[0] > 0, bases)


def _partners(term: Term, rows: Ints, gather: Gather) -> Vector:
    """The values that ``term`` takes from the S tuples with these row ids; NULL for −1."""
    assert term.value is not None
    present = rows >= 0
    chosen = rows[present]
    with np.errstate(all="ignore"):
        v = evaluate_columns(term.value, vectors(gather, "s", columns(term.value), chosen), len(chosen))
    values, valid = np.zeros(len(rows), v.values.dtype), np.zeros(len(rows), np.bool_)
    values[present], valid[present] = v.values, v.valid
    return Vector(values, valid, v.denominator)
