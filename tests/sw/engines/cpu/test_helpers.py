"""Helpers: results in the order of the items, and all work ended before an exception is raised."""

from __future__ import annotations

import gc
import threading
from threading import Event

import pytest

from splitjoin.engines.cpu.helpers import Helper, concurrently


def test_results_are_in_the_order_of_the_items() -> None:
    helpers = [Helper("test") for _ in range(3)]
    names = concurrently(helpers, lambda n: (n, threading.current_thread()), range(4))
    assert [n for n, _ in names] == [0, 1, 2, 3]
    assert len({thread for _, thread in names}) == 4
    assert names[0][1] is threading.current_thread()
    assert concurrently(helpers, lambda n: 2 * n, [7]) == [14]  # as few as there are


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_comes_after_all_have_ended(failing: int) -> None:
    helpers, ended, may_end = [Helper("test") for _ in range(2)], [], Event()

    def work(n: int) -> int:
        if n == failing:
            may_end.set()
            raise KeyError(n)
        assert may_end.wait(60)
        ended.append(n)
        return n

    with pytest.raises(KeyError):
        concurrently(helpers, work, range(3))
    assert sorted(ended) == [n for n in range(3) if n != failing]
    assert concurrently(helpers, lambda n: n + 1, range(3)) == [1, 2, 3]  # they go on


def test_threads_end_with_their_helpers() -> None:
    kept, dropped, unused = (Helper("test") for _ in range(3))
    threads = concurrently([kept, dropped], lambda n: threading.current_thread(), range(3))[1:]
    kept.close()
    assert not threads[0].is_alive()
    unused.close()  # has no thread
    del dropped
    gc.collect()
    threads[1].join(60)
    assert not threads[1].is_alive()
