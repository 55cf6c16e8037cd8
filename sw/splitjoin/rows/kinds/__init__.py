"""Kinds of join, decided from the pairs of the inner join (semantics, section 7).

The pairs in total order and the sequence of arrivals determine the rows of every kind. So an engine need not know the
kind: `KindOperator` consumes what any device gives, and `reference_rows` says the same a tuple at a time. Where the
sequence does not matter, `UnorderedKindOperator` needs no order.
"""

from .decisions import OrderedRows, Places, Segments
from .neighbours import neighbour_rows, reference_neighbours
from .operator import KindOperator
from .own_side import OwnSide
from .reference import reference_rows
from .unordered import UnorderedAsOfOperator, UnorderedKindOperator, operations, rows_of
from .whole import table_rows

__all__ = ["KindOperator", "OrderedRows", "OwnSide", "Places", "Segments", "UnorderedAsOfOperator",
           "UnorderedKindOperator", "neighbour_rows", "operations", "reference_neighbours", "reference_rows",
           "rows_of", "table_rows"]
