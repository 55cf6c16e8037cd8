"""Values of aggregates, as Arrow arrays, from what an engine folded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.device import ITEM
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import columns
from splitjoin.lang.properties import denominator
from splitjoin.lang.types import is_exact

from ..aggregates import Decided, aggregate_types
from ..aggregates.fold import Gather, finished_sums
from ..aggregates.user_fold import user_states
from ..aggregates.user_values import results
from ..result_values import to_arrow
from .form import IntervalForm
from .state import FoldedBases

__all__ = ["aggregate_values"]

Ints = npt.NDArray[np.int64]


def aggregate_values(form: IntervalForm, found: FoldedBases, bases: Ints, gather: Gather) -> list[pa.ChunkedArray]:
    """The values of each aggregate for base tuples with row ids ``bases``; ``gather`` gets columns of S by row id.

    Raises `InputError` for a sum that does not fit its type.
    """
    made = []
    for aggregate, number in zip(form.query.aggregates, form.of, strict=True):
        array = _values(form, aggregate, number, found, bases, gather)
        made.append(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))
    return made


def _values(form: IntervalForm, aggregate: Aggregate, number: int, found: FoldedBases, bases: Ints,
            gather: Gather) -> pa.Array | pa.ChunkedArray:
    if number < -1:
        return _user_values(aggregate, found, found.users[-2 - number], bases, gather)
    if number < 0:
        if not aggregate.args:
            return pa.array(found.counts)
        ends = found.ends[0 if aggregate.function == "first" else 1]
        return _partners(aggregate, np.where(found.counts > 0, ends, -1), gather)
    kind = form.primitives[number].kind
    valid, a, b = found.values[number]
    if kind == "count":
        return pa.array(valid)
    if kind == "distinct":
        return pa.array(a)
    if kind in ("least", "greatest"):
        return _partners(aggregate, np.where(valid > 0, a, -1), gather)
    if kind == "float sum":
        totals = a.view(np.float64)
        if aggregate.function == "avg":
            with np.errstate(all="ignore"):
                totals = totals / np.maximum(valid, 1)
        return pa.array(totals, pa.float64(), mask=valid == 0, from_pandas=False)
    high = b + (a >> 32)
    low = a & 0xFFFF_FFFF
    if not len(high) or (int(high.min()) >= -(2**31) and int(high.max()) < 2**31):
        sums: npt.NDArray[np.int64 | np.object_] = (high << 32) | low
    else:
        sums = high.astype(object) * 2**32 + low.astype(object)
    value = aggregate.args[0]
    return finished_sums(aggregate, sums, denominator(value) if is_exact(value.type) else 1, valid, bases)


def _user_values(aggregate: Aggregate, found: FoldedBases, out: Ints, bases: Ints,
                 gather: Gather) -> pa.Array | pa.ChunkedArray:
    """The values of a user-defined aggregate; those that ``out`` is not certain of are folded anew, which finds the
    partner for an error.
    """
    again = np.flatnonzero(out[1])
    if len(again):
        each = [found.partners[n] for n in again.tolist()]
        partners, lengths = np.concatenate(each), np.array([len(rows) for rows in each])
        needed = list(dict.fromkeys(c for e in aggregate.args for c in columns(e)))
        gathered = gather("s", [c.name for c in needed], partners)
        values = {c: column(a if isinstance(a, pa.ChunkedArray) else pa.chunked_array([a]))
                  for c, a in zip(needed, gathered, strict=True)}
        with np.errstate(all="ignore"):
            args = [evaluate_columns(e, values, len(partners)) for e in aggregate.args]
        states, counts = user_states(aggregate, args, Decided(np.empty(0, ITEM), bases[again], lengths, partners))
        out[0, again] = counts
        for number, state in enumerate(states):
            out[2 + number, again] = state
    return results(aggregate, list(out[2:]), out[0] > 0, bases)


def _partners(aggregate: Aggregate, rows: Ints, gather: Gather) -> pa.Array | pa.ChunkedArray:
    """The values of the first argument for the S tuples with these row ids; NULL for −1."""
    value, present = aggregate.args[0], rows >= 0
    chosen = rows[present]
    needed = columns(value)
    found = gather("s", [c.name for c in needed], chosen)
    with np.errstate(all="ignore"):
        v = evaluate_columns(value, {c: column(a if isinstance(a, pa.ChunkedArray) else pa.chunked_array([a]))
                                     for c, a in zip(needed, found, strict=True)}, len(chosen))
    values, valid = np.zeros(len(rows), v.values.dtype), np.zeros(len(rows), np.bool_)
    values[present], valid[present] = v.values, v.valid
    return to_arrow(Vector(values, valid, v.denominator), aggregate_types(aggregate), aggregate.text)
