"""One thread or several, by the clock of batches (`measured_threads`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from splitjoin.engines.cpu.session import MeasuredThreads


def sizes(measured: MeasuredThreads, seconds: Callable[[int], float], batches: int, arrivals: int = 8192) -> list[int]:
    """The numbers of threads of so many batches, which take ``seconds`` with each number."""
    found = []
    for _ in range(batches):
        found.append(measured.choose(4, arrivals))
        measured.note(seconds(found[-1]))
    return found


@pytest.mark.parametrize(("several", "chosen"), [(0.5, 4), (0.94, 4), (0.96, 1), (1.5, 1)])
def test_the_faster_number_goes_on_and_is_compared_again(several: float, chosen: int) -> None:
    measured = MeasuredThreads()
    compared = [4, 4, 4, 1, 1, 1]
    found = sizes(measured, lambda size: several if size > 1 else 1.0, 6 + 64 + 6 + 128 + 6)
    assert found == [*compared, *[chosen] * 64, *compared, *[chosen] * 128, *compared]
    assert measured.is_one == (chosen == 1)


def test_the_first_batch_of_a_turn_does_not_count() -> None:
    """The caches of the other threads are still in its way."""
    measured, before = MeasuredThreads(), [0]

    def seconds(size: int) -> float:
        first, before[0] = size != before[0], size
        return 100.0 if first and size == 1 else size / 8 if first else 2.0 if size > 1 else 1.0

    assert sizes(measured, seconds, 7)[-1] == 1


def test_a_later_comparison_may_end_otherwise() -> None:
    measured = MeasuredThreads()
    assert sizes(measured, lambda size: float(size), 70)[-1] == 1
    assert sizes(measured, lambda size: 1 / size, 7)[-1] == 4


def test_sizes_of_batches_are_compared_apart() -> None:
    measured = MeasuredThreads()
    assert sizes(measured, lambda size: float(size), 7)[-1] == 1
    assert sizes(measured, lambda size: 1 / size, 7, arrivals=65536)[-1] == 4
    assert measured.choose(4, 9000) == 1  # about as many as 8,192


def test_an_estimate_that_fluctuates_is_compared_too() -> None:
    measured, found = MeasuredThreads(), []
    for batch in range(40):
        found.append(measured.choose(3 + batch % 2, 8192))
        measured.note(float(found[-1]))
    assert found[12:] == [1] * 28
