"""Aggregates from states that a circuit folded: pairs with partners that came later are added, and values finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.is_circuit import is_circuit
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, Device, Items, stars
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import Col, columns
from splitjoin.lang.kind import Kind
from splitjoin.lang.query import Query

from ..result_values import to_arrow
from .fold import Gather, aggregate_types, exact_sums, finished_sums
from .operator import Decided, decide_bases
from .user_fold import fold_user

if TYPE_CHECKING:  # most processes have no circuit, and the driver takes a fifth of a second to import
    from splitjoin.circuit.driver import CircuitSession
    from splitjoin.circuit.folding import FoldChoice
    from splitjoin.circuit.query_circuit import QueryCircuit

__all__ = ["StateOverflow", "folded_rows", "state_values", "states_circuit"]

Array = npt.NDArray[Any]


class StateOverflow(Exception):
    """A state left its width in the circuit: the pairs tell whether it does so in order, and where."""


def states_circuit(device: Device, query: Query) -> QueryCircuit | None:
    """The circuit of ``device`` that folds the aggregates of ``query``, for `CircuitDevice.start`; None if pairs leave.

    Raises `UnsupportedError` if its parameter ``fold`` demands that, and it cannot.
    """
    if not query.aggregates or not is_circuit(device) or device.fold == "never":
        return None
    try:
        return device.circuit(query)
    except UnsupportedError as error:
        if device.fold == "always":
            from splitjoin.circuit.query_circuit import folding_demanded

            raise folding_demanded(query, error) from error
        return None


def folded_rows(query: Query, arrivals: Arrivals, items: Items, session: CircuitSession,
                gather: Gather) -> tuple[Items, list[pa.ChunkedArray]]:
    """The rows of ``query`` and the values of its aggregates, from all ``items`` and states of a ``session`` that
    folds. Raises `StateOverflow`.
    """
    folding, states = session.folding, session.states().fields
    assert folding is not None
    if folding.whole:
        items = stars(arrivals.stream)
    if any(values.any() for name, values in states.items() if name.startswith("over")):
        raise StateOverflow
    decided = decide_bases(replace(query, kind=Kind("left")), arrivals, items)
    return state_values(query, decided, folding, states, gather)


def state_values(query: Query, decided: Decided, folding: FoldChoice, states: Mapping[str, Array],
                 gather: Gather) -> tuple[Items, list[pa.ChunkedArray]]:
    """The rows of ``query`` and the values of its aggregates, of all base tuples that are ``decided``, as of a left
    join. ``states``: by field, those of the base tuples; partners of ``decided`` are added to them.
    """
    if query.kind.is_inner:  # base tuples without partners are no rows
        kept = states["any"] | (decided.lengths > 0)
        rows = np.flatnonzero(decided.items["kind"] == PAIR)
        states = {name: values[kept] for name, values in states.items()}
        decided = Decided(np.delete(decided.items, rows[~kept]), decided.bases[kept], decided.lengths[kept],
                          decided.partners)
    values = _partner_values(query, decided, gather)
    made = []
    for aggregate, parts in zip(query.aggregates, folding.outputs, strict=True):
        with np.errstate(all="ignore"):
            args = [evaluate_columns(e, values, len(decided.partners)) for e in aggregate.args]
        found = _value(aggregate, args, decided, folding, parts, states)
        made.append(found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found]))
    return decided.items, made


def _partner_values(query: Query, decided: Decided, gather: Gather) -> dict[Col, Vector]:
    """The columns of the partners that came after their base tuples."""
    needed = list(dict.fromkeys(c for a in query.aggregates for e in a.args for c in columns(e)))
    found = gather("s", [c.name for c in needed], decided.partners)
    return {c: column(a if isinstance(a, pa.ChunkedArray) else pa.chunked_array([a]))
            for c, a in zip(needed, found, strict=True)}


def _value(aggregate: Aggregate, args: list[Vector], decided: Decided, folding: FoldChoice, parts: tuple[int, ...],
           states: Mapping[str, Array]) -> pa.Array | pa.ChunkedArray:
    number = parts[0]
    slots = [states[f"slot{number}_{n}"] for n in range(len(folding.parts[number].slots))]
    added = states.get(f"added{number}", states["any"])
    if aggregate.fold is not None:
        return fold_user(aggregate, args, decided, (slots, added))
    lengths, bases = decided.lengths, decided.bases
    valid = args[0].valid if args else np.ones(len(decided.partners), np.bool_)
    group = np.repeat(np.arange(len(lengths)), lengths)[valid]
    later = np.bincount(group, minlength=len(lengths))
    if aggregate.function == "count":
        return pa.array(slots[0] + later)
    values, denominator = args[0].values[valid], args[0].denominator
    if aggregate.function in ("sum", "avg"):
        more = exact_sums(values, later)
        sums = slots[0].astype(object) + more.astype(object) if _wide(slots[0]) or _wide(more) else slots[0] + more
        counts = later + (states[f"slot{parts[1]}_0"] if aggregate.function == "avg" else added)
        return finished_sums(aggregate, sums, denominator, counts, bases)
    pick = np.minimum if aggregate.function == "min" else np.maximum
    found = np.where(added, slots[0], 0).astype(values.dtype)
    some = later > 0
    if some.any():
        extremes = found.copy()
        extremes[some] = pick.reduceat(values, (np.cumsum(later) - later)[some])
        found = np.where(some & added, pick(found, extremes), np.where(some, extremes, found))
    return to_arrow(Vector(found, added | some, denominator), aggregate_types(aggregate), aggregate.text)


def _wide(values: Array) -> bool:
    """True unless sums of ``values`` and of other int64 numbers surely fit int64."""
    if values.dtype == object:
        return True
    if not len(values):
        return False
    return bool(max(abs(int(values.min())), abs(int(values.max()))) >= 2**62)
