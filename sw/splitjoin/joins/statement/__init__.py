"""SELECT-FROM-WHERE over two streams (ESJ, "Peripherals"): a statement becomes a join, with selection and projection
before it and after it.
"""

from .api import explain_sql, sql
from .ordering import refuse_ordering
from .projection import Projection
from .select import Select

__all__ = ["Projection", "Select", "explain_sql", "refuse_ordering", "sql"]
