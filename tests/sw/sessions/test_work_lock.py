"""`WorkLock`: who holds it works for those that did not wait."""

from __future__ import annotations

from splitjoin.sessions.work_lock import WorkLock

from ...support.sessions import in_thread, joined


def test_what_is_owed_while_others_work_is_done_too() -> None:
    works = list[bool]()

    def poll() -> None:
        thread, _, result = in_thread(lambda: lock.try_acquire(wait=False))
        joined(thread)
        assert result == [False]

    def work() -> None:
        lock.is_owed = False
        works.append(True)
        if len(works) == 1:
            poll()

    lock = WorkLock(work)
    with lock:
        poll()
    assert len(works) == 2
    assert not lock.is_owed
