"""The circuit of a query: the join that it computes, and the configuration that it is built from. Builds, Verilog,
emulators and devices all choose it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.query import Query

from .deciding_pairs import DecidingPairs, check_decides, deciding_pairs
from .folding import FoldChoice
from .lowering import configure, folding_of, plan_for, settings
from .parameters import CircuitParameters
from .plan import CircuitPlan
from .wire import Configuration


@dataclass(frozen=True)
class QueryCircuit:
    """The circuit of a query.

    Attributes:
        query: The inner join that it computes; for a semi, anti or as-of join, its windows and condition are narrowed
            to the pairs that decide.
        plan: The tests of its condition.
        config: Its configuration.
        folding: The values and parts of states that it folds; None if pairs leave.
        decides: How it gives the pairs that decide; None for aggregates, and where all pairs leave.
        refused: The reason why all pairs leave, although states or few pairs would suffice; empty otherwise.
    """

    query: Query
    plan: CircuitPlan
    config: Configuration
    folding: FoldChoice | None = None
    decides: DecidingPairs | None = None
    refused: str = ""

    @property
    def settings(self) -> dict[str, int]:
        """Register name → value. Raises what `splitjoin.circuit.lowering.settings` raises."""
        return settings(self.query, self.config, verified=self.plan.residual is not None)


def pairs_circuit(query: Query, parameters: CircuitParameters) -> QueryCircuit:
    """The circuit with ``parameters`` that gives all pairs of ``query``."""
    plan = plan_for(query.pairs, parameters)
    return QueryCircuit(query.pairs, plan, configure(query.pairs, plan, parameters))


def folding_circuit(query: Query, parameters: CircuitParameters, built: Sequence[Aggregate] = ()) -> QueryCircuit:
    """The circuit with ``parameters`` that folds the aggregates of ``query``; or, for a semi, anti or as-of join, the
    one that gives the pairs that decide.

    Where possible, it also folds the partners that come after their base tuples. ``built``: the aggregates that an
    existing circuit was built for; its states have parts for these, and `FoldChoice.outputs` says which of them those
    of ``query`` use. Raises `UnsupportedError`, with the reason, if all pairs must leave.
    """
    if not query.aggregates:
        found = deciding_pairs(query)
        plan = plan_for(found.query, parameters)
        check_decides(found, plan, parameters)
        config = configure(found.query, plan, parameters, found.folding, first_hits=found.first)
        return QueryCircuit(found.query, plan, config, found.folding, found)
    pairs = query.pairs
    asked, plan = pairs.aggregated(query.aggregates), plan_for(pairs, parameters)
    folding = folding_of(asked, plan, parameters, built)
    return QueryCircuit(pairs, plan, configure(pairs, plan, parameters, folding), folding)


def chosen_circuit(query: Query, parameters: CircuitParameters) -> QueryCircuit:
    """The circuit that the parameter ``fold`` chooses for ``query``, of any kind. Raises `UnsupportedError` if ``fold``
    is ``always`` and no circuit can fold the query.
    """
    if parameters.fold == "never" or not (query.aggregates or query.needs_few_pairs):
        return pairs_circuit(query, parameters)
    try:
        return folding_circuit(query, parameters)
    except UnsupportedError as error:
        if parameters.fold == "always":
            raise folding_demanded(query, error) from error
        return replace(pairs_circuit(query, parameters), refused=str(error))


def folding_demanded(query: Query, reason: UnsupportedError) -> UnsupportedError:
    """The error for ``query`` if the parameter ``fold`` is ``always``, and pairs must leave for ``reason``."""
    if query.aggregates:
        return UnsupportedError(f"fold='always' needs a circuit that folds the aggregates, but: {reason}; give "
                                f"fold='auto' for pairs that the host folds")
    return UnsupportedError(f"fold='always' needs a circuit that gives only the pairs that decide, but: {reason}; give "
                            f"fold='auto' for all pairs")
