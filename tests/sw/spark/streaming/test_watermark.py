"""The watermark: what both streams' event times, silences and Spark's policy make of it."""

from typing import Any

import pytest

from splitjoin.spark.streaming.watermark import BatchTimes, Progress, SparkWatermarks, WatermarkRule


def watermarks(rule: WatermarkRule, *batches: tuple[int, int | None, int | None]) -> list[int | None]:
    """The watermark after each of the ``batches``: the time, and the greatest event time of R and of S in it."""
    progress, found = Progress(), []
    for now, r, s in batches:
        progress = rule.after(progress, BatchTimes({"r": r, "s": s}, now))
        found.append(progress.watermark)
    return found


DELAYS: dict[Any, int | None] = {"r": 2, "s": 5}


def test_the_lesser_of_both_streams() -> None:
    assert watermarks(WatermarkRule(DELAYS), (0, 10, None), (1, 20, 9), (2, None, 30), (3, 15, 12), (4, 40, None)) == [
        None, 4, 18, 18, 25]


def test_the_greater_of_both_streams() -> None:
    assert watermarks(WatermarkRule(DELAYS, policy="max"), (0, 10, None), (1, None, 9), (2, None, 30), (3, 15, 12)) == [
        8, 8, 25, 25]


def progress_of(rule: WatermarkRule,
                *batches: tuple[str, int | None, int | None]) -> list[tuple[int | None, int | None]]:
    """The first event times of each micro-batch that are not late and that are not evicted, of R: its run, and the
    greatest times of R and of S in it.
    """
    progress, found = Progress(), []
    for run, r, s in batches:
        progress = rule.after(progress, BatchTimes({"r": r, "s": s}, 0, run))
        found.append((progress.limits["r"], progress.watermark))
    return found


def test_a_micro_batch_moves_the_watermark_of_the_next_one_as_in_spark() -> None:
    """A tuple at the watermark is late too; state goes by the watermark, tuples are late by the one before it."""
    batches = ("a", 10, None), ("a", 20, 9), ("a", 30, 30), ("a", None, None), ("a", None, None)
    assert progress_of(WatermarkRule(DELAYS, beyond=True), *batches) == [
        (None, None), (None, None), (None, 5), (5, 26), (26, 26)]
    assert progress_of(WatermarkRule(DELAYS, beyond=True, lags=False), *batches) == [
        (None, None), (None, None), (5, 5), (26, 26), (26, 26)]


def test_spark_counts_milliseconds_from_1970_and_forgets_what_came_before_a_restart() -> None:
    rule = WatermarkRule({"r": 2000, "s": 0}, beyond=True, spark=1000)
    assert progress_of(rule, ("a", -5000, -900), ("a", 4999, 9000), ("a", 5000, None)) == [(1, 1), (1, 1), (1, 2001)]
    # The watermark of the next micro-batch is kept. Then S, which has had no tuple, holds it back.
    assert progress_of(rule, ("a", 4999, 9000), ("b", 90000, None), ("b", None, None), ("b", None, 7000),
                       ("b", None, None)) == [(1, 1), (1, 2001), (2001, 2001), (2001, 2001), (2001, 7001)]
    assert progress_of(WatermarkRule({"r": 0, "s": 0}, policy="max", beyond=True, spark=1000), ("a", 4000, 9000),
                       ("b", 5000, None), ("b", None, None)) == [(1, 1), (1, 9001), (9001, 9001)]


def test_watermarks_of_spark_itself() -> None:
    progress = SparkWatermarks().after(Progress(), BatchTimes({"r": None, "s": None}, watermarks=(3, 7)))
    assert (progress.limits["s"], progress.watermark) == (3001, 7001)


def test_each_stream_by_itself() -> None:
    rule, progress = WatermarkRule(DELAYS, {"r": None, "s": 30}, policy="source"), Progress()
    found = []
    for now, r, s in ((0, 10, None), (1, 20, 9), (2, 12, 30), (3, 40, None), (33, 50, None), (34, 51, 20)):
        progress = rule.after(progress, BatchTimes({"r": r, "s": s}, now))
        found.append((progress.watermark, progress.limits["r"], progress.limits["s"]))
    # From 33 on S is idle, and its next tuples are late by R.
    assert found == [(None, None, None), (4, 8, None), (18, 18, 4), (25, 18, 25), (48, 38, 25), (48, 48, 48)]


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
    before = WatermarkRule(DELAYS).after(Progress(), BatchTimes({"r": 30, "s": 40}))
    assert before.watermark == 28
    later = WatermarkRule({"r": 20, "s": 20})
    assert later.after(before, BatchTimes({"r": 41, "s": 41})).watermark == 28
    assert later.after(before, BatchTimes({"r": 49, "s": 49})).watermark == 29
