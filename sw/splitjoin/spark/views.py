"""The DataFrames of a join: `frames`, of which users may give the names of tables and views, and columns of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin.base.errors import InputError
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.rows.output import OutputColumn

from .classic_columns import sequence
from .workers import is_remote

#: Nodes of Spark's plans whose rows it estimates, or has at most as many as those below. Of files it knows the bytes,
#: and a compressed one may have a thousand rows in each.
_ESTIMATED = {"Project", "Filter", "Sort", "Aggregate", "LocalLimit", "GlobalLimit", "Repartition",
              "RepartitionByExpression", "Range", "LocalRelation"}
#: Rows of a side in a task, and pairs that it compares in about a second, whatever the condition.
_FEW_ROWS, _FEW_PAIRS = 250_000, 5e8

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


def needed_columns(query: Query, side: Side, gathered: Sequence[OutputColumn], ties: Sequence[str] = ()) -> list[str]:
    """The columns of stream ``side`` that a join reads, for its result, time and ties too; at least one."""
    read = [query.predicate, *(e for aggregate in query.aggregates for e in aggregate.args)]
    needed = {*ties, *(c.name for e in read for c in columns(e) if c.side == side),
              *(c.source for c in gathered if c.side == side)}
    if query.time is not None:
        needed.add(query.time.name(side))
    names = query.schema(side).names
    return [name for name in names if name in needed] or names[:1]


def number_of_rows(data: DataFrame) -> int:
    """The number of rows, by a Spark job."""
    return data.select(F.lit(1)).count()  # `count` refuses a DataFrame that has a TIME column


def has_few_rows(data: Mapping[Side, DataFrame]) -> bool:
    """True if Spark's statistics say, without a job, that so few pairs of rows may be that one task compares them soon.

    False where it has none, as through Spark Connect, or where they may be far too low.
    """
    pairs = 1.0
    for frame in data.values():
        rows, is_upper = estimated_rows(frame)
        if not is_upper or rows > _FEW_ROWS:
            return False
        pairs *= rows
    return pairs <= _FEW_PAIRS


def estimated_rows(frame: DataFrame) -> tuple[float, bool]:
    """About how many rows Spark's statistics say that there are, without a job, and False if there may be far more.

    Zero through Spark Connect, and far more than there can be where Spark knows no size.
    """
    if is_remote(frame.sparkSession):
        return 0.0, False
    plan = frame._jdf.queryExecution().optimizedPlan()
    nodes = [plan]
    for node in nodes:
        nodes += sequence(node.children())
    row = 8 + sum(column.dataType().defaultSize() for column in sequence(plan.output()))  # as Spark estimates it
    return plan.stats().sizeInBytes() / row, all(node.nodeName() in _ESTIMATED for node in nodes)


def numbered(data: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns ``names`` of ``data`` as ``c0``, ``c1``, …: ``mapInArrow`` takes none with a dot or a backquote."""
    return data.select([data[quoted(name)].alias(f"c{n}") for n, name in enumerate(names)])


def quoted(name: str) -> str:
    """The column ``name``, quoted for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
