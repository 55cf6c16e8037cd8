"""`merge_asof` of DataFrames of pandas, beside pandas' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import splitjoin.frames  # noqa: F401  # which gives frames their methods
from splitjoin import InputError, SchemaError, SplitJoinError

from ...support.sampling import at_length

chance = np.random.default_rng(38)
N = 24
DAY = pd.Timestamp("2024-03-01")
TIMES: dict[str, Any] = {
    "int": (lambda n: n, 3), "uint8": (lambda n: n.astype("uint8"), 3), "float": (lambda n: n / 4, 0.6),
    "timestamp": (lambda n: DAY + pd.to_timedelta(n, "s"), pd.Timedelta("3s")),
    "zone": (lambda n: (DAY + pd.to_timedelta(n, "s")).tz_localize("Europe/Berlin"), pd.Timedelta("3s")),
    "milliseconds": (lambda n: (DAY + pd.to_timedelta(n, "s")).as_unit("ms"), pd.Timedelta("3s")),
    "timedelta": (lambda n: pd.to_timedelta(n, "s"), pd.Timedelta("3s")),
    "Int64": (lambda n: pd.array(n, "Int64"), 3), "arrow": (lambda n: pd.array(n, "int64[pyarrow]"), 3),
}


def keys() -> dict[str, Any]:
    """Columns by which rows may have to be equal, some of them with missing values."""
    return {"k": chance.integers(0, 3, N), "word": chance.choice(["a", "b", None], N),
            "part": chance.choice([1.0, 2.0, np.nan], N), "sort": pd.Categorical(chance.choice(["x", "y"], N))}


def frames(time: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two frames with times of one kind, which repeat."""
    made = TIMES[time][0]
    left = pd.DataFrame({"t": made(np.sort(chance.integers(0, 40, N))), **keys(), "v": np.arange(N)})
    right = pd.DataFrame({"t": made(np.sort(chance.integers(0, 40, N))), **keys(), "v": np.arange(N) / 2,
                          "flag": chance.random(N) < .5, "note": chance.choice(["m", "n"], N)})
    return left, right


#: What the frames are made of, and how the call names it.
FORMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "on": (None, None, {"on": "t"}),
    "two names": (None, lambda f: f.rename(columns={"t": "u"}), {"left_on": "t", "right_on": "u"}),
    "two indexes": (lambda f: f.set_index("t"), lambda f: f.set_index("t"), {"left_index": True, "right_index": True}),
    "an index on the left": (lambda f: f.set_index("t"), None, {"left_index": True, "right_on": "t"}),
    "an index on the right": (None, lambda f: f.set_index("t"), {"left_on": "t", "right_index": True}),
    "levels": (lambda f: f.set_index("t"), lambda f: f.set_index(["t", "note"]), {"left_on": "t", "right_on": "t"}),
    "no key remains": (None, lambda f: f[["t", "k", "word", "part", "sort"]], {"on": "t"}),
    "labels": (lambda f: f.set_index(np.arange(N) * 7), None, {"on": "t"}),
}
EQUAL: dict[str, dict[str, Any]] = {
    "nothing": {}, "a number": {"by": "k"}, "text with NULL": {"by": "word"}, "floats with NaN": {"by": ["part"]},
    "categories": {"by": "sort"}, "two": {"by": ["k", "word"]},
    "two names": {"left_by": ["k", "part"], "right_by": ["k", "part"]},
}


@pytest.mark.parametrize(("form", "equal"), [
    (form, equal) if form == "on" or equal == "two names" else at_length(form, equal)
    for form in FORMS for equal in EQUAL])
def test_as_pandas_has_it(form: str, equal: str) -> None:
    of_left, of_right, by_time = FORMS[form]
    time = str(chance.choice([*TIMES]))
    for direction in ("backward", "forward", "nearest"):
        left, right = frames(time)
        left, right = left if of_left is None else of_left(left), right if of_right is None else of_right(right)
        for exact in (True, False):
            for tolerance in (None, TIMES[time][1]):
                how = {**by_time, **EQUAL[equal], "direction": direction, "allow_exact_matches": exact,
                       "tolerance": tolerance}
                want = pd.merge_asof(left, right, **how)
                found = left.splitjoin.merge_asof(right, **how)
                if form == "levels":  # pandas puts a level behind some other columns, which depends on by
                    found = found[want.columns]
                assert_frame_equal(found, want)


@pytest.mark.parametrize("time", TIMES)
def test_times_of_every_kind(time: str) -> None:
    left, right = frames(time)
    for direction in ("backward", "forward", "nearest"):
        how: dict[str, Any] = {"on": "t", "direction": direction, "tolerance": TIMES[time][1]}
        assert_frame_equal(left.splitjoin.merge_asof(right, **how), pd.merge_asof(left, right, **how))


def test_what_pandas_refuses() -> None:
    left = pd.DataFrame({"t": [9.0, np.nan, 1.0], "v": [1, 2, 3]}, index=[5, 3, 4])
    right = pd.DataFrame({"t": [np.nan, 8.0, 0.5], "a": [7, 8, 9]})
    found = left.splitjoin.merge_asof(right, on="t")  # not sorted, and without a time
    assert found.to_dict("list") == {"t": [9.0, pytest.approx(np.nan, nan_ok=True), 1.0], "v": [1, 2, 3],
                                     "a": [8.0, pytest.approx(np.nan, nan_ok=True), 9.0]}
    words = pd.DataFrame({"t": ["b", "d"]}).splitjoin.merge_asof(pd.DataFrame({"t": ["a", "c"], "x": [1, 2]}), on="t")
    assert words["x"].tolist() == [1, 2]
    series = left.splitjoin.merge_asof(right["t"], left_on="t", right_on="t")  # a Series, which pandas takes, too
    assert series["t"].equals(left["t"].reset_index(drop=True))
    values = left.splitjoin.merge_asof(right, left_on=np.array([8.0, 0.0, 1.0]), right_on="t")
    assert values["a"].fillna(0).tolist() == [8, 0, 9]
    assert [*values.columns] == ["t_x", "v", "t_y", "a"]


