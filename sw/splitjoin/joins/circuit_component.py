"""A query's circuit as a component of one's own Amaranth design, and the description that goes with every circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from splitjoin.base.errors import InputError, ToolError
from splitjoin.circuit.export.states import described_states
from splitjoin.circuit.parameters import circuit_parameters
from splitjoin.circuit.query_circuit import QueryCircuit, chosen_circuit
from splitjoin.lang.ir import text
from splitjoin.lang.query import Query

from .explain import explain

if TYPE_CHECKING:  # host software needs no HDL
    from splitjoin_hw.component import JoinComponent


def component(query: Query, **parameters: Any) -> JoinComponent:
    """The circuit of ``query`` as a component for an Amaranth design: an ``Elaboratable`` with ports and a description.

    Args:
        query: The query, as `splitjoin.query` makes it, of any kind and with or without aggregates. It needs a window
            for each stream.
        parameters: Parameters of the circuit by name, such as ``cores=4``: those of the devices ``sim`` and ``pysim``.

    Its ports are the streams ``i`` of input records and ``o`` of result items, and the register bus ``addr``,
    ``w_stb``, ``w_data`` and ``r_data``; all are in clock domain ``sync``. `JoinComponent` describes them. The property
    ``description`` has what the JSON file beside the Verilog has: records, registers, and the settings to write before
    the first record. ``layouts`` has the records as layouts of `amaranth.lib.data`.

    Raises `ToolError` if Amaranth is not installed, `InputError` for what is no query, and as `splitjoin verilog` for
    queries that no circuit runs and parameters that no circuit has.
    """
    if not isinstance(query, Query):
        raise InputError(f"component takes a query, as splitjoin.query(r, s, on=…, window=…) makes it, not {query!r}")
    try:
        from splitjoin_hw.component import JoinComponent
        from splitjoin_hw.verilog import sidecar
    except ModuleNotFoundError as error:
        raise ToolError(f"a component needs the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[hw]'") from error
    given = circuit_parameters(parameters)
    given.check_used("a component")
    circuit = chosen_circuit(query, given)
    described = sidecar(circuit.config) | query_description(query, circuit, parameters, text(query.predicate))
    return JoinComponent(circuit.config, described)


def query_description(query: Query, circuit: QueryCircuit, parameters: dict[str, Any], on: str) -> dict[str, Any]:
    """The part of a circuit's description that follows from its query: settings, states, condition, explanation.

    ``on``: the condition as the user wrote it. ``parameters``: those of the circuit, for the explanation.
    """
    residual = circuit.plan.residual
    return {"settings": circuit.settings, **described_states(query, circuit),
            "query": {"on": on, "how": query.kind.how, "aggregates": {a.name: a.text for a in query.aggregates},
                      "verified": None if residual is None else str(residual),
                      "explain": explain(query, **parameters).splitlines()}}
