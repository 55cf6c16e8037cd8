"""SELECT-FROM-WHERE over two streams (ESJ, "Peripherals"): a statement becomes a join, with selection and projection
before it and after it.
"""

from .api import explain_sql, sql
from .computed_select import computed_columns, extended
from .database import connection
from .multiway_select import MultiwaySelect
from .one_table_terms import OneTableTerms, ask, refused_twice, row_of_nulls
from .ordering import refuse_ordering
from .parts import parse
from .projection import Projection
from .reader import read_condition
from .select import Select

__all__ = ["MultiwaySelect", "OneTableTerms", "Projection", "Select", "ask", "computed_columns", "connection",
           "explain_sql", "extended", "parse", "read_condition", "refuse_ordering", "refused_twice", "row_of_nulls",
           "sql"]
