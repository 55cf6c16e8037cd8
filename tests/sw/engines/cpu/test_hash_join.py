"""Hash joins on one whole key: the places for keys, and the rows where only one table has its keys close together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin.engines.cpu.hash_join import _places
from splitjoin.joins.join import join

_EVERY = 50
NEAR, FAR = np.arange(7, 107), np.arange(100) * _EVERY


@pytest.mark.parametrize(("of_r", "of_s", "places"), [
    (FAR, NEAR, (7, 100)), (NEAR, FAR, (7, 100)), (NEAR, NEAR - 9000, (-8993, 100)),
    (NEAR[:9], FAR, None),  # nearly all of S would wait in no group
    (FAR, FAR, None), (NEAR - 9000, FAR, None), (NEAR[:0], FAR, None), (NEAR, FAR[:0], (2**63 - 1, 1)),
    (np.array([-2**63, 2**63 - 1]), np.array([-2**63, 2**63 - 1]), None)])
def test_keys_have_places_where_both_may_have_them(of_r: Any, of_s: Any, places: Any) -> None:
    assert _places(of_r, of_s) == places


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("swapped", [False, True])
def test_rows_where_one_table_has_keys_far_apart(how: Any, swapped: bool) -> None:
    keys = (FAR, NEAR) if swapped else (NEAR, FAR)
    r, s = (pa.table({"k": of, "n": range(len(of))}) for of in keys)
    found, golden = (join(r, s, on="r.k = s.k", how=how, device=device) for device in ("cpu", "golden"))
    assert found.table.equals(golden.table)
    assert "hash" in found.plan
    sums = join(r, s, on="r.k = s.k", aggregate={"sum": "sum(s.n)"}, order="left").table
    both = np.isin(keys[0], keys[1])
    assert sums.column("k").to_pylist() == keys[0][both].tolist()
    assert sums.column("sum").to_pylist() == np.flatnonzero(np.isin(keys[1], keys[0])).tolist()


@pytest.mark.parametrize("how", ["inner", "anti"])
def test_two_keys_as_one_where_those_of_one_table_lie_beyond_the_others(how: Any) -> None:
    """The keys of S are in narrow ranges, so both are one; R has others, and NULL, which are in none of these."""
    r = pa.table({"x": [*range(-2, 9), 1, None], "y": [*range(8, -3, -1), None, 1]})
    r = pa.concat_tables([r, r.append_column("z", r["y"]).drop(["y"]).rename_columns(["x", "y"]).slice(3)])
    s = pa.table({"a": [n // 4 for n in range(16)], "b": [n % 4 for n in range(16)]})
    found, golden = (join(r, s, on="r.x = s.a AND r.y = s.b", how=how, device=device) for device in ("cpu", "golden"))
    assert found.table.equals(golden.table)
    assert "hash" in found.plan
