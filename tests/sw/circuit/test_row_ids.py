"""Whole row ids from narrow ones, against the golden model's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.row_ids import RowIds
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import ITEM
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

from ...support.conformance import slices
from ...support.sampling import examples


def stream(n: int, seed: int, order: str, window: int) -> tuple[Query, Arrivals]:
    chance = np.random.default_rng(seed)
    r, s = (pa.table({"ts": pa.array(np.sort(chance.integers(0, n, size)), pa.int64()),
                      name: pa.array(chance.integers(0, 4, size), pa.int8())})
            for name, size in (("x", n), ("y", int(chance.integers(0, 2 * n)))))
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.y", window=f"ROWS {window}",
                       time="ts", order=order)
    return query, arrivals(query, r, s)


@pytest.mark.parametrize("order", ["total", "outer(1)", "outer(15)", "inner(2)"])
@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**32 - 1))
def test_row_ids_of_four_bits(order: str, seed: int) -> None:
    """Windows of 15 tuples; whatever the pieces in which tuples are sent and items come."""
    chance = np.random.default_rng(seed)
    query, incoming = stream(80, seed, order, 15)
    cuts = np.sort(chance.integers(0, len(incoming), 4))
    ids = RowIds(4)
    sent, came = [], []
    waiting = np.empty(0, ITEM)
    with GoldenDevice().open(query) as session:
        for part in [*slices(incoming, [*cuts, len(incoming)]), None]:
            if part is not None:
                ids.push(part)
                session.push(part)
            items = session.poll() if part is not None else session.flush()
            sent.append(items)
            narrow = items.copy()
            for name in "rs":
                narrow[name][narrow[name] >= 0] &= 15
            waiting = np.concatenate([waiting, narrow])
            # A device may lag behind.
            n = len(waiting) if part is None else chance.integers(0, len(waiting) + 1)
            taken, waiting = waiting[:n].copy(), waiting[n:]
            ids.restore(taken)
            came.append(taken)
    assert np.array_equal(np.concatenate(came), np.concatenate(sent))
