"""Matches, selectivity, arrival and windows of a query, measured on a sample of both streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError, SchemaError, first_line
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import PAIR
from splitjoin.engines.registry import host
from splitjoin.lang.ir import And
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.plan.plan import leading_tests

from ..lowering import plan_with_bounds
from .workload import BURST

#: Tuples whose results are in memory at the same time.
_SLICE = 4096
#: Mean numbers of tuples of one stream in a row between those of `splitjoin.circuit.tuner.workload.ARRIVALS`, the
#: geometric means of 1 and 2 and of 2 and `BURST`.
_RANDOM_FROM, _BURSTS_FROM = 2**0.5, (2 * BURST) ** 0.5


@dataclass(frozen=True)
class SampleFigures:
    """The figures of a query on a sample.

    Attributes:
        tuples: Tuples of the sample, both streams together.
        pairs: Results.
        shares: Of the pairs that a probe of R and one of S can see in the windows of the sample, the share that are
            results.
        selectivity: Of all visible pairs, the share that meet the tests that an index can go by; None if there is no
            such test.
        held: Most tuples in the window of R and of S.
        arrival: The order of arrival that is nearest to the sample's.
    """

    tuples: int
    pairs: int
    shares: tuple[float, float]
    selectivity: float | None
    held: tuple[int, int]
    arrival: str

    def matches(self, r: int, s: int) -> float:
        """Results of a probe, on average, with windows of ``r`` and ``s`` tuples and as many probes of either stream.

        The windows of the sample may be shorter, as they are at its beginning: what counts is the share of results.
        """
        return (self.shares[0] * s + self.shares[1] * r) / 2

    def __str__(self) -> str:
        share = sum(self.shares) / 2
        return (f"{self.tuples:,} tuples, {self.pairs:,} results: one in {1 / share:,.0f} pairs of a window"
                if share else f"{self.tuples:,} tuples, no results")


def measure_sample(query: Query, sample: Sequence[Any]) -> SampleFigures:
    """Run ``query`` on the CPU over ``sample``, a table of R and one of S: `pyarrow.Table`, anything that offers Arrow,
    or a dict of columns.

    The tuples should be consecutive ones of a typical time, at least as many as the windows hold. Raises `SchemaError`
    for tables that lack a column of the query or have one of another type, `InputError` for a sample in which no probe
    sees a tuple.
    """
    if not (isinstance(sample, Sequence) and not isinstance(sample, (str, bytes)) and len(sample) == 2):
        raise InputError(f"sample must be two tables, one of R and one of S, not {sample!r}")
    r, s = (_table(data, query.schema(side)) for side, data in zip(SIDES, sample, strict=True))
    whole = arrivals(query, r, s)
    visible = [_visible(query, whole, side) for side in SIDES]
    seen = [int(counts.sum()) for counts in visible]
    if 0 in seen:
        raise InputError(f"a sample must have tuples of both streams that see each other in their windows, but of "
                         f"{len(r):,} tuples of R and {len(s):,} of S none does; give consecutive tuples of both "
                         f"streams from the same time")
    found = _pairs(query, whole)
    tests = _searchable(query)
    meet = found if tests is query else None if tests is None else _pairs(tests, whole)
    held = (int(visible[1].max()), int(visible[0].max()))
    return SampleFigures(len(whole), sum(found), (found[0] / seen[0], found[1] / seen[1]),
                         None if meet is None else sum(meet) / sum(seen), held, _arrival(whole.stream))


def _table(data: Any, schema: Schema) -> pa.Table:
    """``data`` with the columns of ``schema``, as types that lose nothing."""
    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"the sample of {schema.side.upper()} must be a table, such as a pyarrow.Table, not "
                         f"{type(data).__name__}: {first_line(error)}") from None
    for name in schema.names:
        if name not in table.column_names:
            raise SchemaError(f"the sample of {schema.side.upper()} must have the columns {', '.join(schema.names)}, "
                              f"but lacks {name}")
    table = table.select(schema.names)
    if schema.arrow is not None:
        wanted = pa.schema([pa.field(field.name, field.type) for field in schema.arrow])
        try:
            table = table.cast(wanted)
        except (pa.ArrowException, ValueError) as error:
            raise SchemaError(f"the sample of {schema.side.upper()} must have columns of the query's types: "
                              f"{first_line(error)}") from None
    return table


def _visible(query: Query, whole: Arrivals, side: Side) -> npt.NDArray[np.int64]:
    """Per probe of stream ``side``, the tuples of the other stream in their window."""
    mine, other = whole.stream == SIDES.index(side), whole.stream != SIDES.index(side)
    extent = query.window("s" if side == "r" else "r")
    before: npt.NDArray[np.int64] = np.cumsum(other)[mine].astype(np.int64)
    gone = np.zeros_like(before)
    if extent.rows is not None:
        gone = np.maximum(gone, before - extent.rows)
    if extent.length is not None:
        assert whole.ts is not None
        gone = np.maximum(gone, np.searchsorted(whole.ts[other], whole.ts[mine] - extent.length))
    return before - np.minimum(gone, before)


def _searchable(query: Query) -> Query | None:
    """``query`` with those tests alone that an index can go by; None if it has none."""
    condition = query.predicate
    parts = condition.args if isinstance(condition, And) else (condition,)
    plans = [plan_with_bounds(part) for part in parts]
    kept = [part for part, plan in zip(parts, plans, strict=True) if leading_tests(plan) and plan.residual is None]
    if not kept:
        return None
    if len(kept) == len(parts):
        return query
    return replace(query, predicate=kept[0] if len(kept) == 1 else And(condition.type, tuple(kept)))


def _pairs(query: Query, whole: Arrivals) -> tuple[int, int]:
    count = np.zeros(2, np.int64)
    with host().open(replace(query.pairs, order=Order("none"))) as session:
        rest: Arrivals | None = whole
        while rest is not None:
            part, rest = rest.split(_SLICE)
            session.push(part)
            count += _by_side(session.poll())
        count += _by_side(session.flush())
    return int(count[0]), int(count[1])


def _by_side(items: Any) -> npt.NDArray[np.int64]:
    return np.bincount(items["side"][items["kind"] == PAIR], minlength=2)[:2].astype(np.int64)


def _arrival(stream: npt.NDArray[np.uint8]) -> str:
    """The nearest of `arrival.ARRIVALS`, by the mean number of tuples of one stream in a row."""
    changes = np.flatnonzero(np.diff(stream)) + 1
    lengths = [b - a for a, b in pairwise([0, *changes.tolist(), len(stream)])]
    mean = sum(lengths) / len(lengths)
    return "alternating" if mean < _RANDOM_FROM else "random" if mean < _BURSTS_FROM else "bursts"
