"""Joins of several streams under load; `tests/machine` has the rows of the tuples that are kept."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, Shedding

from .test_multiway import SCHEMA, made


def fed(capacity: int, threshold: int, step: int = 3) -> tuple[dict[str, pa.Table], dict[str, list[Any]], list[Any]]:
    """What is pushed, what of it is dropped, and the rows."""
    streams = {name: pa.table([[i // 3 for i in range(60)], [(i * k) % 3 for i in range(60)]], schema=SCHEMA)
               for k, name in ((1, "a"), (2, "b"), (4, "c"))}  # no two tuples of a stream are equal
    with splitjoin.open_multiway(made(3, [5, 4, 3]), "golden", when_full="shed",
                                 shedding=Shedding(capacity=capacity, threshold=threshold)) as session:
        for at in range(0, 60, step):
            for name, stream in streams.items():
                session.push(name, stream.slice(at, step))
        rows = session.flush().to_pylist()
        return streams, {name: session.shed(name).to_pylist() for name in streams}, rows


def test_drops_depend_on_the_calls_alone_and_no_row_between_steps_is_dropped() -> None:
    assert fed(12, 4) == fed(12, 4)
    _, dropped, rows = fed(200, 100)
    assert not any(dropped.values()) and len(rows) > 500, "more rows between steps than the windows of tuples"


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="when_full of a join of several streams must be 'raise' or 'shed'"):
        splitjoin.open_multiway(made(3, [1, 1, 1]), when_full="block")  # type: ignore[arg-type]  # refused
    with pytest.raises(InputError, match=r"shedding must be a splitjoin.Shedding, with when_full='shed'"):
        splitjoin.open_multiway(made(3, [1, 1, 1]), shedding=Shedding(capacity=3))
    with pytest.raises(InputError, match="needs a capacity"):
        splitjoin.open_multiway(made(3, [1, 1, 1]), when_full="shed")
