from typing import Any

import pytest

from splitjoin import OrderError
from splitjoin.lang.order import Order, parse_order


@pytest.mark.parametrize(("text", "order"), [
    ("none", Order("none")), ("total", Order("total")), ("outer", Order("outer", 1)), ("outer(4)", Order("outer", 4)),
    (" Inner ( 16 ) ", Order("inner", 16)), ("TOTAL", Order("total")), (Order("outer", 3), Order("outer", 3)),
    ("outer(2147483647)", Order("outer", 2**31 - 1)),
])
def test_orders(text: str | Order, order: Order) -> None:
    assert parse_order(text) == order
    assert parse_order(str(order)) == order


@pytest.mark.parametrize("text", ["", "sorted", "total(1)", "none(1)", "outer()", "outer(-1)", "outer(1.5)", "outer 4",
                                  None])
def test_wrong_orders(text: str) -> None:
    with pytest.raises(OrderError, match=r"order must be 'none', 'outer\(N\)', 'inner\(n\)' or 'total', or of whole "
                                         r"tables 'left', not "):
        parse_order(text)
    with pytest.raises(OrderError, match=r"not 'lft' \(did you mean 'left'\?\)"):
        parse_order("lft")


@pytest.mark.parametrize("n", [0, 2**31])
def test_wrong_precision(n: int) -> None:
    with pytest.raises(OrderError, match=f"the precision of order 'inner' must be 1 to 2147483647, not {n}"):
        parse_order(f"inner({n})")


@pytest.mark.parametrize("digits", [20, 100, 5000])
def test_a_precision_of_many_digits(digits: int) -> None:
    with pytest.raises(OrderError, match="the precision of order 'outer' must be 1 to 2147483647, not "):
        parse_order(f"outer({'9' * digits})")
    with pytest.raises(OrderError, match="the precision of order 'outer' must be 1 to 2147483647, not "):
        Order("outer", 10**digits)
    assert parse_order(f"outer({'0' * digits}7)") == Order("outer", 7)


@pytest.mark.parametrize(("kind", "n", "message"), [
    ("foo", 0, "order must be 'none', .*, not 'foo'"), ("outer", 0, "precision of order 'outer' must be .*, not 0"),
    ("inner", 2.0, "must be 1 to 2147483647, not 2.0"), ("inner", True, "not True"), (None, 1, "not None")])
def test_orders_made_directly(kind: Any, n: Any, message: str) -> None:
    with pytest.raises(OrderError, match=message):
        Order(kind, n)
