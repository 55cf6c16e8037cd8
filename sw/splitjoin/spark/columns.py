"""PySpark `Column` → IR: a condition written with Spark's functions, read from the tree that Spark keeps of it.

A `Column` of a classic session is a tree of nodes in Spark's JVM (`org.apache.spark.sql.internal.ColumnNode`),
unresolved, with the place in the user's Python that made each: classic_columns.py reads it. Spark 3.5 has expressions
of Catalyst instead, which catalyst_columns.py reads. That of a Spark Connect session is a tree of Python objects, which
connect_columns.py reads. Every part means what the same SQL text means to splitjoin; columns are ``F.col("r.x")``,
``F.col("x")`` where one stream alone has it, or ``left["x"]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame

from splitjoin.lang import build
from splitjoin.lang.ir import Expr
from splitjoin.lang.schema import Schema, Side
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.sql.spark import SparkReader

from .classic_columns import ClassicReader, sequence
from .versions import VERSION


def read_condition(on: Any, r: Schema, s: Schema, frames: Mapping[Side, DataFrame]) -> Any:
    """The IR of a condition that is a `Column` or SQL text, which may call Spark's functions of times; others as they
    are. The arguments, and errors, are those of `condition`.
    """
    if isinstance(on, str):
        return parse_sql(on, r, s, reader=SparkReader)
    return condition(on, r, s, frames) if isinstance(on, Column) else on


def condition(column: Column, r: Schema, s: Schema, frames: Mapping[Side, DataFrame] | None = None) -> Expr:
    """The IR of the condition ``column`` over streams of the schemas ``r`` and ``s``.

    ``frames``: the DataFrames that are the streams, whose columns may be used as ``left["x"]``.

    Raises `PredicateError` and `SchemaError` with the part that is wrong and its place in the user's source.
    """
    own = vars(column)  # not getattr: any other name is a field of the column
    if "_expr" in own:
        from .connect_columns import connect_condition  # Spark Connect's packages need not be installed

        return connect_condition(column, r, s, frames or {})
    handle: Any = own.get("_jc")
    ids = _ids(frames or {})
    if VERSION < (4, 0):
        from .catalyst_columns import CatalystReader

        made = CatalystReader(r, s, ids).expr(handle.expr())
    else:
        made = ClassicReader(r, s, ids).expr(handle.node())
    return build.condition(made, str(column))


def _ids(frames: Mapping[Side, DataFrame]) -> dict[int, tuple[Side, str]]:
    """Spark's ids of the frames' columns, and whose they are."""
    found: dict[int, tuple[Side, str]] = {}
    for side, frame in frames.items():
        for a in sequence(frame._jdf.queryExecution().analyzed().output()):
            number = a.exprId().id()
            if found.get(number, (side,))[0] != side:
                found[number] = (side, "")  # ambiguous: both streams have it
            else:
                found[number] = side, a.name()
    return found
