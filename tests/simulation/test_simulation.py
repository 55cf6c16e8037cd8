"""Short runs of `python -m tests.simulation`, and faults that they must find."""

from __future__ import annotations

import ast
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from splitjoin.base.threads import monotonic
from splitjoin.engines.compiled.helpers import Team
from splitjoin.link.daemon.client import DaemonSession
from splitjoin.link.daemon.leases import Leases
from splitjoin.link.daemon.server import Connection
from splitjoin.link.endpoint import HostEndpoint
from splitjoin.link.transport import LinkTransport
from splitjoin.server import JoinService
from splitjoin.server.flight import FlightServer
from splitjoin.sessions.epochs import EpochWriter
from splitjoin.sessions.feeding import FeedingSession
from splitjoin.sessions.gate.readers import ReadySequence
from splitjoin.sessions.results import ResultQueue
from splitjoin.sessions.shared.chosen_pairs import ChosenPairs
from splitjoin.sessions.shared.query import SharedQuery
from splitjoin.sessions.work_lock import WorkLock

from ..support.planting import faulty
from ..support.sampling import at_length, examples
from ..support.scheduler import ROOT, Failed, Scheduler
from .schedules import SUBJECTS, run
from .sessions import together

#: The schedules within which a planted fault must be found.
_ENOUGH, _MANY = 100, 2000
#: The schedules of subjects in which locks that are not taken show later than elsewhere.
_SCHEDULES = {"common": 140, "ended": 100}
#: What a lock becomes that is left out.
_NO_LOCK = "__import__('contextlib').nullcontext()"


@pytest.mark.parametrize("name", SUBJECTS)
def test_threads_do_what_they_should_in_any_order(name: str) -> None:
    for failure in run(name, range(examples(_SCHEDULES.get(name, 40), 300))):
        pytest.fail(str(failure))


@pytest.mark.parametrize(("name", "seed"), [
    # Another client's tuples were committed between the two numbers of a position.
    ("flight", 1252)])
def test_schedules_that_failed_once(name: str, seed: int) -> None:
    assert not list(run(name, [seed]))


@pytest.mark.usefixtures("own_garbage")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a schedule that fails leaves its files as they are
@pytest.mark.parametrize(("name", "part", "function", "old", "new", "seeds"), [
    # Locks that are not taken.
    ("service", JoinService, "tables", "self._writing", _NO_LOCK, _ENOUGH),
    ("common", ChosenPairs, "work", "self._scan.lock", _NO_LOCK, _ENOUGH),
    at_length("common", ChosenPairs, "window", "self._scan.lock", _NO_LOCK, _MANY),
    ("ended", ChosenPairs, "finish", "self._scan.lock", _NO_LOCK, _ENOUGH),
    ("shared", ReadySequence, "read", "self._changed", _NO_LOCK, _ENOUGH),
    ("shared", FeedingSession, "_push", "self._room(side, index)", _NO_LOCK, _ENOUGH),
    # Threads that are not woken.
    ("session", WorkLock, "release", "self._condition.acquire(blocking=False)", "False", _ENOUGH),
    ("session", ResultQueue, "put", "self._changed.notify_all()", "pass", _ENOUGH),
    ("session", ResultQueue, "wait", "self.has_news", "False", _ENOUGH),
    ("shared", ReadySequence, "collect", "self._changed.notify_all()", "pass", _ENOUGH),
    at_length("shared", SharedQuery, "_waking", "self._pipeline.gate.wake()", "pass", _MANY),
    # Two places in the streams where there must be one.
    ("common", ChosenPairs, "window", "self._own_row_ids(place)", "self._own_place()", _ENOUGH),
    ("service", JoinService, "tables", "self._streams.found()",
     "{name: query.found() for name, query in self._streams.queries.items()}", _ENOUGH),
    # Puts that go on from elsewhere or keep their source; tuples that are not committed; rows that are lost.
    ("flight", FlightServer, "_put", "at != have", "False", _ENOUGH),
    at_length("flight", FlightServer, "_put", "self._service.release(stream, source)", "pass", _ENOUGH),
    ("flight", JoinService, "position", "self._writer.delivered", "self._streams.delivered", _ENOUGH),
    ("flight", EpochWriter, "_end_cut", "cut.undo()", "pass", _ENOUGH),
    ("flight", EpochWriter, "_resume", "state is not None", "False", _ENOUGH),
    # Leases that do not end, of a client that died, that is idle, or whose session did not open; or that two have.
    ("daemon", Connection, "end", "self._leases.release(self._lease, discarded=True)", "pass", _ENOUGH),
    at_length("daemon", Leases, "expire", "now - (lease.detached or 0) >= self._idle_timeout", "False", _MANY),
    at_length("daemon", Connection, "_open", "self._leases.release(lease)", "pass", _MANY),
    ("daemon", Leases, "_choose", "unit.lease is None", "True", _ENOUGH),
    # Items that are not asked for, or not kept.
    ("daemon", Connection, "_items", "lease.pending = [rest] if len(rest) else []", "lease.pending = []", _ENOUGH),
    ("daemon", DaemonSession, "_items", "reply.header['more']", "False", _ENOUGH),
    # Requests and replies that are lost for good; an acknowledgement that was overtaken; a board that forgot all.
    at_length("link", HostEndpoint, "output", "self._go_back(now)", "pass", _ENOUGH),
    ("link", HostEndpoint, "output", "out += self._frame(RequestKind.AGAIN)", "pass", _ENOUGH),
    at_length("link", HostEndpoint, "_take", "done <= sum(request.sent is not None for request in self._pending)",
              "True", _MANY),
    ("link", LinkTransport, "_step", "about is not None and about.session != self._session", "False", _ENOUGH),
    # Helpers whose outcomes are not counted, or lost.
    ("team", Team, "run", "begun -= 1", "pass", _ENOUGH),
    ("team", Team, "run", "failed.append(error)", "pass", _ENOUGH),
])
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch, name: str, part: type | ModuleType, function: str,
                                  old: str, new: str, seeds: int) -> None:
    monkeypatch.setattr(part, function, faulty(part, function, old, new))
    failure = next(run(name, range(seeds)), None)
    assert failure is not None
    seed = int(failure.replay.split()[5])
    again = next(run(name, [seed]), None)
    assert again is not None
    assert again.history == failure.history
    gc.collect()


