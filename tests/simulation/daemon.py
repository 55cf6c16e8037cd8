"""The daemon and its clients, which break off, come back to what they left, and wait for each other's devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import splitjoin
from splitjoin.base.errors import DeviceError
from splitjoin.base.threads import monotonic, sleep, thread
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import Session
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.link.daemon.client import DaemonDevice
from splitjoin.link.daemon.server import Server

from ..support.scheduler import Scheduler
from .sessions import R, S, together, tuples


class OneUser(GoldenDevice):
    """A device that tells when it has two sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = self.most = 0

    def open(self, query: Query) -> Any:
        """A session, which is counted until it is closed."""
        made = self.made(query)
        self.sessions += 1
        self.most = max(self.most, self.sessions)
        close = made.close

        def closed() -> None:
            self.sessions -= 1
            close()

        made.close = closed  # type: ignore[method-assign]  # counted for this session alone
        return made

    def made(self, query: Query) -> Session:
        """A session."""
        return super().open(query)


def joined() -> Query:
    """The query of all clients."""
    return splitjoin.query(R, S, on="r.x = s.a", window="RANGE 5", time="ts").narrowed


def daemon(scheduler: Scheduler, folder: Path) -> None:
    """Each device has one user, each client the items of its own tuples, and all devices are free in the end."""
    serve(scheduler, folder, lambda query: OneUser())


def serve(scheduler: Scheduler, folder: Path, made: Callable[[Query], OneUser], *, most: int = 6,
          is_prompt: bool = True) -> None:
    """Let clients join ``most`` tuples of each stream at a daemon whose devices are ``made`` for their query.

    ``is_prompt``: a poll gives the items of all tuples pushed so far.
    """
    chance = scheduler.chance
    query = joined()
    devices = [made(query) for _ in range(chance.randint(1, 2))]
    server = Server(devices, folder / "d.sock", idle_timeout=20.0, max_items=chance.choice([1, 3, 100]))
    clean: list[bool] = []
    serving = thread(lambda: clean.append(server.serve()), name="daemon")
    serving.start()

    def client(number: int) -> None:
        device = DaemonDevice(socket=folder / "d.sock", wait=chance.choice([0, 5, 60]))
        for attempt in range(3):
            try:
                _join(scheduler, device, query, f"{number} {attempt}", most, is_prompt=is_prompt)
            except DeviceError:  # a connection that broke, or devices that others have
                sleep(chance.uniform(0, 3))

    together(scheduler, *(lambda number=number: client(number) for number in range(3)))
    deadline = monotonic() + 1000
    while any(unit["state"] != "free" for unit in server.status()["devices"]):
        assert monotonic() < deadline, server.status()
        sleep(5)
    server.stop()
    serving.join()
    assert len(clean) == 1  # not always True: where the clock jumps, its threads have no time to end
    assert [device.sessions for device in devices] == [0] * len(devices)
    assert max(device.most for device in devices) <= 1


def _join(scheduler: Scheduler, device: DaemonDevice, query: Query, key: str, most: int, *, is_prompt: bool) -> None:
    """Join some tuples in a session of the daemon, which may be left and taken up again."""
    chance, n = scheduler.chance, scheduler.chance.randint(1, most)
    session: Any = device.open(query, key=key)
    reference = GoldenDevice().open(query)
    found, expected = list[Any](), list[Any]()
    try:
        for number in range(n):
            arrivals = Arrivals(np.array([0, 1], np.uint8), np.array([2 * number, 2 * number + 1]),
                                tuples("r", [number]), tuples("s", [number]))
            session.push(arrivals)
            reference.push(arrivals)
            expected += reference.poll().tolist()
            if chance.random() < 0.5:
                found += session.poll().tolist()
                assert found == (expected if is_prompt else expected[:len(found)])
            if chance.random() < 0.2:
                session.detach(str(number))
                sleep(chance.uniform(0, 30))
                back = device.attach(query, key, str(number))
                if back is None:  # it was idle for too long, or another client needed the device
                    return
                session = back
            if chance.random() < 0.1:
                session._connection.close()  # the process dies
                return
        assert found + session.flush().tolist() == expected + reference.flush().tolist()
        session.close()
    finally:
        session._connection.close()
