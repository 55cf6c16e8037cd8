"""User-defined aggregates: the compiler against Python itself, the kernel against the reference, all ten examples."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import splitjoin
from splitjoin import InputError
from splitjoin.engines.device import ITEM
from splitjoin.lang.aggregate_functions import FoldTerm
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.fold import Overflow
from splitjoin.rows.aggregates.decided_bases import DecidedBases
from splitjoin.rows.aggregates.user_fold import fold_user, kernel

from ....support.random_aggregates import RandomAggregate, random_aggregates
from ....support.sampling import at_length, examples
from ....support.user_aggregates import EXAMPLES, Histogram, Variance

#: Kernels of which the default tests compile machine code.
COMPILED = ("Histogram", "Smoothed")


def partners(data: st.DataObject, fold: Any, most: int = 8) -> list[list[int]]:
    """Whole numbers for the arguments of some partners."""
    values = [st.integers(*a.width.range) for a in fold.arguments]
    return [list(row) for row in data.draw(st.lists(st.tuples(*values), max_size=most))]


def by_reference(fold: Any, rows: list[list[int]]) -> list[int] | tuple[int, int]:
    """The state after ``rows``, or the slot and the value that overflow."""
    run, state = fold.add.evaluator(), fold.init
    for row in rows:
        try:
            state = fold.checked(run(fold.row(state), dict(zip([a.name for a in fold.arguments], row, strict=True))))
        except Overflow as error:
            return error.slot, error.value
    return list(state)


def by_kernel(fold: Any, rows: list[list[int]]) -> list[int] | tuple[int, int]:
    """The same by the kernel's source, which Python runs."""
    module = kernel(fold)
    assert module is not None
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(len(fold.arguments))]
    states = [np.full(1, slot.init, np.int64) for slot in fold.slots]
    with np.errstate(all="raise"):
        pair = module.fold.py_func(np.array([len(rows)]), np.ones(len(rows), np.bool_), np.zeros(1, np.int64), *columns,
                                   *states)
    state = [int(s[0]) for s in states]
    if pair < 0:
        return state
    with pytest.raises(Overflow) as raised:
        fold.checked(state)
    return raised.value.slot, raised.value.value


def result(fold: Any, state: list[int]) -> Any:
    (value,) = fold.result.evaluator()(fold.row(state), {})
    return value


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(aggregate=random_aggregates(), data=st.data())
def test_random_classes_are_what_python_makes_of_them(aggregate: RandomAggregate, data: st.DataObject) -> None:
    fold = aggregate.compiled.fold
    rows = partners(data, fold)
    reference = by_reference(fold, rows)
    assert by_kernel(fold, rows) == reference
    expected = aggregate.values(rows)
    if isinstance(reference, tuple):
        assert expected == "overflow"
    elif rows:
        low, high = fold.width.range
        whole = result(fold, reference)
        assert (Fraction(int(whole), 2**fold.width.fraction) if low <= whole <= high else "overflow") == expected


def test_bits_of_constants() -> None:
    @splitjoin.aggregate
    class Bits:
        n: splitjoin.unsigned(9)

        def add(self, x: splitjoin.unsigned(4)):
            self.n = 200
            self.n = (self.n & 12 | 3) ^ (~self.n & 5)
            self.n += x

        def result(self) -> splitjoin.unsigned(9):
            return self.n

    assert by_reference(Bits.fold, [[1], [2]]) == [((200 & 12 | 3) ^ (~200 & 5)) + 2]


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=[c.__name__ for c, *_ in EXAMPLES])
@settings(max_examples=examples(15))
@given(data=st.data())
def test_examples_compute_what_they_say(number: int, data: st.DataObject) -> None:
    cls, ranges, expected = EXAMPLES[number]
    rows = data.draw(st.lists(st.tuples(*(st.integers(*r) for r in ranges)), min_size=1, max_size=8))
    state = by_reference(cls.fold, [list(row) for row in rows])
    assert by_kernel(cls.fold, [list(row) for row in rows]) == state
    assert isinstance(state, list)
    value = result(cls.fold, state)
    width = cls.fold.width
    value = value if width is None or value is None else Fraction(int(value), 2**width.fraction)
    assert value == expected([row[0] for row in rows] if len(ranges) == 1 else rows)


