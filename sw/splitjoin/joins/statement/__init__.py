"""SELECT-FROM-WHERE over two streams (ESJ, "Peripherals"): a statement becomes a join, with selection and projection
before it and after it.
"""

from .api import sql
from .ordering import refuse_ordering
from .projection import Projection
from .select import Select

__all__ = ["Projection", "Select", "refuse_ordering", "sql"]
