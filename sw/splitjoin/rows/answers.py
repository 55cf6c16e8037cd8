"""How a device answers a query: by pairs, by pairs that decide, by states of a circuit, or by rows without pairs.

This is the only place that chooses among these. Whoever runs a query feeds what it gets here, and places the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from splitjoin.circuit.is_circuit import is_circuit
from splitjoin.engines.cpu.compiler import has_numba, needs_numba
from splitjoin.engines.cpu.device import INTERVAL_ENGINES
from splitjoin.engines.device import Device
from splitjoin.lang.query import Query

from .aggregates import AggregateOperator, Gather, Groups, NearestOperator, states_circuit
from .aggregates.early import EarlyAggregateOperator
from .aggregates.state_operator import Retained, state_operator
from .kinds import KindOperator, UnorderedAsOfOperator, UnorderedKindOperator
from .operator import PairOperator, RowOperator

if TYPE_CHECKING:
    from splitjoin.circuit.query_circuit import QueryCircuit

    from .interval_joins.choice import IntervalChoice

__all__ = ["folding_operator", "interval_engine", "operator_of_pairs", "row_operator", "states_leave"]


def states_leave(query: Query, device: Device) -> QueryCircuit | None:
    """The circuit of ``device`` that folds the aggregates of ``query``; None if pairs leave. Raises `UnsupportedError`
    if it must fold and cannot.
    """
    found = states_circuit(device, query)
    return None if is_circuit(device) and device.masked else found


def interval_engine(query: Query, device: Device) -> IntervalChoice | None:
    """The engine of ``device`` that folds the aggregates of ``query`` without pairs, if there is one. Raises
    `UnsupportedError` where the device asks for an engine that cannot run the query, `ToolError` where it cannot run
    without numba.
    """
    if not query.aggregates or device.name != "cpu":
        return None
    if not has_numba():
        if getattr(device, "engine", "auto") in INTERVAL_ENGINES:
            raise needs_numba(f"engine={getattr(device, 'engine', '')!r}", "leave engine out")
        return None
    from .interval_joins.choice import interval_choice  # here, as numba takes a third of a second to import

    return interval_choice(query, device)


def row_operator(query: Query, device: Device, retained: Retained, gather: Gather, *,
                 stars: bool = False, in_order: bool = True, early: bool = False) -> RowOperator:
    """The operator for what ``device`` gives: states of circuits that fold, nothing where an engine of the CPU folds
    without pairs, else pairs. ``retained``: the rows that are kept. ``gather`` gets columns of them. ``stars``: True
    if stars are wanted beside rows without pairs.

    ``in_order``: False if tuples and their pairs come in any order; the windows are RANGE windows then. But where rows
    depend on the order of S, as those of as-of joins and aggregates do, the tuples of S come in theirs. ``early``: its
    rows have an operation then, "+" or "-", in `RowBatch.values`, and those that wait come early, and may be taken
    back; aggregates out of order need it.
    """
    if not in_order:
        return _unordered_operator(query, gather, early=early)
    return folding_operator(query, device, retained, gather, stars=stars) or operator_of_pairs(query, gather)


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
    if (circuit := states_leave(query, device)) is not None:
        assert circuit.folding is not None
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
