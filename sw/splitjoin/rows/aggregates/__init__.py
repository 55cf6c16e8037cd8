"""Aggregates over the join: one row a base tuple, folded from the partners that it is in a pair with (semantics,
section 8; the online interval join of Scale-OIJ).
"""

from .decided_bases import DecidedBases
from .fold import (
    FoldedRows,
    Gather,
    aggregate_fields,
    aggregate_types,
    folded_values,
    may_have_values_without_partners,
    without_partners,
)
from .identical import identical_rows
from .nearest_operator import NearestOperator
from .operator import AggregateOperator, Groups
from .reference import reference_aggregates

__all__ = ["AggregateOperator", "DecidedBases", "FoldedRows", "Gather", "Groups", "NearestOperator",
           "aggregate_fields", "aggregate_types", "folded_values", "identical_rows", "may_have_values_without_partners",
           "reference_aggregates", "without_partners"]
