import functools
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError, Schema, SchemaError
from splitjoin.lang.query import predicate as to_ir

PAGE = (Path(__file__).parents[4] / "docs" / "language.md").read_text(encoding="utf-8")


class Order:
    price: float
    amount: int
    note: str | None


@dataclass
class Offer:
    price: float
    small: Annotated[int, pa.int16()]
    day: date


R = Schema.from_arrow("r", pa.schema([("price", pa.float32()), ("amount", pa.int8()), ("note", pa.string()),
                                      ("more", pa.int8())]))
S = Schema.from_arrow("s", pa.schema([("price", pa.float64()), ("small", pa.int16()), ("day", pa.date32())]))


def test_the_classes_name_the_columns() -> None:
    limit = 5

    @splitjoin.predicate
    def near(r: Order, s: Offer) -> Any:
        return (abs(r.price - s.price) <= limit) & (r.amount < s.small)

    assert near.__name__ == "near"
    assert to_ir(near, R, S) == to_ir("abs(r.price - s.price) <= 5 AND r.amount < s.small", R, S)
    limit = 6  # a closure is read when the join is made
    assert to_ir(near, R, S) == to_ir("abs(r.price - s.price) <= 6 AND r.amount < s.small", R, S)


def test_a_predicate_without_annotations_is_the_function() -> None:
    on = splitjoin.predicate(lambda r, s: r.amount == s.small)
    assert to_ir(on, R, S) == to_ir("r.amount = s.small", R, S)
    r, s = pa.table({"x": [1, 2]}), pa.table({"a": [2, 1]})
    assert splitjoin.join(r, s, on=splitjoin.predicate(lambda r, s: r.x == s.a), window="ROWS 2").num_rows == 2


def test_errors_show_at_the_definition() -> None:
    with pytest.raises(SchemaError, match=r"stream r has no column 'prise' \(did you mean 'price'\?\); its columns are "
                                          r"price, amount, note\n .*in near\n +return r.prise < s.price\n +\^{7}$"):
        @splitjoin.predicate
        def near(r: Order, s: Offer) -> Any:
            return r.prise < s.price

    with pytest.raises(PredicateError, match="string and date cannot be compared"):
        splitjoin.predicate(_wrong)


def _wrong(r: Order, s: Offer) -> Any:
    return r.note == s.day


class Named(NamedTuple):
    b: bytes
    d: Decimal


class Typed(TypedDict):
    t: datetime | None
    l: timedelta  # noqa: E741
    ok: bool


def test_all_kinds_of_classes_and_types() -> None:
    @splitjoin.predicate
    def on(r: Named, s: Typed) -> Any:
        return (r.b.starts_with(b"a") & s["t"].is_null()  # type: ignore[attr-defined,union-attr]  # of columns
                & s["ok"] & (r.d > 1.5) & (s["l"] > timedelta(seconds=1)))

    r = Schema.from_arrow("r", pa.schema([("b", pa.binary(3)), ("d", pa.decimal128(5, 1))]))
    s = Schema.from_arrow("s", pa.schema([("t", pa.timestamp("s")), ("l", pa.duration("ms")), ("ok", pa.bool_())]))
    assert str(to_ir(on, r, s).type) == "bool"


@pytest.mark.parametrize(("changed", "message"), [
    ({"price": pa.string()}, "column s.price must be float, as the condition's class says, not string"),
    ({"small": pa.int32()}, "column s.small must be int16, as the condition's class says, not int32"),
    ({"day": None}, "stream s has no column 'day'"),
])
def test_tables_that_do_not_fit(changed: dict[str, pa.DataType | None], message: str) -> None:
    types = {"price": pa.float64(), "small": pa.int16(), "day": pa.date32(), **changed}
    s = Schema.from_arrow("s", pa.schema([(n, t) for n, t in types.items() if t is not None]))
    on = splitjoin.predicate(_near)
    with pytest.raises(SchemaError, match=message):
        to_ir(on, R, s)


def _near(r: Order, s: Offer) -> Any:
    return r.price < s.price


class Listed:
    x: list[int]


def _listed(r: Listed, s: Offer) -> Any:
    return r.x == s.day


def _number(r: int, s: Offer) -> Any:
    return r == s.day


@pytest.mark.parametrize(("fn", "message"), [
    (5, "@splitjoin.predicate must stand above a function of .*, not int"),
    (lambda r: r.x, r"must be a function of two parameters \(r, s\), not <lambda>\(r\)"),
    (_listed, r"Listed.x must be annotated with int, float, .* not list\[int\]"),
    (_number, "must be annotated with a class that has annotated columns, .* not <class 'int'>"),
])
def test_wrong_predicates(fn: Any, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        splitjoin.predicate(fn)


class _Within:
    """A condition with a constant of its own."""

    def __init__(self, limit: int):
        self.limit = limit

    def __call__(self, r: Order, s: Offer) -> Any:
        return r.price - s.price <= self.limit


def _limited(limit: int, r: Order, s: Offer) -> Any:
    return r.price - s.price <= limit


@pytest.mark.parametrize("fn", [_Within(3), functools.partial(_limited, 3), _Within(3).__call__])
def test_what_can_be_called_has_classes_too(fn: Any) -> None:
    made = splitjoin.predicate(fn)
    assert to_ir(made, R, S) == to_ir("r.price - s.price <= 3", R, S)
    assert splitjoin.predicate(made) is made
    with pytest.raises(SchemaError, match="stream r has no column 'amount'"):
        to_ir(made, Schema.from_arrow("r", pa.schema([("price", pa.float32())])), S)


def test_the_example_of_the_page() -> None:
    block = PAGE.split("```python decorated\n")[1].split("```")[0]
    scope: dict[str, Any] = {"splitjoin": splitjoin, "datetime": datetime, "timedelta": timedelta, "LIMIT": 0.5}
    exec(block, scope)
    r = Schema.from_arrow("r", pa.schema([("price", pa.float64()), ("sent", pa.timestamp("s")), ("note", pa.string())]))
    s = Schema.from_arrow("s", pa.schema([("price", pa.float64()), ("made", pa.timestamp("s"))]))
    sql = "abs(r.price - s.price) <= 0.5 AND s.made - r.sent <= INTERVAL 15 MINUTES"
    assert to_ir(scope["near"], r, s) == to_ir(sql, r, s)


def test_annotations_must_be_known() -> None:
    def near(r: "Unknown", s: Any) -> Any:  # type: ignore[name-defined]  # noqa: F821  # unknown on purpose
        return r.x == s.x

    with pytest.raises(PredicateError, match="annotations of near must be known where it is defined: name 'Unknown'"):
        splitjoin.predicate(near)
