"""Rows over whole tables that are made part by part."""

from __future__ import annotations

import numpy as np
import pytest

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
