"""Joins of several streams by their definition (semantics, section 11): all combinations, one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import pyarrow as pa

__all__ = ["combinations"]

Tuple = dict[str, Any]


def combinations(tables: Mapping[str, pa.Table], condition: Callable[..., bool],
                 lengths: Sequence[int] | None = None, time: str | None = None) -> list[tuple[Tuple, ...]]:
    """The combinations of tuples, one of each table, in order. ``condition`` takes a tuple of each."""
    streams = [list(enumerate(table.to_pylist())) for table in tables.values()]

    def place(n: int, at: tuple[int, Tuple]) -> tuple[int, int, int]:
        row, values = at
        return (row, n, 0) if time is None else (values[time], n, row)

    found = []
    for chosen in product(*streams):
        if not condition(*(values for _, values in chosen)):
            continue
        places = [place(n, at) for n, at in enumerate(chosen)]
        latest = max(places)
        if lengths is None or all(latest[0] - p[0] <= length for p, length in zip(places, lengths, strict=True)
                                  if p != latest):
            found.append((latest, places, tuple(values for _, values in chosen)))
    found.sort(key=lambda row: row[:2])
    return [values for _, _, values in found]
