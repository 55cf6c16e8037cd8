"""The watermark: what both streams' event times, silences and Spark's policy make of it."""

from typing import Any

import pytest

from splitjoin.spark.streaming.watermark import Progress, WatermarkRule


def watermarks(rule: WatermarkRule, *batches: tuple[int, int | None, int | None]) -> list[int | None]:
    """The watermark after each of the ``batches``: the time, and the greatest event time of R and of S in it."""
    progress, found = Progress(), []
    for now, r, s in batches:
        progress = rule.after(progress, {"r": r, "s": s}, now)
        found.append(progress.watermark)
    return found


DELAYS: dict[Any, int | None] = {"r": 2, "s": 5}


def test_the_lesser_of_both_streams() -> None:
    assert watermarks(WatermarkRule(DELAYS), (0, 10, None), (1, 20, 9), (2, None, 30), (3, 15, 12), (4, 40, None)) == [
        None, 4, 18, 18, 25]


def test_the_greater_of_both_streams() -> None:
    assert watermarks(WatermarkRule(DELAYS, policy="max"), (0, 10, None), (1, None, 9), (2, None, 30), (3, 15, 12)) == [
        8, 8, 25, 25]


def test_a_row_at_the_watermark_is_late_as_in_spark() -> None:
    assert watermarks(WatermarkRule(DELAYS, beyond=True), (0, 10, None), (1, 20, 9)) == [None, 5]


def test_each_stream_by_itself() -> None:
    rule, progress = WatermarkRule(DELAYS, {"r": None, "s": 30}, policy="source"), Progress()
    found = []
    for now, r, s in ((0, 10, None), (1, 20, 9), (2, 12, 30), (3, 40, None), (33, 50, None), (34, 51, 20)):
        progress = rule.after(progress, {"r": r, "s": s}, now)
        found.append((progress.watermark, progress.limits["r"], progress.limits["s"]))
    # From 33 on S is idle, and late by R, until it speaks.
    assert found == [(None, 8, None), (4, 18, 4), (18, 18, 25), (25, 38, 25), (48, 48, 48), (48, 49, 48)]


def test_one_stream_alone() -> None:
    rule = WatermarkRule({"r": 2, "s": None})
    assert watermarks(rule, (0, None, 50), (1, 10, None), (2, None, 60), (3, 12, 0)) == [None, 8, 8, 10]


@pytest.mark.parametrize(("batches", "expected"), [
    # S is silent from 100 on: after 30 ms it holds nothing back, until it speaks.
    ([(90, 10, 10), (100, 20, None), (129, 30, None), (130, 40, None), (140, 50, 12), (150, 60, None), (180, 70, None)],
     [5, 5, 5, 38, 38, 38, 68]),
    # It never had a tuple.
    ([(100, 20, None), (129, 30, None), (130, 40, None)], [None, None, 38]),
    # While the query was stopped, nothing was silent; nor does a clock that goes back do harm.
    ([(100, 20, 20), (10**6, 30, None), (10**6 - 5, 31, None), (10**6 + 30, 40, None)], [15, 15, 15, 38]),
    # All are silent.
    ([(100, 20, 20), (200, None, None), (300, None, None)], [15, 15, 15]),
])
def test_an_idle_stream_does_not_hold_the_watermark_back(batches: list[Any], expected: list[int | None]) -> None:
    assert watermarks(WatermarkRule(DELAYS, {"r": 30, "s": 30}), *batches) == expected
    waiting = watermarks(WatermarkRule(DELAYS, {"r": 30, "s": None}), *batches)
    assert waiting == watermarks(WatermarkRule(DELAYS), *batches)


def test_another_rule_goes_on_from_where_the_watermark_is() -> None:
    before = WatermarkRule(DELAYS).after(Progress(), {"r": 30, "s": 40}, 0)
    assert before.watermark == 28
    later = WatermarkRule({"r": 20, "s": 20})
    assert later.after(before, {"r": 41, "s": 41}, 0).watermark == 28
    assert later.after(before, {"r": 49, "s": 49}, 0).watermark == 29
