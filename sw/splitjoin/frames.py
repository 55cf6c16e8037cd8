"""Joins as methods of DataFrames: ``import splitjoin.frames`` gives those of pandas and Polars ``frame.splitjoin``."""

import importlib
from contextlib import suppress
from typing import Any

from .base.errors import InputError
from .joins.join import join

__all__ = ["FrameJoin"]


class FrameJoin:
    """``frame.splitjoin``, of a DataFrame of pandas, or a DataFrame or LazyFrame of Polars."""

    def __init__(self, frame: Any):
        self._frame = frame

    def join(self, other: Any, *, on: Any, order: Any = None, **options: Any) -> Any:
        """Join the rows of this frame, ``r`` in the condition ``on``, with those of ``other``, ``s``.

        ``options``: those of `splitjoin.join`. By default the rows are in the order of this frame (``"left"``).

        Returns a frame of the same kind. Raises what `splitjoin.join` raises, and `InputError` for ``to``.
        """
        if options.get("to") is not None:
            raise InputError("to= writes the rows to a file, and a frame holds them in memory; call splitjoin.join")
        found = join(self._frame, other, on=on, order="left" if order is None else order, **options)
        if type(self._frame).__module__.partition(".")[0] == "pandas":
            return found.to_pandas()
        return found.to_polars().lazy() if type(self._frame).__name__ == "LazyFrame" else found.to_polars()


with suppress(ModuleNotFoundError):
    importlib.import_module("pandas").api.extensions.register_dataframe_accessor("splitjoin")(FrameJoin)
with suppress(ModuleNotFoundError):
    _api = importlib.import_module("polars").api
    _api.register_dataframe_namespace("splitjoin")(FrameJoin)
    _api.register_lazyframe_namespace("splitjoin")(FrameJoin)