def test_a_condition_besides() -> None:
    trades = pd.DataFrame({"t": [3, 5, 9], "sym": ["a", "b", "a"], "qty": [5, 50, 1]})
    quotes = pd.DataFrame({"t": [1, 2, 4, 5], "sym": ["a", "a", "b", "b"], "size": [9, 2, 60, 40],
                           "odd": [{1}, "x", 2, None]})  # what Arrow does not take
    found = trades.splitjoin.merge_asof(quotes.drop(columns="odd"), on="t", by="sym", condition="s.size >= r.qty")
    assert found["size"].tolist() == [9, 60, 2]
    assert trades.splitjoin.merge_asof(quotes, on="t", by="sym")["odd"].tolist() == ["x", None, "x"]
    last = trades.splitjoin.merge_asof(quotes, on="t", direction="nearest", ties="last")
    assert last["size"].tolist() == [60, 40, 40]


def test_several_frames_in_one_call() -> None:
    left, one = frames("timestamp")
    two = frames("timestamp")[1].drop(columns="flag")
    how: dict[str, Any] = {"on": "t", "by": "k", "direction": "nearest"}
    found = left.splitjoin.merge_asof([one, two], suffixes=["", "_one", "_two"], **how)
    both = left
    for frame, suffix in ((one, "_one"), (two, "_two")):
        both = pd.merge_asof(both, frame.rename(columns={
            name: name + suffix for name in frame.columns if name not in ("t", "k", "flag")}), **how)
    assert_frame_equal(found, both)
    assert [*left.splitjoin.merge_asof([one[["t", "v"]], two[["t", "v"]]], on="t").columns][-3:] == ["v", "v_1", "v_2"]


FRAME = pd.DataFrame({"t": [1, 2], "k": [1, 1], "v": [1, 2]})
WRONG: list[tuple[dict[str, Any], type[SplitJoinError], str]] = [
    ({}, InputError, "the left frame needs one column .* give on, left_on or left_index=True, not none of them"),
    ({"on": "t", "left_index": True}, InputError, "not on and left_index"),
    ({"left_on": "t"}, InputError, "the right frame needs one column"),
    ({"on": ["t", "k"]}, InputError, "on must be one column, by which rows are near, .* must be equal in by"),
    ({"on": "tt"}, SchemaError, r"the left frame has no column 'tt' \(did you mean 't'\?\); it has 't', 'k', 'v'"),
    ({"on": "t", "by": "q"}, SchemaError, "the left frame has no column 'q'"),
    ({"on": "t", "by": "k", "left_by": "k"}, InputError, "give by, or left_by and right_by, not both"),
    ({"on": "t", "left_by": "k"}, InputError, "left_by and right_by belong together, but right_by is missing"),
    ({"on": "t", "left_by": ["k"], "right_by": ["k", "v"]}, InputError, "as many columns, not 1 and 2"),
    ({"on": "t", "by": 3.5}, SchemaError, "the left frame has no column 3.5"),
    ({"on": "t", "suffixes": ("_x",)}, InputError, "suffixes must be 2 texts, one for each frame"),
    ({"on": "t", "suffixes": (None, None)}, InputError, "would have two columns 'k'; give suffixes"),
    ({"on": "t", "allow_exact_matches": "no"}, InputError, "allow_exact must be True or False"),
    ({"on": "t", "direction": "up"}, InputError, "direction must be 'backward', 'forward' or 'nearest', not 'up'"),
    ({"on": "t", "tolerance": -1}, SplitJoinError, "tolerance must be a number from 0 on"),
    ({"on": "t", "condition": True}, InputError, "condition must be an SQL text over r and s, not bool"),
    ({"on": "t", "tolerance": "soon"}, SplitJoinError, "tolerance 'soon' needs a whole number, not 'soon'"),
    ({"left_on": np.array(["a", "b"]), "right_on": "t"}, SchemaError, "the left frame is string and that of the"),
    ({"left_on": [1], "right_on": "t"}, SchemaError, "the left frame has no column 1"),
    ({"left_on": np.array([1]), "right_on": "t"}, InputError, "left_on must have a value for each of the 2 rows"),
]


@pytest.mark.parametrize(("how", "error", "message"), WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_refused(how: dict[str, Any], error: type[SplitJoinError], message: str) -> None:
    with pytest.raises(error, match=message):
        FRAME.splitjoin.merge_asof(FRAME, **how)


def test_frames_that_are_none() -> None:
    twice = pd.DataFrame([[1, 2]], columns=["t", "t"])
    levels = FRAME.set_index(["t", "k"])
    mixed = pd.DataFrame({"t": [1, 2], "k": [1, "a"]})
    for right, how, message in (
            ([], {"on": "t"}, "the list of them is empty"),
            ({"t": [1]}, {"on": "t"}, "a DataFrame of pandas, not dict"),
            (twice, {"on": "t"}, "the right frame must have a name for each column, but 't' occurs twice"),
            (levels, {"left_on": "t", "right_index": True}, "right frame must have one level to be a time"),
            (mixed, {"on": "t", "by": "k"}, "the key 'k' must hold values of one type")):
        with pytest.raises(InputError, match=message):
            FRAME.splitjoin.merge_asof(right, **how)
