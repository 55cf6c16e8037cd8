"""Schedules: one run of a subject with the choices of a seed, and how a failure is replayed."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..support.scheduler import Scheduler
from .daemon import daemon
from .flight import flights
from .links import link
from .network import Network
from .service import service
from .sessions import common_join, ended, session, shared
from .teams import team

#: A file system in memory, where there is one.
_FAST = "/dev/shm"


@dataclass(frozen=True)
class Subject:
    """A function that starts threads and checks what they do, in the first thread of a schedule.

    Attributes:
        act: The function. It gets the scheduler and an empty folder, and raises AssertionError.
        traced: Files of the product between any two lines of which another thread may run.
        jumps: False if waits of what it uses must not time out while others can run.
    """

    act: Callable[[Scheduler, Path], None]
    traced: tuple[str, ...]
    jumps: bool = True


_READING = tuple(f"sw/splitjoin/sessions/{name}.py" for name in (
    "feeding", "reading", "results", "work_lock", "pipeline", "gate/readers", "gate/gate"))
_SHARED = (*_READING, *(f"sw/splitjoin/sessions/shared/{name}.py" for name in ("query", "streams")))
_COMMON = tuple(f"sw/splitjoin/sessions/shared/{name}.py" for name in ("chosen_pairs", "scan", "common_join"))
SUBJECTS = {
    "session": Subject(session, (*_READING, "sw/splitjoin/sessions/session.py")),
    "shared": Subject(shared, _SHARED),
    "common": Subject(common_join, _COMMON),
    "ended": Subject(ended, tuple(f"sw/splitjoin/sessions/{name}.py" for name in (
        "pipeline", "shared/scan", "shared/chosen_pairs"))),
    "service": Subject(service, (
        "sw/splitjoin/server/service.py", *(f"sw/splitjoin/sessions/{name}.py" for name in (
            "shared/streams", "epochs/writer", "epochs/folder")))),
    "flight": Subject(flights, ("sw/splitjoin/server/flight.py", "sw/splitjoin/server/service.py", *(
        f"sw/splitjoin/sessions/epochs/{name}.py" for name in ("writer", "folder")))),
    "daemon": Subject(daemon, tuple(f"sw/splitjoin/link/daemon/{name}.py" for name in ("leases", "server", "client"))),
    "link": Subject(link, tuple(f"sw/splitjoin/link/{name}.py" for name in ("transport", "endpoint", "daemon/server")),
                    jumps=False),
    "team": Subject(team, ("sw/splitjoin/engines/compiled/helpers.py",)),
}


@dataclass(frozen=True)
class Failure:
    """A schedule that failed: why, the last switches between its threads, and the command that replays it."""

    why: str
    history: tuple[str, ...]
    replay: str

    def __str__(self) -> str:
        return "\n".join([*self.history, self.why, f"replay: {self.replay}"])


def run(name: str, seeds: Iterable[int]) -> Iterator[Failure]:
    """The failures among the schedules of a subject with ``seeds``."""
    subject = SUBJECTS[name]
    for seed in seeds:
        scheduler = Network(seed, traced=subject.traced, jumps=subject.jumps)
        with _folder() as folder, _without_collections():
            try:
                scheduler.run(lambda scheduler=scheduler, folder=folder: subject.act(scheduler, folder))  # type: ignore[misc]  # of defaults
            except Exception:
                yield Failure(traceback.format_exc(), tuple(scheduler.history),
                              f"python -m tests.simulation {name} --seed {seed} --seeds 1")


@contextmanager
def _folder() -> Iterator[Path]:
    at = Path(tempfile.mkdtemp(prefix="splitjoin-simulation-", dir=_FAST if os.path.isdir(_FAST) else None)).resolve()
    try:
        yield at
    finally:
        shutil.rmtree(at)


@contextmanager
def _without_collections() -> Iterator[None]:
    """No garbage is collected within the block, as its finalizers would run at other places the next time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
