"""Effectiveness: results per comparison, by each engine's own counters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.engines.effectiveness import effectiveness

#: 40 tuples of each stream, all within the windows: 1,600 pairs; of each x there are two tuples a stream.
N = 40
R = pa.table({"ts": range(N), "x": [i % 20 for i in range(N)]})
S = pa.table({"ts": range(N), "a": [i % 20 for i in range(N)]})
EQUAL: dict[str, Any] = {"on": "r.x = s.a", "window": "ROWS 64", "time": "ts"}


def test_loops_compare_every_pair_and_keys_only_matches() -> None:
    assert splitjoin.join(R, S, **EQUAL, device="golden").effectiveness == 80 / 1600
    sorted_keys = splitjoin.join(R, S, **EQUAL)
    assert (len(sorted_keys), sorted_keys.effectiveness) == (80, 1)
    assert "; 1 results per comparison" in repr(sorted_keys)


def test_esj_s_example() -> None:
    """Its load sizes are 500 and 400, and 100 results: ϱ = 0.0005 where all pairs are compared."""
    r, s = pa.table({"x": range(500)}), pa.table({"a": range(400, 800)})
    for device, expected in (("golden", 0.0005), ("cpu", 1)):
        found = splitjoin.join(r, s, on="r.x = s.a", window="ROWS 500", device=device)
        assert (len(found), found.effectiveness) == (100, expected)


def test_circuits_count_what_their_regions_compared() -> None:
    scan = splitjoin.join(R, S, **EQUAL, device="pysim", cores=1, capacity=64, core="scan")
    assert scan.effectiveness == 80 / 1600
    hashed = splitjoin.join(R, S, **EQUAL, device="pysim", cores=1, capacity=64, core="hash")
    assert scan.effectiveness < hashed.effectiveness == 80 / hashed.counters["comparisons"]


def test_sessions_count_since_their_device_session_began() -> None:
    with splitjoin.open(splitjoin.query(R.schema, S.schema, on="r.x = s.a", window="ROWS 9"), "golden") as session:
        assert session.effectiveness is None
        session.push_r(R.slice(0, 4))
        session.push_s(S.slice(2, 2))
        assert session.effectiveness == 2 / 8


@pytest.mark.parametrize("counters", [{}, {"comparisons": 0, "matches": 0}, {"comparisons": 4}])
def test_nothing_counted_is_no_share(counters: dict[str, int]) -> None:
    assert effectiveness(counters) is None
