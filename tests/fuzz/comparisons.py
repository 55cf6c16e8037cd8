"""The families of random joins that must have golden's answer, and planted ones whose answers differ."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import splitjoin

from .joins import Case, check_same, of_tables
from .streams import of_streams


@dataclass(frozen=True)
class Comparison:
    """A family of random cases. ``run`` makes one of them, and raises `Difference` if two answers to it differ."""

    name: str
    run: Callable[[random.Random], None]


def _differs(_: random.Random) -> None:
    """A planted difference: a row of the answer is missing."""
    case = Case(pa.table({"x": [1, 2]}), pa.table({"a": [1, 2]}), "r.x = s.a", None, "ROWS 3", "inner")
    answer = splitjoin.join(case.r, case.s, on=case.on, window=case.window, device="golden").table
    check_same(case, "an engine with a fault", answer.slice(1), answer)


COMPARISONS = (Comparison("tables", of_tables), Comparison("streams", of_streams))
#: A comparison whose answers differ, so that tests see that this is found.
DIFFER = (Comparison("differs", _differs),)
