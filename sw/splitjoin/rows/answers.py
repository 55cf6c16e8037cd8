"""How a device answers a query: by pairs, by pairs that decide, by states of a circuit, or by rows without pairs.

This is the only place that chooses among these. Whoever runs a query, over streams or whole tables, feeds what it gets
here, and places the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.compiled.compiler import has_numba, needs_numba
from splitjoin.engines.device import (
    ITEM,
    PAIR,
    Device,
    Items,
    TableAnswer,
    TableFolds,
    TableMatches,
    TableNeighbours,
    TablePairs,
)
from splitjoin.engines.registry import host
from splitjoin.engines.slices import Slices
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query

from .aggregates import AggregateOperator, Gather, Groups, NearestOperator, folded_values, reference_aggregates
from .aggregates.early import EarlyAggregateOperator
from .aggregates.state_operator import Retained, state_operator
from .kinds import (
    KindOperator,
    OrderedRows,
    UnorderedAsOfOperator,
    UnorderedKindOperator,
    neighbour_rows,
    reference_neighbours,
    reference_rows,
    table_rows,
)
from .operator import PairOperator, RowBatch, RowOperator
from .table_rows import TableRows, matched_rows

if TYPE_CHECKING:
    from .interval_joins.choice import IntervalChoice

#: No bounds, of `rows_of_pairs`: the rows of all times.
EVERY = (0, None, None)


def interval_engine(query: Query, device: Device) -> IntervalChoice | None:
    """The engine of ``device`` that folds the aggregates of ``query`` without pairs, if there is one. Raises
    `UnsupportedError` where the device asks for an engine that cannot run the query, `ToolError` where it cannot run
    without numba.
    """
    asked = device.host_folds if query.aggregates and not query.prevailing else None
    if asked is None:
        return None
    if not has_numba():
        if asked.engine != "auto":
            raise needs_numba(f"engine={asked.engine!r}", "leave engine out")
        return None
    from .interval_joins.choice import interval_choice  # here, as numba takes a third of a second to import

    return interval_choice(query, asked)


def pairs_device(query: Query, device: Device) -> Device:
    """The device that gives the pairs of ``query`` in place of ``device``: the host where that is a circuit that folds,
    which gives no pairs.
    """
    return device.of_pairs if device.states_circuit(query) is None else host()


def rows_at_once(query: Query, device: Device, incoming: Arrivals, room: int, gather: Gather,
                 groups: Groups = None) -> tuple[TableRows, TableAnswer] | None:
    """The rows of ``query`` over ``incoming``, which are whole tables, where ``device`` finds at once what decides
    them, and that; None where a session must run. ``room``: as of `Device.join_tables`; ``gather``
    gets columns by row id. ``groups``: as of `identical_rows`.
    """
    # Engines that fold without pairs have what ranges do not tell, such as aggregates of the user's.
    if groups is None and not all(a.reads_ranges for a in query.aggregates) and interval_engine(query, device):
        return None
    found = device.join_tables(query, incoming, room, groups)
    match found:
        case TableFolds(bases=bases):
            return TableRows(bases, np.broadcast_to(np.int64(-1), len(bases)), folded_values(query, found, gather),
                             lambda: _base_items(bases)), found
        case TableMatches():
            return matched_rows(query, incoming, found), found
        case TablePairs():
            return TableRows.ordered(table_rows(query, incoming, found), query, incoming, found.work), found
        case TableNeighbours():
            return _nearest(query, incoming, neighbour_rows(query, incoming, found)), found
    return None


def nearest_of_pairs(query: Query, incoming: Arrivals, items: Items) -> TableRows:
    """The rows over ``incoming`` of an as-of join that chooses by distance, from ``items``, all pairs."""
    return _nearest(query, incoming, reference_neighbours(query, incoming, items))


def rows_of_pairs(query: Query, device: Device, incoming: Arrivals, items: Items, gather: Gather,
                  groups: Groups, between: tuple[int, int | None, int | None]) -> RowBatch:
    """The rows over ``incoming`` from ``items``, the pairs that ``device`` gave: those ``between`` two times, as of
    `KindOperator.between`. ``groups``: as of `operator_of_pairs`.
    """
    if device.is_reference and between == EVERY and not query.is_pairs:
        if query.aggregates:
            return RowBatch(*reference_aggregates(query, incoming, items, groups))
        return RowBatch(reference_rows(query, incoming, items))
    return operator_of_pairs(query, gather, groups).between(incoming, items, *between)


def _nearest(query: Query, incoming: Arrivals, rows: OrderedRows) -> TableRows:
    """``rows`` of nearest partners, which are by the tuples of R in any order."""
    return TableRows.ordered(rows, replace(query, order=Order("left")), incoming, Slices())


def _base_items(bases: Ints) -> Items:
    """A row for each of ``bases`` as items in total order, without stars."""
    items = np.zeros(len(bases), ITEM)
    items["kind"], items["r"], items["s"] = PAIR, bases, -1
    return items


def row_operator(query: Query, device: Device, retained: Retained, gather: Gather, *,
                 stars: bool = False, in_order: bool = True, early: bool = False, hides_pairs: bool = False
                 ) -> RowOperator:
    """The operator for what ``device`` gives: states of circuits that fold, nothing where an engine of the CPU folds
    without pairs, else pairs. ``retained``: the rows that are kept. ``gather`` gets columns of them. ``stars``: True
    if stars are wanted beside rows without pairs.

    ``in_order``: False if tuples and their pairs come in any order; the windows are RANGE windows then. But where rows
    depend on the order of S, as those of as-of joins and aggregates do, the tuples of S come in theirs. ``early``: its
    rows have an operation then, "+" or "-", in `RowBatch.values`, and those that wait come early, and may be taken
    back; aggregates out of order need it. ``hides_pairs``: True if tuples may lack pairs that were hidden, which
    whoever folds without pairs would find again.
    """
    if not in_order:
        return _unordered_operator(query, gather, early=early)
    folding = None if hides_pairs else folding_operator(query, device, retained, gather, stars=stars)
    return folding or operator_of_pairs(query, gather)


def _unordered_operator(query: Query, gather: Gather, *, early: bool) -> RowOperator:
    if query.aggregates:
        return EarlyAggregateOperator(query, gather)
    if query.kind.is_asof:
        return UnorderedAsOfOperator(query, early=early)
    return PairOperator(query) if query.is_pairs else UnorderedKindOperator(query, early=early)


def folding_operator(query: Query, device: Device, retained: Retained, gather: Gather, *,
                     stars: bool = False) -> RowOperator | None:
    """As `row_operator`, where ``device`` folds the aggregates of ``query``; None where pairs come."""
    if not query.aggregates:
        return None
    if (circuit := device.states_circuit(query)) is not None:
        return state_operator(query, circuit.folding, retained, gather)
    if (choice := interval_engine(query, device)) is not None:
        from .interval_joins.session import IntervalOperator

        return IntervalOperator(query, choice, gather, stars)
    return None


def operator_of_pairs(query: Query, gather: Gather, groups: Groups = None) -> PairOperator | KindOperator:
    """The operator for pairs. ``groups``: as of `identical_rows`; then it must get all pairs at once."""
    if query.aggregates:
        return AggregateOperator(query, gather, groups)
    if query.chooses_by_distance:
        return NearestOperator(query)
    return PairOperator(query) if query.is_pairs else KindOperator(query)
