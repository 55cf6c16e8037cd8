"""`with_null_values`: NULL in place of the values that stand for it in a DataFrame."""

from __future__ import annotations

import datetime as dt
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import DataType

from splitjoin.base.errors import InputError
from splitjoin.tables.stated import NullValues, Stated, null_array

from .streaming.plan import WATERMARK_DELAY
from .versions import arrow_type
from .views import quoted


def with_null_values(frame: DataFrame, null_values: NullValues) -> DataFrame:
    """``frame``, batch or streaming, with NULL in place of values of its columns, such as ``{"ts": 2**63 - 1}``, or of
    each of a list of them: for `stream_join`, `stream_sql` and Spark's own SQL.

    A value must be one of the column's type; a text is read as one, and a whole number counts the microseconds of a
    timestamp. NaN stands for itself. Raises `SchemaError` for another value and for a column that ``frame`` lacks, and
    `InputError` for one with a watermark, which belongs behind this.
    """
    stated = Stated(None, null_values, ())
    nulls, schema = stated.of("").nulls, pa.schema([(f.name, arrow_type(f.dataType)) for f in frame.schema])
    stated.of("").schema(schema)
    stated.check()
    made = dict[str, Column]()
    for field, given in zip(schema, frame.schema, strict=True):
        if field.name not in nulls:
            continue
        if WATERMARK_DELAY in given.metadata:
            raise InputError(f"values that stand for NULL must be told before withWatermark, but {field.name!r} has a "
                             f"watermark; call with_null_values first")
        column = F.col(quoted(field.name))
        same = [column == _literal(value, given.dataType)
                for value in null_array(field.name, nulls[field.name], field.type).to_pylist()]
        made[field.name] = F.when(reduce(or_, same, F.lit(False)), None).otherwise(column)
    return frame.withColumns(made) if made else frame


def _literal(value: Any, type_: DataType) -> Column:
    """``value`` as Spark's; times by their texts, which no time zone of the session changes."""
    if isinstance(value, dt.datetime):
        value = value.isoformat(" ")
    elif isinstance(value, dt.date):
        value = value.isoformat()
    return F.lit(value).cast(type_)
