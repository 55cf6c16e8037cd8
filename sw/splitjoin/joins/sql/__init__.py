"""SELECT-FROM-WHERE over two streams (ESJ, "Peripherals"): a statement becomes a join, with selection and projection
before it and after it.
"""

from .api import explain_sql, sql
from .database import ask, connection, refused_twice, with_tool
from .files import statement_files
from .multiway import MultiwaySelect
from .projection import Projection, refuse_ordering
from .reader import read_condition
from .select import Select
from .statement import condition_statement
from .terms import computed_terms, extended

__all__ = ["MultiwaySelect", "Projection", "Select", "ask", "computed_terms", "condition_statement", "connection",
           "explain_sql", "extended", "read_condition", "refuse_ordering", "refused_twice", "sql", "statement_files",
           "with_tool"]
