"""`load`: the functions of a streaming join that ``splitjoin.SplitJoinExtensions`` put in place of one of Spark's.

The rule (``splitjoin/catalyst/java``) writes the join as JSON; so no Python need run the driver. Its columns are
Spark's own, computed ones too, and its windows are as long as Spark's analysis of the condition says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from splitjoin.catalyst.condition import expression
from splitjoin.catalyst.reused import Reused
from splitjoin.engines.registry import device as find_device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.windows import Extent
from splitjoin.rows.output import OutputColumn

from ..versions import arrow_type
from .group import GroupJoin
from .micro_batch import MicroBatch
from .slots import Slots
from .spread import Spread
from .task import GroupTask
from .watermark import SparkWatermarks


def load(spec: str) -> tuple[Any, Any]:
    """The function for ``mapInArrow`` of one stage, and the type of its rows, as PySpark's worker wants them.

    ``spec``: JSON with ``stage``, "r" or "s" for what packs the rows of a side, "join" for what joins them; ``type``;
    ``batch``, the fields of `MicroBatch`; and ``join``: ``kind``, the kind of join; ``on``, the condition; ``left`` and
    ``right``, the types of the columns, and ``left_keys`` and ``right_keys``, which of them are the condition's keys;
    ``time``, the columns of event time; ``window``, the lengths of the windows, and ``kept``, how far below the
    watermark rows are stored, in µs; ``groups``; ``output``, the source of each column of the result; ``name`` of the
    state; ``retained`` micro-batches.
    """
    read = json.loads(spec)
    text = json.dumps(read["join"])
    stage, batch, given = read["stage"], MicroBatch.of(read["batch"]), StructType.fromJson(read["type"])
    if stage == "join":
        return Reused(_Joined(text, batch, arrow_type(given.fields[-1].dataType))), given
    return Reused(Spread(_join(text), stage, None, read["join"]["name"], batch)), given


class _Joined:
    """The groups' task, with those of its counts that Spark's operator shows."""

    def __init__(self, text: str, batch: MicroBatch, counts: pa.StructType):
        read, join = json.loads(text), _join(text)
        result = pa.schema([pa.field(f"c{n}", c.field.type) for n, c in enumerate(join.columns)])
        self._task = GroupTask(join, result, None, read["name"], read["retained"], None, None,
                               batch=batch)
        self._counts = counts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self._task(batches):
            *columns, counts = batch.columns
            shown = pa.StructArray.from_arrays([counts.field(f.name) for f in self._counts], fields=list(self._counts),
                                               mask=counts.is_null())
            yield pa.RecordBatch.from_arrays([*columns, shown], names=batch.schema.names)


@lru_cache(maxsize=16)
def _join(text: str) -> GroupJoin:
    """The join that the rule wrote as ``text``: one object for all tasks of a worker."""
    read = json.loads(text)
    columns = {side: _columns(read[name], read[f"{name}_keys"])
               for side, name in zip(SIDES, ("left", "right"), strict=True)}
    r, s = (Schema.from_arrow(side, columns[side]) for side in SIDES)
    times = [columns[side].names[n] for side, n in zip(SIDES, read["time"], strict=True)]
    query = Query.make(r, s, on=expression(read["on"], r, s), window="ROWS 1", time=times, order="none",
                       how=read["kind"])
    lengths = [Extent(None, length) for length in read["window"]]
    query = replace(query, window_r=lengths[0], window_s=lengths[1]).narrowed
    output = []
    for number, (name, n) in enumerate(read["output"]):
        side: Side = "r" if name == "l" else "s"
        field = columns[side].field(n)
        output.append(OutputColumn(f"c{number}", side, field.name, field))
    return GroupJoin(query, columns, output, None, SparkWatermarks(), dict.fromkeys(SIDES, ()), read["groups"], "cpu",
                     {"threads": 1}, Slots.make(query), find_device("cpu").settles, nulls_are_late=True,
                     as_spark=True, retention=dict(zip(SIDES, read["kept"], strict=True)))


def _columns(read: dict[str, Any], keys: list[int]) -> pa.Schema:
    """The columns of a side: ``k0``, ``k1``, … are the condition's keys."""
    names = {n: f"k{key}" for key, n in enumerate(keys)}
    return pa.schema([pa.field(names.get(n, f"c{n}"), arrow_type(field.dataType))
                      for n, field in enumerate(StructType.fromJson(read))])
