"""`load`: the function that Spark's Python workers call for a join that the rule in ``java/`` replaced.

The rule writes the function's arguments as JSON, and a pickle that calls `load` with them; so no Python need run the
driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import Device
from splitjoin.engines.registry import host
from splitjoin.engines.tuning import Tuning
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.windows import Extent
from splitjoin.rows.whole import WholeRows

from .condition import Ranges, expression, fits
from .nested_loop import SideKeys, matched_pairs
from .reused import Reused

Numbers = npt.NDArray[np.int64]
#: Result rows in a batch that is handed back to Spark.
_ROWS = 10_000
#: The pairs that a task has in memory at once, about; and the most of a join that it finds in one step.
_PAIRS, _AT_ONCE = 1 << 20, 1 << 22
#: Plain SQL has many conditions that run once. So an expression is compiled when NumPy has taken long for it.
_DEVICE = host(tuning=Tuning(interpreted_pairs=1 << 25))
#: The first columns of what a task gets: the number of the task that joins the row, and its side, 0 for the left.
_TASK, _SIDE, _FIRST = 0, 1, 2


def load(spec: str) -> tuple[Any, Any]:
    """The function for ``mapInArrow`` and the type of its rows, as PySpark's worker wants them."""
    from pyspark.sql.types import StructType

    read = json.loads(spec)
    return Reused(ExtensionTask(read)), StructType.fromJson(read["type"])


