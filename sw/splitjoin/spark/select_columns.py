"""The result columns of a `Select` over two DataFrames."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from splitjoin.joins.sql import Select
from splitjoin.joins.sql.projection import ProjectedColumn
from splitjoin.lang.schema import Side

from .join import computed_field


def result_of(select: Select, frames: Mapping[Side, DataFrame]) -> StructType:
    """Spark's schema of the result: columns as in their DataFrame, or of the computed type."""
    return StructType([_field(o, {side: frame.schema for side, frame in frames.items()})
                       for o in select.projection.outputs])


def sources_of(select: Select) -> dict[str, tuple[Side, str]]:
    """For each result column that is an input column as it is: whose, and its name there."""
    found: dict[str, tuple[Side, str]] = {}
    for o in select.projection.outputs:
        if o.source is not None and "." in o.source:  # not an aggregate
            side, name = o.source.split(".", 1)
            found[o.field.name] = ("r" if side == "r" else "s"), name
    return found


def _field(output: ProjectedColumn, schemas: Mapping[Side, StructType]) -> StructField:
    if output.source is not None and "." in output.source:  # not an aggregate
        side, name = output.source.split(".", 1)
        field = schemas["r" if side == "r" else "s"][name]
        return StructField(output.field.name, field.dataType, field.nullable or output.field.nullable)
    return computed_field(output.field, output.text)
