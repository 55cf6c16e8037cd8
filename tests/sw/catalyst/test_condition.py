"""Conditions as the rule in Java writes them: the IR and the nested loop find the same pairs, where the IR is exact."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from splitjoin import InputError
from splitjoin.catalyst.condition import _range, fits, keys
from splitjoin.catalyst.nested_loop import SideKeys, matched_pairs
from splitjoin.catalyst.task import ExtensionTask
from splitjoin.engines.golden import GoldenDevice

#: The keys of each side, by type.
_TYPES = {"integer": pa.int32(), "long": pa.int64(), "double": pa.float64(), "string": pa.string(),
          "boolean": pa.bool_(), "decimal(9,2)": pa.decimal128(9, 2), "date": pa.date32()}
_VALUES: dict[str, list[Any]] = {
    "integer": [-3, -1, 0, 1, 2, 5], "long": [-4, -1, 0, 1, 3, 7],
    "double": [float("nan"), -0.0, 0.0, 1.5, -2.5, 1e300],
    "string": ["", "a", "ab", "é", "z"], "boolean": [True, False], "decimal(9,2)": [Decimal("1.50"), Decimal("-0.01")],
    "date": [0, 1, 9]}


def _table(rng: random.Random, rows: int) -> pa.Table:
    return pa.table({f"k{n}": pa.array([rng.choice([*_VALUES[kind], None]) for _ in range(rows)], pa.int32() if
                                       kind == "date" else _TYPES[kind]).cast(_TYPES[kind])
                     for n, kind in enumerate(_TYPES)})


def _key(kind: str) -> st.SearchStrategy[list[Any]]:
    return st.sampled_from("lr").map(lambda side: [side, kind, list(_TYPES).index(kind)])


def _numbers(kind: str, depth: int) -> st.SearchStrategy[list[Any]]:
    literal = st.integers(-3, 3).map(lambda v: ["lit", kind, v] if kind != "double" else ["lit", kind, float(v).hex()])
    if depth == 0:
        return st.one_of(_key(kind), literal)
    inner = _numbers(kind, depth - 1)
    return st.one_of(inner, st.tuples(st.sampled_from("+-*"), st.just(kind), st.just(False), inner, inner).map(list),
                     st.tuples(st.sampled_from(["abs", "neg"]), st.just(kind), st.just(False), inner).map(list),
                     *_parts(kind, inner),
                     st.tuples(st.sampled_from(["greatest", "least", "coalesce"]), st.just(kind), st.just(False), inner,
                               inner).map(list))


def _parts(kind: str, of: st.SearchStrategy[list[Any]]) -> list[st.SearchStrategy[list[Any]]]:
    """Quotients and remainders by constants, and operations on bits, of the numbers ``of``."""
    if kind == "double":
        return [of.map(lambda a: ["/", kind, False, a, ["lit", kind, (3.0).hex()]])]
    by = st.integers(1, 7).map(lambda v: ["lit", kind, v])
    return [st.tuples(st.sampled_from(["div", "mod", "pmod"]), st.just(kind), st.just(False), of, by).map(list),
            st.tuples(st.sampled_from("&|^"), st.just(kind), st.just(False), _key(kind), _key(kind)).map(list)]


def _conditions(depth: int) -> st.SearchStrategy[list[Any]]:
    op = st.sampled_from(["=", "<", "<=", ">", ">=", "<=>"])
    numbers = st.sampled_from(["integer", "long", "double"]).flatmap(
        lambda kind: st.tuples(op, st.just("boolean"), st.just(False), _numbers(kind, 2), _numbers(kind, 1)).map(list))
    others = st.sampled_from(["string", "boolean", "decimal(9,2)", "date"]).flatmap(
        lambda kind: st.tuples(op, st.just("boolean"), st.just(False), _key(kind), _key(kind)).map(list))
    leaf = st.one_of(numbers, others, _key("boolean"))
    if depth == 0:
        return leaf
    inner = _conditions(depth - 1)
    truth = st.just("boolean"), st.just(False)
    return st.one_of(leaf, *(st.tuples(ops, *truth, *[inner] * operands).map(list) for ops, operands in (
        (st.sampled_from(["and", "or"]), 2), (st.sampled_from(["not", "isnull", "isnotnull"]), 1), (st.just("if"), 3))))


@given(condition=_conditions(2), seed=st.integers(0, 99))
def test_both_ways_find_the_same_pairs(condition: list[Any], seed: int) -> None:
    rng = random.Random(seed)
    tables = _table(rng, 11), _table(rng, 9)
    sides = [SideKeys(table, [None] * len(_TYPES), [""] * len(_TYPES)) for table in tables]
    slow = [pair for r, s in matched_pairs(condition, *sides) for pair in zip(r.tolist(), s.tolist(), strict=True)]
    # The golden model evaluates the IR; the CPU engine, which has tests of its own, would compile each of these.
    rows = ExtensionTask({"on": condition, "kind": "inner"}, GoldenDevice())._rows(*sides)
    fast = [pair for r, s in rows for pair in zip(r.tolist(), s.tolist(), strict=True)]
    assert sorted(fast) == sorted(slow), json.dumps(condition)


def test_integers_that_may_leave_their_type_are_found() -> None:
    sum_of_both = ["+", "integer", False, ["l", "integer", 0], ["r", "integer", 0]]
    assert keys(sum_of_both) == {("l", 0), ("r", 0)}
    assert fits(sum_of_both, {("l", 0): (0, 2**31 - 1), ("r", 0): (-5, 0)})
    assert not fits(sum_of_both, {("l", 0): (0, 2**31 - 1), ("r", 0): (-5, 1)})
    assert fits(sum_of_both, {("l", 0): (0, 2**31 - 1), ("r", 0): None})
    assert not fits(["neg", "long", True, ["l", "long", 0]], {("l", 0): (-2**63, 0)})
    product = ["*", "long", False, ["l", "long", 0], ["r", "long", 0]]
    assert fits(product, {("l", 0): (-2**31, 5), ("r", 0): (-9, 2**31)})
    assert not fits(product, {("l", 0): (-2**32, 5), ("r", 0): (-2**31, 9)})
    for op, low, high in (("div", -2, 2), ("mod", -4, 4), ("pmod", 0, 6)):
        part = [op, "long", False, ["l", "long", 0], ["lit", "long", 7]]
        assert _range(part, {("l", 0): (-17 if op != "mod" else -4, 17 if op != "mod" else 4)}) == (low, high)
    cast = ["cast", "long", True, ["l", "integer", 0]]
    assert fits(["+", "long", True, cast, cast], {("l", 0): (-2**31, 2**31 - 1)})


@pytest.mark.parametrize(("op", "values", "others", "wraps"), [
    ("+", [2**31 - 1, 1], [1, 0], [(0, 0)]), ("-", [-2**31, 0], [1, 0], [(0, 0)]),
    ("*", [2**16, 3], [2**15, 2**16], [(0, 0), (0, 1)])])
def test_integers_wrap_or_raise(op: str, values: list[int], others: list[int], wraps: list[tuple[int, int]]) -> None:
    r, s = (SideKeys(pa.table({"k0": pa.array(v, pa.int32())}), [None], [""]) for v in (values, others))
    made = [op, "integer", False, ["l", "integer", 0], ["r", "integer", 0]]
    exact = {(i, j): {"+": a + b, "-": a - b, "*": a * b}[op]
             for i, a in enumerate(values) for j, b in enumerate(others)}
    wrapped = {pair: (v + 2**31) % 2**32 - 2**31 for pair, v in exact.items()}
    assert [pair for pair, v in exact.items() if v != wrapped[pair]] == wraps
    for limit in (0, 5, 2**31 - 1):
        condition = ["<=", "boolean", False, made, ["lit", "integer", limit]]
        found = [(int(i), int(j)) for at, other in matched_pairs(condition, r, s)
                 for i, j in zip(at, other, strict=True)]
        assert sorted(found) == sorted(pair for pair, v in wrapped.items() if v <= limit)
    raising = [op, "integer", True, *made[3:]]
    with pytest.raises(InputError, match=r"raises an error for some rows.*spark\.splitjoin\.sql\.enabled"):
        list(matched_pairs(["<=", "boolean", False, raising, ["lit", "integer", 0]], r, s))


def test_an_error_is_raised_for_the_pairs_that_reach_it() -> None:
    r = SideKeys(pa.table({"k0": [1, 5], "k1": pa.array([None, 2], pa.int64())}), [None, np.array([True, False])],
             ["", "10 / x"])
    s = SideKeys(pa.table({"k0": [3]}), [None], [""])
    reached = ["<", "boolean", False, ["l", "long", 1], ["r", "long", 0]]
    before = [">", "boolean", False, ["l", "long", 0], ["r", "long", 0]]
    assert [(a.tolist(), b.tolist()) for a, b in matched_pairs(["and", "boolean", False, before, reached], r, s)] == [
        ([1], [0])]
    for condition in (["and", "boolean", False, reached, before], ["or", "boolean", False, before, reached]):
        with pytest.raises(InputError, match=r"in 10 / x; set"):
            list(matched_pairs(condition, r, s))
    # A semi join looks at the pairs of a row up to the first match.
    third = SideKeys(pa.table({"k0": pa.array([1, 3, None], pa.int64())}), [np.array([False, False, True])], ["1 / y"])
    matches = ["<", "boolean", False, ["r", "long", 0], ["l", "long", 0]]
    late, early = (SideKeys(pa.table({"k0": [at]}), [None], [""]) for at in (9, 0))
    assert [a.tolist() for a, _ in matched_pairs(matches, late, third, until_first=True)] == [[0, 0]]
    for row, until_first in ((late, False), (early, True), (early, False)):
        with pytest.raises(InputError, match=r"in 1 / y; set"):
            list(matched_pairs(matches, row, third, until_first=until_first))
    none = replace(s, columns=s.columns.slice(0, 0))
    assert list(matched_pairs(reached, r, none)) == []
