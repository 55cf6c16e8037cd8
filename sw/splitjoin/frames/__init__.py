"""Joins as methods of DataFrames: ``import splitjoin.frames`` gives those of pandas and Polars ``frame.splitjoin``."""

import importlib
from contextlib import suppress

from .of_pandas import PandasJoin
from .of_polars import PolarsJoin

__all__ = ["PandasJoin", "PolarsJoin"]

with suppress(ModuleNotFoundError):
    importlib.import_module("pandas").api.extensions.register_dataframe_accessor("splitjoin")(PandasJoin)
with suppress(ModuleNotFoundError):
    _api = importlib.import_module("polars").api
    _api.register_dataframe_namespace("splitjoin")(PolarsJoin)
    _api.register_lazyframe_namespace("splitjoin")(PolarsJoin)
