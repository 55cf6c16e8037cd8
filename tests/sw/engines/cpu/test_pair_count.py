"""The number of pairs of whole tables, counted without making them, beside a join of the golden model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin import join, query
from splitjoin.engines.arrival import arrivals, timed_arrivals
from splitjoin.engines.cpu.pair_count import counted_pairs
from splitjoin.engines.cpu.table_work import plain_work
from tests.support.sampling import examples

N = 60
#: Conditions whose pairs are counted, also within windows.
COUNTED = ["r.a < s.b", "r.a = s.b", "r.a <> s.b", "NOT r.a = s.b", "TRUE", "s.d > 3", "r.a = s.b AND r.c <> s.d",
           "r.a + r.c > s.b + s.d", "r.f < s.g", "abs(r.a - s.b) <= 2", "r.a = s.b OR r.c = s.d OR r.f < s.g",
           "r.t = s.u AND r.a <= s.b", "r.t <> s.u", "r.a IS NOT DISTINCT FROM s.b",
           "r.a = s.b OR r.a = s.d OR r.c = s.b OR r.c = s.d"]
#: Of these, two keys limit the partners, so that there is no room for windows, too.
TWO_KEYS = ["r.a < s.b AND r.c > s.d", "r.a BETWEEN s.b AND s.d", "abs(r.a - s.b) <= 2 AND abs(r.c - s.d) < 3",
            "r.a < s.b OR r.c < s.d", "r.a <> s.b AND r.t = s.u AND r.f < s.g"]


def table(seed: int, names: str) -> pa.Table:
    chance = np.random.default_rng(seed)

    def column(values: Any) -> pa.Array:
        return pa.array(values, mask=chance.random(N) < 0.1)

    floats = np.where(chance.random(N) < 0.2, np.nan, chance.integers(0, 9, N) / 2)
    return pa.table({names[0]: column(chance.integers(0, 9, N)), names[1]: column(chance.integers(0, 5, N)),
                     names[2]: column(floats), names[3]: column(chance.choice(["x", "y", "zz"], N)),
                     "ts": np.sort(chance.integers(0, 90, N))})


def counted(on: str, seed: int, room: int = 0, **window: Any) -> tuple[int | None, int]:
    """The number of pairs, as counted, and as joined."""
    r, s = table(seed, "acft"), table(seed + 1, "bdgu")
    q = query(r.schema, s.schema, on=on, **{"window": f"ROWS {N}", **window})
    times = [t.column("ts").to_numpy() for t in (r, s)]
    incoming = timed_arrivals(r, s, *times) if "time" in window else arrivals(q, r, s)
    return counted_pairs(q, incoming, room, plain_work()), len(join(r, s, on=on, device="golden", **window))


@pytest.mark.parametrize("on", [*COUNTED, *TWO_KEYS])
def test_all_pairs(on: str) -> None:
    found, joined = counted(on, 7)
    assert found == joined


@pytest.mark.parametrize("on", COUNTED)
@pytest.mark.parametrize("window", [{"window": "ROWS 20"}, {"window": "RANGE 15", "time": "ts"}], ids=["rows", "range"])
def test_within_windows(on: str, window: dict[str, Any]) -> None:
    found, joined = counted(on, 3, **window)
    assert joined < counted(on, 3)[1]
    assert found == joined


@settings(max_examples=examples(20))
@given(st.sampled_from([*COUNTED, *TWO_KEYS]), st.integers(0, 10**6))
def test_random_tables(on: str, seed: int) -> None:
    found, joined = counted(on, seed)
    assert found == joined


@pytest.mark.parametrize("on", ["r.a * s.b % 3 = 1", "r.a < s.b AND r.c < s.d AND r.f < s.g",
                                "r.a = s.b OR r.a = s.d OR r.c = s.b OR r.c = s.d OR r.f = s.g"])
def test_what_cannot_be_counted(on: str) -> None:
    assert counted(on, 1)[0] is None


def test_few_pairs_are_not_counted() -> None:
    assert counted("r.a < s.b", 1, N * N)[0] is None
    assert counted("r.a < s.b", 1, N * N - 1)[0] is not None
