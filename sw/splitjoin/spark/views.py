"""`frames`: the DataFrames of a join, of which users may give the names of tables and views."""

from __future__ import annotations

from typing import Any, Union

from pyspark.sql import DataFrame, SparkSession

from splitjoin.base.errors import InputError

__all__ = ["Frame", "frames"]

#: A DataFrame, or the name of a table or a view in the active session, that of the other DataFrame if there is one.
Frame = Union[DataFrame, str]


def frames(left: Any, right: Any) -> tuple[Any, Any]:
    """``left`` and ``right`` with the tables and views that names stand for; anything else as it is.

    Raises `InputError` for a name where there is no session, and Spark's AnalysisException for one that it has not.
    """
    if not isinstance(left, str) and not isinstance(right, str):
        return left, right
    given = next((data for data in (left, right) if isinstance(data, DataFrame)), None)
    spark = SparkSession.getActiveSession() if given is None else given.sparkSession
    if spark is None:
        raise InputError(f"left is the name {left!r} and right is {right!r}, but there is no active Spark session in "
                         f"which to find them; give spark.table({left!r}) and so on")
    r, s = (spark.table(data) if isinstance(data, str) else data for data in (left, right))
    return r, s