@pytest.mark.parametrize("number", [n if c.__name__ in COMPILED else at_length(n)
                                    for n, (c, *_) in enumerate(EXAMPLES)])
def test_examples_on_the_cpu_equal_the_reference(number: int) -> None:
    cls, ranges, _ = EXAMPLES[number]
    made = np.random.default_rng(number)
    n = 60
    values = {f"a{i}": pa.array(made.integers(low, high, n, endpoint=True), pa.int64(), mask=made.random(n) < 0.2)
              for i, (low, high) in enumerate(ranges)}
    r, s = pa.table({"x": np.arange(n)}), pa.table(values)
    fixed = any(a.width.fraction for a in cls.fold.arguments)
    call = cls(*(f"s.{name}{' * 0.0625' * fixed}" for name in values))
    found = [splitjoin.join(r, s, on="r.x % 7 <> 3", window="ROWS 9", how="left", aggregate={"v": call}, device=d).table
             for d in ("golden", "cpu")]
    assert found[0].equals(found[1])
    assert 0 < found[0]["v"].null_count < n


R = pa.table({"x": [1, 2]})


@pytest.mark.parametrize(("values", "message"), [
    ([1, 40000], "x of 'Variance(s.a)' must fit signed(16), but is 40000 for row 0 of r and row 1 of s"),
    ([2**62, 2**62, None], "x of 'Variance(s.a)' must fit signed(16), but is 4611686018427387904 for row 0 of r and"),
])
def test_an_argument_that_does_not_fit_names_both_rows(values: list[Any], message: str) -> None:
    s = pa.table({"a": pa.array(values, pa.int64())})
    for device in ("golden", "cpu"):
        with pytest.raises(InputError, match=re.escape(message)):
            splitjoin.join(R, s, on="TRUE", window="ROWS 9", aggregate={"v": Variance("s.a")}, device=device)


@splitjoin.aggregate
class Narrow:
    """A sum of four bits."""

    total: splitjoin.signed(4)

    def add(self, x: splitjoin.signed(8)):
        self.total += x

    def result(self) -> splitjoin.signed(3):
        return self.total


@pytest.mark.parametrize(("values", "message"), [
    ([5, 9, 1000], "total of 'Narrow(s.a)' of row 0 of r must fit signed(4), but is 14; declare it wider in Narrow"),
    ([5, 1], "'Narrow(s.a)' of row 0 of r must fit signed(3), but is 6; declare the result of Narrow wider"),
    ([-9], "total of 'Narrow(s.a)' of row 0 of r must fit signed(4), but is -9"),
])
def test_a_state_or_result_that_does_not_fit_names_the_row(values: list[int], message: str) -> None:
    r = pa.table({"x": list(range(len(values)))})
    for device in ("golden", "cpu"):
        with pytest.raises(InputError, match=re.escape(message)):
            splitjoin.join(r, pa.table({"a": values}), on="r.x >= 0", window="ROWS 9",
                           aggregate={"v": Narrow("s.a")}, device=device)


@splitjoin.aggregate
class Wide:
    """A sum of squares in 64 bits, which no kernel of 64 bits has room for."""

    total: splitjoin.unsigned(64)

    def add(self, x: splitjoin.signed(33)):
        self.total += x * x

    def result(self) -> splitjoin.unsigned(64):
        return self.total


def test_wide_numbers_are_folded_in_plain_python() -> None:
    assert kernel(Wide.fold) is None
    s = pa.table({"a": [2**31, -(2**31) - 1, 3]})
    found = [splitjoin.join(R, s, on="TRUE", window="ROWS 9", how="left", aggregate={"v": Wide("s.a")}, device=d).table
             for d in ("golden", "cpu")]
    assert found[0].equals(found[1])
    assert found[0]["v"].to_pylist()[0] == 2**62 + (2**31 + 1)**2 + 9
    with pytest.raises(InputError, match="must fit unsigned"):
        splitjoin.join(R, pa.table({"a": [2**32 - 1, 2**32 - 1, 2**32 - 1]}), on="TRUE", window="ROWS 9",
                       aggregate={"v": Wide("s.a")})


