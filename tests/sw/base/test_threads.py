"""Threads of product code, as the operating system has them; `tests/simulation` schedules them."""

from __future__ import annotations

from splitjoin.base import threads


def test_a_thread_does_not_keep_the_process_from_ending() -> None:
    """As that of a session which nobody closes."""
    found = list[int]()
    thread = threads.thread(found.append, (7,), name="a thread")
    assert thread.daemon
    thread.start()
    thread.join()
    assert found == [7]
