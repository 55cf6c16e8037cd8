"""The operator that decides and folds the base tuples of a query with aggregates, beside a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from splitjoin.circuit.is_circuit import is_circuit
from splitjoin.engines.cpu.compiler import has_numba, needs_numba
from splitjoin.engines.cpu.device import INTERVAL_ENGINES
from splitjoin.engines.device import Device
from splitjoin.lang.query import Query

from ..aggregates import AggregateOperator, Gather, states_circuit
from ..aggregates.state_operator import Retained, StateOperator, state_operator

if TYPE_CHECKING:
    from splitjoin.circuit.query_circuit import QueryCircuit

    from .choice import IntervalChoice
    from .session import IntervalOperator

__all__ = ["BaseOperator", "aggregate_operator", "interval_engine", "states_leave"]

BaseOperator = Union[AggregateOperator, "IntervalOperator", StateOperator]


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
    from .choice import interval_choice  # here, as numba takes a third of a second to import

    return interval_choice(query, device)


def aggregate_operator(query: Query, device: Device, retained: Retained, gather: Gather) -> BaseOperator:
    """The operator for what ``device`` gives: states of circuits that fold, nothing where an engine of the CPU folds
    without pairs, else pairs. ``retained``: the rows that are kept. ``gather`` gets columns of them.
    """
    if (circuit := states_leave(query, device)) is not None:
        assert circuit.folding is not None
        return state_operator(query, circuit.folding, retained, gather)
    if (choice := interval_engine(query, device)) is not None:
        from .session import IntervalOperator

        return IntervalOperator(query, choice, gather)
    return AggregateOperator(query)
