"""What `implies` claims holds for every pair of tuples; and it finds what queries with other constants need."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.lang.eval.vector import column, evaluate_columns
from splitjoin.lang.ir import Arith, Cmp, Expr, columns
from splitjoin.lang.query import predicate
from splitjoin.lang.schema import Schema
from splitjoin.plan.implication import implies, weakest
from tests.support.sampling import examples

FIELDS = [("x", pa.int32()), ("k", pa.int64()), ("f", pa.float64()), ("n", pa.string())]
R, S = (Schema.from_arrow(side, pa.schema(FIELDS)) for side in ("r", "s"))
VALUES = {"x": [None, -2, 0, 1, 3], "k": [None, 0, 2], "f": [None, -1.5, 0.5, float("nan")], "n": [None, "a", "b"]}


def condition(text: str) -> Expr:
    return predicate(text, R, S)


def truth(e: Expr) -> list[bool]:
    """Whether ``e`` is true of each pair of rows whose columns have any of `VALUES`."""
    both = ("r", "s")
    read = [(side, name) for side in both for name, _ in FIELDS if any(
        (c.side, c.name) == (side, name) for c in columns(e))]
    # All conditions of a pair must be tested of the same rows.
    rows = list(itertools.product(*(VALUES[name] for _, name in ALL)))
    given = {(side, name): pa.chunked_array([pa.array([row[n] for row in rows], dict(FIELDS)[name])])
             for n, (side, name) in enumerate(ALL)}
    assert set(read) <= set(ALL)
    value = evaluate_columns(e, {c: column(given[c.side, c.name]) for c in columns(e)}, len(rows))
    return (value.valid & value.values).tolist()  # type: ignore[no-any-return]


#: The columns that random conditions read.
ALL = [("r", "x"), ("s", "x"), ("r", "f"), ("s", "f"), ("r", "k")]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        parts = draw(st.lists(conditions(depth - 1), min_size=1, max_size=3))
        if draw(st.integers(0, 5)) == 0:
            return f"NOT ({parts[0]})"
        return "(" + draw(st.sampled_from([" AND ", " OR "])).join(parts) + ")"
    n, op = draw(st.integers(-3, 4)), draw(st.sampled_from(["<", "<=", "=", ">=", ">", "<>"]))
    total = draw(st.sampled_from(["abs(r.x - s.x)", "r.x - s.x", "s.x - r.x", "2 * r.x - 2 * s.x", "r.x + r.k - s.x",
                                  "r.x", "s.x", "r.f", "abs(r.f - s.f)", "r.f - s.f", "(r.x - s.x) * (r.x - s.x)",
                                  "r.x + r.k - r.k - s.x", "r.k"]))
    return f"{total} {op} {n}{'.0' if 'f' in total else ''}"


def check(one: Expr, other: Expr) -> bool:
    """Whether ``one`` is said to imply ``other``; then it must."""
    said = implies(one, other)
    if said:
        assert all(not x or y for x, y in zip(truth(one), truth(other), strict=True)), f"{one} and {other}"
    return said


def test_what_it_claims_holds() -> None:
    claimed = 0

    @settings(max_examples=examples(60), deadline=None)
    @given(conditions(), conditions())
    def run(a: str, b: str) -> None:
        nonlocal claimed
        one, other = condition(a), condition(b)
        claimed += check(one, other) + check(other, one)

    run()
    assert claimed > 4


@pytest.mark.parametrize(("a", "b"), [
    ("abs(r.x - s.x) <= 5", "abs(r.x - s.x) <= 9"), ("r.x = s.x", "abs(r.x - s.x) <= 9"),
    ("r.x = s.x AND r.k < s.k", "r.x = s.x OR r.k = s.k"), ("r.x < s.x", "r.x <= s.x"),
    ("r.x > 5 AND r.k = s.k", "r.x > 3 AND r.k = s.k"), ("r.x = 5 AND r.k = s.k", "r.k = s.k"),
    ("abs(r.f - s.f) <= 0.5", "abs(r.f - s.f) <= 0.75"), ("2 * r.x <= 2 * s.x - 4", "r.x <= s.x"),
    ("r.x BETWEEN s.x - 1 AND s.x + 1", "abs(r.x - s.x) <= 1"), ("r.n = s.n AND r.x = 3", "r.n = s.n"),
    ("(r.x - s.x) * (r.x - s.x) + (r.k - s.k) * (r.k - s.k) <= 25", "abs(r.x - s.x) <= 5"), ("r.x = s.x", "TRUE")])
def test_constants_and_further_tests(a: str, b: str) -> None:
    assert implies(condition(a), condition(b))
    assert a == "r.x BETWEEN s.x - 1 AND s.x + 1" or not implies(condition(b), condition(a))


def test_the_weakest_stay() -> None:
    made = weakest([condition(text) for text in ("abs(r.x - s.x) <= 5", "r.k = s.k", "abs(r.x - s.x) <= 9",
                                                 "r.x = s.x", "r.k = s.k AND r.n = s.n")])
    assert made == [condition("r.k = s.k"), condition("abs(r.x - s.x) <= 9")]


def test_a_negative_zero_is_no_zero() -> None:
    zero = condition("r.f / 0.0 > s.f")
    assert isinstance(zero, Cmp) and isinstance(zero.a, Arith)
    negative = replace(zero, a=replace(zero.a, b=replace(zero.a.b, value=-0.0)))  # type: ignore[call-arg]
    assert zero == negative and implies(zero, zero)
    assert not implies(zero, negative) and not implies(negative, zero)


@pytest.mark.parametrize(("a", "b"), [
    ("r.x - s.x < 0", "r.x + r.k - r.k - s.x < 0"), ("r.x < s.x", "r.x + r.k < s.x + r.k"),
    ("r.x = s.x", "r.x + r.k - r.k = s.x")])
def test_what_can_be_null_alone_does_not_follow(a: str, b: str) -> None:
    assert check(condition(b), condition(a)) and not implies(condition(a), condition(b))


def test_branches_that_are_null() -> None:
    one, other = condition("nullif(r.x, r.k) >= s.x + 1"), condition("nullif(r.x, r.k) >= s.x")
    assert check(one, other) and not check(other, one)