@pytest.mark.parametrize("device", ["golden", "cpu"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30, -2049.0])
def test_floats_that_are_no_number_in_fixed_point_are_refused(device: str, value: float) -> None:
    s = pa.table({"a": [1.0, value]})
    with pytest.raises(InputError, match=r"x of 'Level\(s.a\)' must fit fixed\(16, 4\), but is .* row 1 of s"):
        splitjoin.join(R, s, on="TRUE", window="ROWS 9", aggregate={"v": Level("s.a")}, device=device)


@splitjoin.aggregate
class Level:
    """The greatest value, in steps of 1/16."""

    high: splitjoin.fixed(16, 4)

    def add(self, x: splitjoin.fixed(16, 4)):
        self.high = max(self.high, x)

    def result(self) -> splitjoin.fixed(16, 4):
        return self.high


def test_floats_and_decimals_are_rounded_down_to_fixed_point() -> None:
    s = pa.table({"a": [0.99, -3.0], "d": pa.array(["0.99", "-3.00"]).cast(pa.decimal128(9, 2))})
    for device in ("golden", "cpu"):
        made = splitjoin.join(pa.table({"x": [1]}), s, on="TRUE", window="ROWS 9", select=[], device=device,
                              aggregate={"a": Level("s.a"), "d": Level("s.d")}).table
        assert made.to_pylist() == [{"a": 0.9375, "d": 0.9375}]


def test_sql_knows_aggregates_by_name_and_sessions_fold_them() -> None:
    r = pa.table({"ts": [1, 5, 9], "x": [1, 2, 3]})
    s = pa.table({"ts": [0, 2, 6, 7], "a": [3, 250, 40, 41]})
    text = "SELECT r.x, fullest(s.a) AS bin, count(*) AS n FROM r LEFT JOIN s ON TRUE GROUP BY r"
    found = splitjoin.sql(text, r=r, s=s, window="RANGE 5", time="ts", aggregates={"fullest": Histogram}).table
    same = splitjoin.join(r, s, on="TRUE", window="RANGE 5", time="ts", how="left", select=["x"],
                          aggregate={"bin": Histogram("s.a"), "n": "count(*)"}, device="golden").table
    assert found.to_pylist() == same.to_pylist() == [{"x": 1, "bin": 0, "n": 3}, {"x": 2, "bin": 1, "n": 4},
                                                     {"x": 3, "bin": 1, "n": 2}]
    query = splitjoin.query(r.schema, s.schema, on="TRUE", window="RANGE 5", time="ts", how="left",
                            aggregate={"bin": Histogram("s.a"), "n": "count(*)"})
    with splitjoin.open(query, select=["x"]) as session:
        session.push_s(s)
        session.push_r(r)
        session.close_r()
        session.close_s()
        rows = session.flush().to_pylist()
    assert rows == same.to_pylist()
    prepared = splitjoin.sql(text, r=r.schema, s=s.schema, window="RANGE 5", time="ts",
                             aggregates={"Fullest": Histogram})
    assert prepared.schema.field("bin").type == pa.uint8()
    with pytest.raises(InputError, match="must be a mapping of names to classes"):
        splitjoin.sql(text, r=r, s=s, window="RANGE 5", time="ts", aggregates={"fullest": "Histogram"})


def test_what_goes_on_from_states_has_the_values_of_partners_that_came_before() -> None:
    query = splitjoin.query(R.schema, pa.schema([("a", pa.int64())]), on="r.x = s.a", window="ROWS 9", how="left",
                            aggregate={"v": Wide("s.a")})
    (term,) = query.aggregates[0].terms
    assert isinstance(term, FoldTerm)
    decided = DecidedBases(np.empty(0, ITEM), np.arange(3), np.array([0, 1, 0]), np.array([0]))
    begin = [np.array([2, 1, 0], object)], np.array([True, False, False])
    found = fold_user(term, [Vector(np.array([1]), np.ones(1, np.bool_))], decided, begin)
    assert found.valid.tolist() == [True, True, False]
    assert found.values[:2].tolist() == [2, 2]
