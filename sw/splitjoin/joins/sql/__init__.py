"""SELECT-FROM-WHERE over two streams (ESJ, "Peripherals"): a statement becomes a join, with selection and projection
before it and after it.
"""

from .api import explain_sql, sql
from .database import ask, connection, refused_twice, row_of_nulls
from .multiway import MultiwaySelect
from .projection import Projection, refuse_ordering
from .reader import read_condition
from .select import Select
from .statement import parse
from .terms import OneTableTerms, computed_columns, extended
from .trees import condition_tree

__all__ = ["MultiwaySelect", "OneTableTerms", "Projection", "Select", "ask", "computed_columns", "condition_tree",
           "connection", "explain_sql", "extended", "parse", "read_condition", "refuse_ordering", "refused_twice",
           "row_of_nulls", "sql"]
