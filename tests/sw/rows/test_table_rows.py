"""Rows over whole tables that are made part by part."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.engines.device import ITEM
from splitjoin.engines.slices import Slices
from splitjoin.rows.table_rows import ChosenRows


@pytest.mark.parametrize("size", range(1, 8))
def test_chosen_rows_have_late_ones_in_their_places_whatever_the_parts(size: int) -> None:
    """Before the first, between two, in front of one that is not chosen, and behind the last one."""
    chosen = np.array([1, 0, 1, 1, 0, 1], np.bool_)
    rows = ChosenRows(chosen, np.array([1, 4, 7, 8]), np.array([0, 3, 4, 6]), lambda: np.empty(0, ITEM), Slices())
    parts = [part.r.tolist() for part in rows.parts(size)]
    assert [row for part in parts for row in part] == [1, 0, 2, 4, 3, 7, 5, 8] == rows.r.tolist()
    assert max(map(len, parts)) <= size
    assert len(rows) == 8


def test_a_table_without_rows_has_one_part_without_any() -> None:
    none = np.empty(0, np.int64)
    rows = ChosenRows(np.empty(0, np.bool_), none, none, lambda: np.empty(0, ITEM), Slices())
    assert [part.r.tolist() for part in rows.parts(5)] == [[]] == [rows.r.tolist()]


def test_a_tuple_that_its_own_side_rules_out_is_a_row_of_an_anti_join_once() -> None:
    r, s = pa.table({"x": [7, 1, 8, 2]}), pa.table({"a": [8]})
    found = splitjoin.join(r, s, on="r.x = s.a AND r.x > 5", how="anti")
    assert found.to_arrow()["x"].to_pylist() == [1, 2, 7]  # what is ruled out is decided as it comes
