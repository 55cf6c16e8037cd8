"""Aggregates over the join: one row a base tuple, folded from the partners that it is in a pair with (semantics,
section 8; the online interval join of Scale-OIJ).
"""

from .device_states import StateOverflow, folded_rows, states_circuit
from .fold import (
    FoldedRows,
    Gather,
    aggregate_fields,
    aggregate_types,
    may_have_values_without_partners,
    without_partners,
)
from .identical import identical_rows, merged_bases
from .operator import AggregateOperator, Decided
from .reference import reference_aggregates
from .sorted_folds import SortedFolds, sorted_folds, suits_ranges

__all__ = ["AggregateOperator", "Decided", "FoldedRows", "Gather", "SortedFolds", "StateOverflow", "aggregate_fields",
           "aggregate_types", "folded_rows", "identical_rows", "may_have_values_without_partners", "merged_bases",
           "reference_aggregates", "sorted_folds", "states_circuit", "suits_ranges", "without_partners"]
