"""Aggregates of a time partition where the device folds: one record a base tuple leaves it, and no pairs are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.circuit.driver import CircuitDevice
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, Device
from splitjoin.lang.kind import Kind
from splitjoin.lang.layouts import take
from splitjoin.lang.query import Query
from splitjoin.rows.aggregates import AggregateOperator, Gather, joined_bases
from splitjoin.rows.aggregates.device_states import state_values
from splitjoin.rows.aggregates.state_operator import FoldedBases
from splitjoin.rows.interval_joins.operators import interval_engine, states_leave
from splitjoin.rows.kinds import KindOperator, rows_between

if TYPE_CHECKING:
    from splitjoin.rows.interval_joins.choice import IntervalChoice

__all__ = ["FoldedPartition", "fold_between", "gatherer"]


@dataclass(frozen=True)
class FoldedPartition:
    """The rows of base tuples that the times of a partition decide, the device's counters, and its latencies in cycles
    for each arrival, if it measures them.
    """

    rows: FoldedBases
    counters: Mapping[str, int]
    latencies: npt.NDArray[np.int64] | None = None


def fold_between(query: Query, device: Device, arrivals: Arrivals, warm: int, start: int | None,
                 end: int | None) -> FoldedPartition | None:
    """The rows of ``query`` that times from ``start`` to before ``end`` decide, folded on ``device``: by circuits or
    by an engine of the CPU. None if the pairs must be folded: the device gives only these, or a state has left its
    width, and the pairs tell where.

    ``arrivals`` and ``warm``: as for `splitjoin.rows.kinds.decide_between`. Base tuples that another partition decides
    are not finished, since their partners are not all here.
    """
    between = arrivals, np.empty(0, ITEM), warm, start, end
    if (choice := interval_engine(query, device)) is not None:
        bases = np.concatenate(rows_between(KindOperator(query, bases=True), *between))["r"]
        return _by_engine(query, choice, arrivals, bases)
    circuit = states_leave(query, device)
    if circuit is None:
        return None
    with cast(CircuitDevice, device).start(circuit) as session:
        session.push(arrivals)
        items = session.flush()  # none where states leave whole
        states, counters, latencies = session.states().fields, session.counters(), session.latencies()
    decided = joined_bases(rows_between(AggregateOperator(replace(query, kind=Kind("left"))), arrivals, items, warm,
                                        start, end))
    states = {name: values[decided.bases] for name, values in states.items()}
    if any(values.any() for name, values in states.items() if name.startswith("over")):
        return None
    folding = session.folding
    assert folding is not None
    return FoldedPartition(FoldedBases(*state_values(query, decided, folding, states, gatherer(arrivals))), counters,
                           latencies)


def gatherer(arrivals: Arrivals) -> Gather:
    """Gets columns of ``arrivals`` by row id."""
    return lambda side, names, rows: [take(arrivals.table(side).column(name), pa.array(rows)) for name in names]


def _by_engine(query: Query, choice: IntervalChoice, arrivals: Arrivals,
               bases: npt.NDArray[np.int64]) -> FoldedPartition:
    """The rows of ``bases``, which follow each other, by an engine of the CPU."""
    from splitjoin.rows.interval_joins.operator import (
        folded_rows_of,  # here, as numba takes a third of a second to import
    )

    folder = choice.folder()
    try:
        folder.arrive(arrivals)
        folder.pass_over(int(bases[0]) if len(bases) else 0)
        found = folded_rows_of(query, choice, folder, folder.fold(len(bases)), bases, gatherer(arrivals))
    finally:
        folder.close()
    return FoldedPartition(FoldedBases(found.items, found.values), found.counters)