class ExtensionTask:
    """Joins the rows of both sides that a task gets.

    Args:
        spec: ``kind``; ``on``, the condition; ``left`` and ``right``, the slot of each column of a side in the rows;
            ``left_keys`` and ``right_keys``, which of the columns are the condition's keys, and ``left_errors`` and
            ``right_errors``, the text of each key that may raise an error; ``output``, the source of each column of
            the result.
        device: Finds the pairs, where the condition is exact for the rows.
    """

    def __init__(self, spec: dict[str, Any], device: Device = _DEVICE):
        self._spec, self._device = spec, device

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts: dict[int, tuple[list[pa.RecordBatch], list[pa.RecordBatch]]] = {}
        schema = None
        for batch in batches:
            schema = batch.schema
            task, side = (batch.column(n).to_numpy(zero_copy_only=False) for n in (_TASK, _SIDE))
            for number in np.unique(task).tolist():
                for which in (0, 1):
                    mine = (task == number) & (side == which)
                    if mine.any():
                        chosen = batch if mine.all() else batch.filter(pa.array(mine))
                        parts.setdefault(number, ([], []))[which].append(self._side(chosen, which))
        while parts:
            _, (left, right) = parts.popitem()
            assert schema is not None
            yield from self._join(self._table(left, schema, 0), self._table(right, schema, 1))

    def _side(self, batch: pa.RecordBatch, side: int) -> pa.RecordBatch:
        slots = self._spec["right" if side else "left"]
        return pa.RecordBatch.from_arrays([batch.column(_FIRST + slot) for slot in slots] or [batch.column(_SIDE)],
                                          names=[f"c{n}" for n in range(max(1, len(slots)))])

    def _table(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema, side: int) -> pa.Table:
        return pa.Table.from_batches(list(batches) or [self._side(_no_rows(schema), side)]).combine_chunks()

    def _join(self, left: pa.Table, right: pa.Table) -> Iterator[pa.RecordBatch]:
        for r, s in self._rows(self._keys(left, "left"), self._keys(right, "right")):
            for start in range(0, len(r), _ROWS):
                yield self._batch(left, right, r[start:start + _ROWS], s[start:start + _ROWS])

    def _keys(self, rows: pa.Table, side: str) -> SideKeys:
        columns, raises = list[pa.ChunkedArray](), list[Any]()
        for n, text in zip(self._spec[f"{side}_keys"], self._spec[f"{side}_errors"], strict=True):
            column = rows.column(n)
            if text:  # a struct, which is NULL where Spark would raise an error
                bad = pc.is_null(column).to_numpy()
                column = pc.struct_field(column, 0)
                raises.append(bad if bad.any() else None)
            else:
                raises.append(None)
            columns.append(column)
        names = [f"k{n}" for n in range(len(columns))]
        table = pa.table(columns, names=names) if columns else pa.table({"k0": pa.nulls(len(rows), pa.int8())})
        return SideKeys(table, raises, self._spec[f"{side}_errors"])

    def _rows(self, r: SideKeys, s: SideKeys) -> Iterator[tuple[Numbers, Numbers]]:
        """The rows of left and right of each result row; −1 for NULL. For "existence", −1 or 0 at each row of left."""
        kind = self._spec["kind"]
        if any(raised is not None for raised in (*r.raises, *s.raises)) or not fits(self._spec["on"], _ranges(r, s)):
            pairs = matched_pairs(self._spec["on"], r, s, until_first=kind in ("semi", "anti", "existence"))
            yield from _of_kind(kind, pairs, r.columns.num_rows, s.columns.num_rows)
            return
        query = _query(json.dumps(self._spec["on"]), kind, r.columns.schema, s.columns.schema)
        query = replace(query, window_r=Extent(max(1, len(r.columns)), None),
                        window_s=Extent(max(1, len(s.columns)), None))
        found = WholeRows(query, self._device, arrivals(query, r.columns, s.columns), room=_AT_ONCE)
        if kind == "existence":
            matched = np.full(len(r.columns), -1)
            for part in found.tables(_PAIRS):
                matched[part.r] = 0
            yield np.arange(len(matched)), matched
        else:
            yield from ((part.r, part.s) for part in found.tables(_PAIRS))

    def _batch(self, left: pa.Table, right: pa.Table, r: Numbers, s: Numbers) -> pa.RecordBatch:
        at = {"l": pa.array(r, mask=r < 0), "r": pa.array(s, mask=s < 0)}
        columns = list[pa.Array]()
        for side, n in self._spec["output"]:
            if side == "matched":
                columns.append(pa.array(s >= 0))
            else:
                taken = (left if side == "l" else right).column(n).take(at[side])
                columns.append(taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken)
        return pa.RecordBatch.from_arrays(columns, names=[f"c{n}" for n in range(len(columns))])


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _ranges(r: SideKeys, s: SideKeys) -> Ranges:
    found: dict[tuple[str, int], tuple[int, int] | None] = {}
    for side, keys in (("l", r), ("r", s)):
        for n, column in enumerate(keys.columns.columns):
            kind = column.type
            if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
                whole = column.cast(pa.int32()) if pa.types.is_date32(kind) else column.cast(pa.int64())
                ends = pc.min_max(whole)
                found[side, n] = None if ends["min"].as_py() is None else (ends["min"].as_py(), ends["max"].as_py())
    return found


@lru_cache(maxsize=64)
def _query(on: str, kind: str, r: pa.Schema, s: pa.Schema) -> Query:
    left, right = Schema.from_arrow("r", r), Schema.from_arrow("s", s)
    return Query.make(left, right, on=expression(json.loads(on), left, right), window="ROWS 1", order="none",
                      how="semi" if kind == "existence" else kind)


def _of_kind(kind: str, pairs: Iterator[tuple[Numbers, Numbers]], left: int, right: int
             ) -> Iterator[tuple[Numbers, Numbers]]:
    """The rows of a kind of join, from its pairs."""
    met, met_s = np.zeros(left, bool), np.zeros(right, bool)
    for r, s in pairs:
        met[r] = True
        met_s[s] = True
        if kind in ("inner", "left", "right", "full"):
            yield r, s
    if kind == "existence":
        yield np.arange(left), np.where(met, 0, -1)
    elif kind in ("semi", "anti"):
        rows = np.flatnonzero(met if kind == "semi" else ~met)
        yield rows, np.full(len(rows), -1)
    if kind in ("left", "full"):
        rows = np.flatnonzero(~met)
        yield rows, np.full(len(rows), -1)
    if kind in ("right", "full"):
        rows = np.flatnonzero(~met_s)
        yield np.full(len(rows), -1), rows
