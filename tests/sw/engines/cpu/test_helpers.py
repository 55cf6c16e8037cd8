"""Teams: results in the order of the items, and all work ended before an exception is raised."""

from __future__ import annotations

import gc
import threading
import weakref
from threading import Barrier, Event

import pytest

from splitjoin.engines.compiled.helpers import CALLED, DISMISSED, LEAVING, Team


def test_results_are_in_the_order_of_the_items() -> None:
    team, all_there = Team(4, awake=4), Barrier(4)

    def work(n: int) -> tuple[int, threading.Thread]:
        all_there.wait(60)  # so each thread has one
        return n, threading.current_thread()

    found = team.map(work, range(4))
    assert [n for n, _ in found] == [0, 1, 2, 3]
    assert len({thread for _, thread in found}) == 4
    assert threading.current_thread() in {thread for _, thread in found}
    assert team.map(lambda n: 2 * n, range(1000)) == list(range(0, 2000, 2))
    assert team.map(lambda n: 2 * n, [7]) == [14]
    team.size = 1
    assert {thread for _, thread in team.map(lambda n: (n, threading.current_thread()), range(9))} == {
        threading.current_thread()}
    team.close()


def test_only_threads_that_are_awake_take_items() -> None:
    team = Team(4, awake=2)
    found = {thread for _ in range(20) for thread in team.map(lambda _: threading.current_thread(), range(50))}
    assert len(team._helpers) == 1
    assert threading.current_thread() in found
    team.close()
    alone = Team(4, awake=1)
    assert set(alone.map(lambda _: threading.current_thread(), range(50))) == {threading.current_thread()}
    assert not alone._helpers


def test_helpers_look_for_compiled_work_again_where_it_follows() -> None:
    """Of three, one leaves the board for an item, and comes back."""
    team, all_there = Team(4, awake=4), Barrier(2)
    team.is_patient = True  # whatever this machine has
    board = team.summon()
    for _ in range(20):
        assert team.map(lambda n: all_there.wait(60) >= 0 and n, range(2), stay=True) == [0, 1]
        assert (board[DISMISSED], board[LEAVING]) == (0, 0)
        assert board[CALLED] <= 4  # fewer where helpers have not found work for long
    assert len(team._helpers) == 3
    team.map(lambda n: all_there.wait(60), range(2))
    assert board[DISMISSED] == 1
    team.close()
    assert board[CALLED] == 0


def test_numbers_are_those_of_threads() -> None:
    team, all_there, found = Team(3), Barrier(3), []

    def work(number: int) -> None:
        all_there.wait(60)
        found.append((number, threading.current_thread()))

    for _ in range(3):
        team.run(work)
    assert sorted(n for n, _ in found) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert {thread for n, thread in found if n == 0} == {threading.current_thread()}
    team.close()


def test_helpers_that_are_late_do_not_begin() -> None:
    """The caller does not wait for a thread that is still busy elsewhere."""
    team, busy, may_end = Team(2), Event(), Event()
    team.run(lambda number: None)
    team._tasks.put((lambda _: (busy.set(), may_end.wait(60)), 1, False))  # what the helper does meanwhile
    assert busy.wait(60)
    begun: list[int] = []
    team.run(begun.append)
    assert begun == [0]
    may_end.set()
    team.close()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_comes_after_all_have_ended(failing: int) -> None:
    team, all_there, ended, may_end = Team(3), Barrier(3), [], Event()

    def work(n: int) -> None:
        all_there.wait(60)
        if n == failing:
            may_end.set()
            raise KeyError(n)
        assert may_end.wait(60)
        ended.append(n)

    with pytest.raises(KeyError):
        team.run(work)
    assert sorted(ended) == [n for n in range(3) if n != failing]
    assert team.map(lambda n: n + 1, range(3)) == [1, 2, 3]  # they go on
    team.close()


def test_after_an_error_nothing_begins() -> None:
    team, begun = Team(3), []

    def work(n: int) -> None:
        begun.append(n)
        raise KeyError(n)

    with pytest.raises(KeyError):
        team.map(work, range(1000))
    assert len(begun) <= 3
    team.close()


@pytest.mark.usefixtures("own_garbage")
def test_threads_end_with_their_team() -> None:
    before = threading.active_count()
    kept, dropped, unused = Team(3), Team(3), Team(3)
    for team in (kept, dropped):
        team.run(lambda _: None)
    assert threading.active_count() == before + 4
    kept.close()
    unused.close()  # has no thread
    helpers, gone = list(dropped._helpers), weakref.ref(dropped)
    del dropped, team
    gc.collect()
    assert gone() is None
    for thread in helpers:
        thread.join(60)
        assert not thread.is_alive()
    assert threading.active_count() == before
