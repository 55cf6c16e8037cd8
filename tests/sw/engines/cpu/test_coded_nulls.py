"""Equalities that NULL and NULL meet: the answers are golden's, in the ways of plain equalities."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin import join

FLOATS = [0.0, -0.0, float("nan"), float("-inf"), float("inf"), 1.5]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "small": (pa.int32(), [-1, 0, 3]), "greatest": (pa.int64(), [2**63 - 1, 5, 7]),
    "both ends": (pa.int64(), [2**63 - 1, -2**63 + 1, 0]), "unsigned": (pa.uint64(), [2**64 - 1, 0, 4]),
    "floats": (pa.float64(), FLOATS), "short floats": (pa.float32(), FLOATS), "texts": (pa.string(), ["", "a", "b"]),
    "times": (pa.timestamp("ns"), [-1, 0, 2**62]), "decimals": (pa.decimal128(9, 2), [1, 2, 3]),
    "truth": (pa.bool_(), [True, False]),
}
SAFE = "r.k IS NOT DISTINCT FROM s.k"


def table(seed: int, type_: pa.DataType, values: list[Any], rows: int = 24) -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = [None if n == len(values) else values[n] for n in rng.integers(0, len(values) + 1, rows)]
    return pa.table({"ts": np.sort(rng.integers(0, 60, rows)), "x": rng.integers(0, 4, rows),
                     "k": pa.array(keys, type_), "splitjoin nulls 0": rng.integers(0, 2, rows)})


@pytest.mark.parametrize(("name", "how"), list(zip(VALUES, cycle(["inner", "left", "anti", "asof"]))))
def test_answers(name: str, how: str) -> None:
    r, s = (table(seed, *VALUES[name]) for seed in (1, 2))
    for on in (SAFE, f"{SAFE} AND r.x <= s.x", f"r.x = s.x OR {SAFE}", "s.k = r.k OR (s.k IS NULL AND r.k IS NULL)",
               f"NOT ({SAFE})"):
        for tables in ((r, s), (r, s.filter(s["k"].is_valid()))):
            found, golden = (join(*tables, on=on, how=how, time="ts", device=device) for device in ("cpu", "golden"))
            assert str(found.to_pylist()) == str(golden.to_pylist()), (on, how)  # NaN is not equal to itself


@pytest.mark.parametrize("name", ["small", "floats", "times", "decimals"])
@pytest.mark.parametrize("how", ["inner", "semi"])
def test_they_are_found_as_plain_equalities_are(name: str, how: str) -> None:
    r, s = (table(seed, *VALUES[name], rows=400) for seed in (1, 2))
    plain, safe = (join(r, s, on=f"{on} AND r.x = s.x AND r.ts = s.ts", how=how) for on in ("r.k = s.k", SAFE))
    assert safe.plan == plain.plan
    assert "hash" in str(safe.plan)


def test_only_nulls() -> None:
    r = pa.table({"k": pa.array([None, None], pa.int64())})
    assert len(join(r, r, on=SAFE)) == 4
