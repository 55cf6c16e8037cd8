"""Slots: partners have equal slots, and every value has the same one in every process and number type."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.spark.streaming.slots import SLOTS, Slots


def slots(on: str, r: pa.Table, s: pa.Table, window: str = "RANGE 5") -> Slots:
    return Slots.make(Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=window, time="ts",
                                 order="none"))


@given(values=st.lists(st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1, -1, 2**31 - 1]), min_size=1))
def test_equal_numbers_of_different_types_have_equal_slots(values: list[int]) -> None:
    ts = pa.array(range(len(values)))
    kinds: list[tuple[pa.DataType, Any]] = [
        (pa.int32(), int), (pa.int64(), int), (pa.decimal128(12, 2), Decimal), (pa.decimal128(30, 4), Decimal)]
    tables = [pa.table({"ts": ts, "k": pa.array([make(v) for v in values], kind)}) for kind, make in kinds]
    first = slots("r.k = s.k", tables[0], tables[0]).of_keys("r", tables[0])
    for table in tables[1:]:
        np.testing.assert_array_equal(slots("r.k = s.k", tables[0], table).of_keys("s", table), first)
    assert first.max() < SLOTS


def test_halves_floats_and_texts() -> None:
    ts = pa.array(range(4))
    two, three = (pa.table({"ts": ts, "k": pa.array([Decimal(v) for v in ("0.5", "-2.5", "7", "0")],
                                                    pa.decimal128(9, scale))}) for scale in (2, 3))
    chosen = slots("r.k = s.k", two, three)
    np.testing.assert_array_equal(chosen.of_keys("r", two), chosen.of_keys("s", three))
    floats = pa.table({"ts": ts, "k": [0.0, -0.0, float("nan"), -float("nan")]})
    found = slots("r.k = s.k", floats, floats).of_keys("r", floats)
    assert found[0] == found[1]
    assert found[2] == found[3]
    texts = pa.table({"ts": ts, "k": ["ann", "bob", None, "été"]})
    # In every process: not Python's own hashes of texts.
    assert slots("r.k = s.k", texts, texts).of_keys("r", texts).tolist()[:2] == [31977, 1664]


@pytest.mark.parametrize(("on", "window", "keys"), [
    ("r.k = s.k", "RANGE 5", True), ("s.k = r.k + 1 AND r.v < s.v", "RANGE 5", True), ("r.k = s.k", "ROWS 5", False),
    ("r.k = s.k OR r.v < s.v", "RANGE 5", False), ("r.k = 3 AND r.v < s.v", "RANGE 5", False),
    ("r.k + s.k = 4", "RANGE 5", False)])
def test_rows_are_hashed_by_an_equality_of_both_streams(on: str, window: str, keys: bool) -> None:
    table = pa.table({"ts": [1], "k": [2], "v": [3]})
    assert slots(on, table, table, window).hashed is keys


def test_slots_of_values_depend_on_the_values_alone_and_spread_them() -> None:
    table = pa.table({"ts": range(1000), "x": [i % 10 for i in range(1000)], "name": ["a"] * 1000})
    found = Slots(None).of_values(table)
    order = np.random.default_rng(0).permutation(1000)
    np.testing.assert_array_equal(Slots(None).of_values(table.take(pa.array(order))), found[order])
    counts = np.bincount(found % 4)
    assert counts.min() > 200
