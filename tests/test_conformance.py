"""The checker itself must notice every kind of wrong answer."""

from collections.abc import Callable

import numpy as np
import pytest

from splitjoin.engines.device import ITEM, PAIR, STAR, Items
from splitjoin.engines.golden import GoldenDevice
from tests.support.conformance import assert_conforms, run
from tests.support.scenarios import SCENARIOS

SCENARIO = next(s for s in SCENARIOS if s.name == "band-rows-17")


def golden(order: str) -> Items:
    return run(GoldenDevice(), SCENARIO.query(order), SCENARIO.r, SCENARIO.s)


def first(items: Items, kind: int) -> int:
    return int(np.flatnonzero(items["kind"] == kind)[3])


def changed(items: Items, i: int, **fields: int) -> Items:
    made = items.copy()
    for name, value in fields.items():
        made[name][i] = value
    return made


@pytest.mark.parametrize("order", ["none", "total", "outer(1)", "outer(3)", "inner(2)"])
def test_the_golden_answer_conforms(order: str) -> None:
    assert_conforms(golden(order), golden(order), order)


@pytest.mark.parametrize("order", ["none", "total", "outer(3)", "inner(2)"])
@pytest.mark.parametrize(("spoil", "message"), [
    (lambda a: np.delete(a, first(a, PAIR)), "missing|item"),
    (lambda a: np.insert(a, first(a, PAIR), a[first(a, PAIR)]), "more than once"),
    (lambda a: changed(a, first(a, PAIR), r=10**6), "extra|item"),
    (lambda a: changed(a, first(a, PAIR), side=1 - int(a["side"][first(a, PAIR)])), "missing|item|extra"),
    (lambda a: a.astype([(n, "i8") for n in ITEM.names or ()]), "dtype"),
])
def test_wrong_pairs_are_noticed(order: str, spoil: Callable[[Items], Items], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_conforms(spoil(golden(order)), golden(order), order)


@pytest.mark.parametrize("order", ["total", "outer(3)", "inner(2)"])
@pytest.mark.parametrize(("spoil", "message"), [
    (lambda a: np.delete(a, first(a, STAR)), "stars|item"),
    (lambda a: np.insert(a, first(a, STAR), a[first(a, STAR)]), "stars|item"),
    (lambda a: a[:-1], "last star|stars|items instead"),
    (lambda a: changed(a, first(a, STAR), r=5, s=5), "other stream's field|item"),
])
def test_wrong_stars_are_noticed(order: str, spoil: Callable[[Items], Items], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_conforms(spoil(golden(order)), golden(order), order)


def test_order_none_has_no_stars() -> None:
    with pytest.raises(AssertionError, match="order none has no stars"):
        assert_conforms(golden("total"), golden("none"), "none")


def test_the_freedom_of_each_order() -> None:
    shuffled = golden("none")[::-1]
    assert_conforms(shuffled, golden("none"), "none")
    by_side = golden("outer(1)")
    by_side = np.concatenate([by_side[by_side["side"] == 1], by_side[by_side["side"] == 0]])
    assert_conforms(by_side, golden("outer(1)"), "outer(1)")
    with pytest.raises(AssertionError, match="item 0"):
        assert_conforms(by_side, golden("total"), "total")