def test_threads_that_wait_for_each_other_are_told() -> None:
    def cross() -> None:
        first, second = scheduler.lock(), scheduler.lock()

        def one() -> None:
            with first, second:
                pass

        def other() -> None:
            with second, first:
                pass

        together(scheduler, one, other)

    for seed in range(100):
        scheduler = Scheduler(seed)
        try:
            scheduler.run(cross)
        except Failed as error:
            assert "all threads wait for each other" in str(error)
            assert "with first, second" in str(error)
            assert "with second, first" in str(error)
            return
    pytest.fail("none of the schedules has the deadlock")


def test_product_code_gets_threads_and_locks_from_one_module() -> None:
    """Else a schedule would not choose who gets them."""
    made = [f"{path.relative_to(ROOT)}:{line}" for folder in ("sw", "hw", "sim", "boards")
            for path in (ROOT / folder).rglob("*.py") if path.name != "threads.py" for line in _made(path)]
    assert made == []


def _made(path: Path) -> Iterator[int]:
    """The lines in which a class of `threading` or `queue` is called."""
    text = path.read_text(encoding="utf-8")
    if "threading" not in text and "queue" not in text:
        return
    tree = ast.parse(text)
    names = {name.asname or name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
             and not node.level and node.module in ("threading", "queue") for name in node.names} - {"local"}
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in names:
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id="threading" | "queue" as module), attr=name)) if (
                    module in modules and name[0].isupper()):
                yield node.lineno


def test_threads_that_are_none_of_the_schedule_do_not_move_its_clock() -> None:
    """As an earlier test may have left them: they look at the clock whenever the system lets them."""
    left = threading.Event()

    def look() -> None:
        while not left.is_set():
            monotonic()

    foreign = threading.Thread(target=look)
    foreign.start()
    times = []
    try:
        for _ in range(2):
            scheduler = Scheduler(1)
            scheduler.run(lambda scheduler=scheduler: times.append([scheduler.monotonic() for _ in range(2000)]))  # type: ignore[misc]  # of defaults
    finally:
        left.set()
        foreign.join()
    assert times[0] == times[1]
