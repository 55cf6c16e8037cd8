"""Joins of several streams by their definition (semantics, section 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import ge, gt, itemgetter, le, lt
from typing import Any

import pyarrow as pa

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


@dataclass(frozen=True)
class Joined:
    """How a stream is joined with the rows of those before: by a kind, and in an as-of join by a comparison ``op`` of
    the time of a row's latest tuple with that of the stream's. ``condition`` takes the tuples so far by stream, None
    for those that are missing, and the stream's.
    """

    kind: str
    condition: Callable[[Mapping[str, Tuple | None], Tuple], bool]
    op: str = ">="


#: A tuple with its time, the number of its stream, and its row.
_Placed = tuple[int, int, int]


def by_steps(tables: Mapping[str, pa.Table], joins: Sequence[Joined], lengths: Sequence[int],
             time: str) -> list[tuple[tuple[Any, ...], dict[str, Tuple | None]]]:
    """The rows of a chain of joins, each with its place: by the arrival of its latest tuple, then of the others."""
    names = list(tables)
    streams = [[((values[time], n, row), values) for row, values in enumerate(table.to_pylist())]
               for n, table in enumerate(tables.values())]
    rows: list[dict[str, tuple[_Placed, Tuple] | None]] = [{names[0]: one} for one in streams[0]]

    def latest(row: Mapping[str, tuple[_Placed, Tuple] | None]) -> _Placed:
        return max(one[0] for one in row.values() if one is not None)

    def meets(row: Mapping[str, tuple[_Placed, Tuple] | None], one: tuple[_Placed, Tuple], of: Joined) -> bool:
        last = max(latest(row), one[0])
        places = [other[0] for other in (*row.values(), one) if other is not None and other[0] != last]
        return all(last[0] - place[0] <= lengths[place[1]] for place in places) and of.condition(
            {name: None if other is None else other[1] for name, other in row.items()}, one[1])

    for name, stream, of in zip(names[1:], streams[1:], joins, strict=True):
        made = list[dict[str, tuple[_Placed, Tuple] | None]]()
        for row in rows:
            found = [one for one in stream if meets(row, one, of)]
            if of.kind.startswith("asof"):
                test = {">=": ge, ">": gt, "<=": le, "<": lt}[of.op]
                found = [one for one in found if test(latest(row)[0], one[0][0])]
                found = sorted(found, key=itemgetter(0), reverse=of.op in (">=", ">"))[:1]
            if of.kind in ("semi", "anti"):
                made += [row] * (bool(found) == (of.kind == "semi"))
            else:
                left = [None] if of.kind in ("left", "asof_left") and not found else []
                made += [{**row, name: one} for one in [*found, *left]]
        rows = made
    return sorted((((latest(row), *(-1 if one is None else one[0][2] for one in row.values())), {
        name: None if one is None else one[1] for name, one in row.items()}) for row in rows), key=itemgetter(0))
