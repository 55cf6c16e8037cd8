"""`join_asof` of frames of Polars, beside Polars' own."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import splitjoin.frames  # noqa: F401  # which gives frames their methods
from splitjoin import InputError, SchemaError, SplitJoinError

from ...support.sampling import at_length

chance = np.random.default_rng(39)
N = 24
DAY = dt.datetime(2024, 3, 1)
TIMES: dict[str, Any] = {
    "int": (pl.Int64, 3), "uint64": (pl.UInt64, 3), "int8": (pl.Int8, 3), "float": (pl.Float32, 2.5),
    "datetime": (pl.Datetime("ms"), "3ms"), "duration": (pl.Duration("us"), dt.timedelta(microseconds=3)),
    "date": (pl.Date, "3d"),
}


def frame(time: str, value: str) -> pl.DataFrame:
    """A frame with times of one kind, which repeat."""
    return pl.DataFrame({
        "t": pl.Series(np.sort(chance.integers(0, 40, N))).cast(TIMES[time][0]), "k": chance.integers(0, 3, N),
        "word": chance.choice(["a", "b", None], N).tolist(), "v": np.arange(N), value: np.arange(N) * 10})


FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "on": (None, {"on": "t"}), "two names": (lambda f: f.rename({"t": "u"}), {"left_on": "t", "right_on": "u"}),
    "an expression": (None, {"on": pl.col("t").cast(pl.Int64)}), "a column": (None, {"on": pl.col("t")}),
    "keys stay": (None, {"on": "t", "coalesce": False}), "a suffix": (None, {"on": "t", "suffix": "_of_s"}),
}
EQUAL: dict[str, dict[str, Any]] = {
    "nothing": {}, "a number": {"by": "k"}, "text with NULL": {"by": ["word"]}, "two": {"by": ("k", "word")},
    "two names": {"by_left": "k", "by_right": "k"}, "other names": {"by_left": "v", "by_right": "k"},
}


@pytest.mark.parametrize(("form", "equal"), [
    (form, equal) if form == "on" or equal == "two names" else at_length(form, equal)
    for form in FORMS for equal in EQUAL])
def test_as_polars_has_it(form: str, equal: str) -> None:
    of_right, by_time = FORMS[form]
    time = str(chance.choice([*TIMES]))
    for strategy in ("backward", "forward", "nearest"):
        left, right = frame(time, "x"), frame(time, "y")
        right = right if of_right is None else of_right(right)
        for exact in (True, False):
            for tolerance in (None, TIMES[time][1]):
                how = {**by_time, **EQUAL[equal], "strategy": strategy, "allow_exact_matches": exact,
                       "tolerance": tolerance}
                if form == "an expression" and tolerance is not None:
                    how["tolerance"] = 3
                with warnings.catch_warnings(action="ignore"):
                    want = left.join_asof(right, check_sortedness=False, **how)
                assert_frame_equal(left.splitjoin.join_asof(right, **how), want)


@pytest.mark.parametrize("time", TIMES)
def test_times_of_every_kind(time: str) -> None:
    left, right = frame(time, "x").lazy(), frame(time, "y").lazy()
    for strategy in ("backward", "forward", "nearest"):
        found = left.splitjoin.join_asof(right, on="t", strategy=strategy, tolerance=TIMES[time][1])
        assert isinstance(found, pl.LazyFrame)
        want = left.join_asof(right, on="t", strategy=strategy, tolerance=TIMES[time][1])
        assert_frame_equal(found.collect(), want.collect())


def test_several_frames_in_one_call() -> None:
    left, one, two = frame("int", "x"), frame("int", "y"), frame("int", "z")
    found = left.splitjoin.join_asof([one, two.lazy()], on="t", by="k", suffix=["_one", "_two"], strategy="nearest")
    with warnings.catch_warnings(action="ignore"):
        want = left.join_asof(one, on="t", by="k", suffix="_one", strategy="nearest").join_asof(
            two, on="t", by="k", suffix="_two", strategy="nearest")
    assert_frame_equal(found, want)


def test_a_condition_besides() -> None:
    trades = pl.DataFrame({"t": [3, 5, 9], "qty": [5, 50, 1]})
    quotes = pl.DataFrame({"t": [1, 2, 4, 8], "size": [9, 2, 60, 0]})
    found = trades.splitjoin.join_asof(quotes, on="t", condition="s.size >= r.qty")
    assert found["size"].to_list() == [9, 60, 60]
    assert trades.splitjoin.join_asof(quotes, on="t", strategy="nearest", tolerance=1,
                                      ties="backward")["size"].to_list() == [2, 60, 0]
    wide = quotes.with_columns(big=pl.Series([2**100] * 4, dtype=pl.Int128))
    found = trades.splitjoin.join_asof(wide, on="t", condition="s.big > r.qty")
    assert found["big"].to_list() == [2**100] * 3


FRAME = pl.DataFrame({"t": [1, 2], "k": [1, 1], "v": [1, 2]})
WRONG: list[tuple[Any, dict[str, Any], type[SplitJoinError], str]] = [
    (FRAME, {}, InputError, "needs a column by which rows are near: give on, or left_on and right_on"),
    (FRAME, {"on": "t", "left_on": "t"}, InputError, "give on, or left_on and right_on, not both"),
    (FRAME, {"left_on": "t"}, InputError, "left_on and right_on belong together, but right_on is missing"),
    (FRAME, {"on": "q"}, SchemaError, "the left frame has no column 'q'"),
    (FRAME, {"on": 4}, InputError, "left_on must be the name of a column or an expression of Polars, not int"),
    (FRAME, {"on": pl.col("t").sum()}, InputError, "left_on must give one value for each of the 2 rows"),
    (FRAME, {"on": "t", "by": pl.col("k")}, InputError, "by must name columns, not"),
    (FRAME, {"on": "t", "by_left": ["k", "v"], "by_right": "k"}, InputError, "as many columns, not 2 and 1"),
    (FRAME, {"on": "t", "suffix": ["_a", "_b"]}, InputError, "suffix must be a text, or one for each of the 1 frames"),
    (FRAME, {"on": "t", "suffix": ""}, InputError, "would have two columns 'k'; give a suffix"),
    (FRAME, {"on": "t", "tolerance": "1mo"}, SplitJoinError, "1mo"),
    (FRAME, {"on": "t", "strategy": "last"}, InputError, "direction must be 'backward', 'forward' or 'nearest'"),
    ([], {"on": "t"}, InputError, "the list of them is empty"),
    (FRAME, {"left_on": pl.lit(pl.Series([2**100, 2], dtype=pl.Int128)), "right_on": "t"}, InputError,
     "the time column of the left frame holds numbers that do not fit 64 bits"),
    (FRAME.with_columns(v=pl.Series([object()] * 2, dtype=pl.Object)), {"on": "t", "condition": "s.k = 1"}, InputError,
     "'v' holds Python objects; drop it, or convert its values"),
    ({"t": [1]}, {"on": "t"}, InputError, "the right frame must be a DataFrame or LazyFrame of Polars, not dict"),
]


@pytest.mark.parametrize(("right", "how", "error", "message"), WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_refused(right: Any, how: dict[str, Any], error: type[SplitJoinError], message: str) -> None:
    with pytest.raises(error, match=message):
        FRAME.splitjoin.join_asof(right, **how)


def test_keys_of_128_bits() -> None:
    left = pl.DataFrame({"t": [5, 2**64 - 1], "k": [-2**100, 2**100]}, {"t": pl.UInt128, "k": pl.Int128})
    right = pl.DataFrame({"t": [4, 6], "k": [-2**100, 2**100], "v": [1, 2]},
                         {"t": pl.Int64, "k": pl.Int128, "v": pl.Int8})
    found = left.splitjoin.join_asof(right, on="t", by="k")
    assert_frame_equal(found, left.with_columns(v=pl.Series([1, 2], dtype=pl.Int8)))
