"""The Flight handlers of a server that is killed, starts anew on the disk that is left, and whose clients go on."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import grpc
import pyarrow as pa
import pyarrow.flight as fl
import pyarrow.ipc

from splitjoin.base import disk as files
from splitjoin.base.errors import SplitJoinError
from splitjoin.base.threads import monotonic, sleep
from splitjoin.server import JoinService, ServerConfig, flight
from splitjoin.server.messages import encapsulated, parse_data
from splitjoin.sessions.epochs.folder import read_manifest

from ..support.scheduler import Scheduler
from ..support.simulated_disk import Ended, SimulatedDisk
from ..sw.server.raw import packed
from .service import WINDOW, configured
from .sessions import Row, batches, given, rows, together, tuples

_TOKEN = "0123456789abcdef"
_PATH = "/arrow.flight.protocol.FlightService/"


class _Gone(Exception):
    """A call broke off: nobody knows what the server did of it."""


class _Refused(Exception):
    """The server ended a call by an error."""


class _Grpc:
    """In place of gRPC's server: it keeps the handlers, which `_Host` calls."""

    def __init__(self, pool: object, handlers: list[Any], **options: object):
        self.handlers = handlers

    def add_insecure_port(self, address: str) -> int:
        return 1

    def start(self) -> None:
        pass


class _Call:
    """A call, for its handler. ``is_active``: whether its client and the process of its server are there."""

    def __init__(self, process: flight.FlightServer, host: _Host):
        self._process, self._host = process, host
        self.is_left = False

    def is_active(self) -> bool:
        return not self.is_left and self._host.process is self._process and not self._host.disk.ended

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {_TOKEN}")]

    def abort(self, code: object, said: str) -> None:
        raise _Refused(said)


class _Host:
    """The machine of the server: a disk, and one process after the other."""

    def __init__(self, scheduler: Scheduler, config: ServerConfig, disk: SimulatedDisk):
        self.scheduler, self.config, self.disk = scheduler, config, disk
        self.process: flight.FlightServer | None = None
        self._service: JoinService | None = None

    def start(self) -> None:
        """Start the server; it may fail, or be killed."""
        with suppress(Ended, SplitJoinError):
            self._service = JoinService(self.config, lambda line: None)
            self.process = flight.FlightServer(self._service)

    def kill(self) -> None:
        """End the process: what it calls from now on has no effect, and nobody hears of it."""
        self.disk.ended = True
        self.process, service, self._service = None, self._service, None
        if service is not None:
            with service._changed:
                service._stopping = True
                service._changed.notify_all()
            service._thread.join()
            service._writer._folder.close()
            service._streams.__exit__(None, None, None)
        self.disk.restart()

    def call(self, method: str, messages: list[bytes]) -> Generator[bytes, None, None]:
        """The answers to a call."""
        process, chance = self.process, self.scheduler.chance
        if process is None:
            raise _Gone
        call = _Call(process, self)

        def requests() -> Iterator[bytes]:
            for message in messages:
                if self.scheduler.buggify("late request"):
                    sleep(chance.uniform(0, 2))
                if self.scheduler.buggify("half a call", 0.1):
                    call.is_left = True
                    raise _Gone
                yield message

        handler = process._server.handlers[0].service(SimpleNamespace(method=_PATH + method))
        answers = handler.stream_stream(requests(), call)
        try:
            while True:
                try:
                    answer = next(answers, None)
                except _Refused:
                    if call.is_active():
                        raise
                if not call.is_active() or self.scheduler.buggify("lost answer", 0.1):
                    raise _Gone
                if answer is None:
                    return
                yield answer
        finally:
            call.is_left = True
            answers.close()

    def act(self, action: str, **body: Any) -> Any:
        """The answer to an action."""
        (found,) = self.call("DoAction", [fl.Action(action, json.dumps(body).encode()).serialize()])
        return json.loads(fl.Result.deserialize(found).body.to_pybytes())

    def rows(self, **ticket: Any) -> Generator[tuple[pa.RecordBatch, dict[str, int]], None, None]:
        """The rows of a query, each batch with its epoch and the place of its first row."""
        schema = b""
        with closing(self.call("DoGet", [fl.Ticket(json.dumps(ticket).encode()).serialize()])) as answers:
            for message in answers:
                data = encapsulated(parse_data(message))
                if schema:
                    place = re.search(rb'\{"epoch": \d+, "row": \d+\}', message)
                    assert place is not None
                    yield pa.ipc.open_stream(schema + data).read_next_batch(), json.loads(place[0])
                schema = schema or data


def _put(stream: str, parts: list[range], command: str) -> list[bytes]:
    """The messages of a put of the tuples ``parts``, a batch each."""
    each = [packed(tuples(stream, part).combine_chunks().to_batches()[0], None, command.encode()) for part in parts]
    return each[0][:1] + [batch for _, batch in each]


def flights(scheduler: Scheduler, folder: Path) -> None:
    """Followers get each row once and in order, only of epochs that stay; what was said to be committed is."""
    chance = scheduler.chance
    n = chance.randint(3, 8)
    expected = rows(n, lambda side, number: WINDOW)
    disk = SimulatedDisk(folder / "disk", random.Random(chance.random()))
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(_TOKEN)
    config = dataclasses.replace(configured(folder), folder=disk.root / "results", token_file=folder / "token")
    host, followed = _Host(scheduler, config, disk), dict[str, list[Row]]()

    def operate() -> None:
        for _ in range(chance.randint(1, 3)):
            disk.faults = {(chance.choice(["rename", "sync folder", "sync", "write", "remove"]), chance.randint(1, 6)):
                           chance.choice(["end", "late end", "EIO", "late EIO", "ENOSPC"]) for _ in range(2)}
            host.start()
            scheduler.wait(lambda: disk.ended or host.process is None, chance.uniform(0, 8))
            host.kill()
            if chance.random() < 0.5:
                disk.cut_power()
            sleep(chance.uniform(0, 2))
        host.start()
        assert host.process is not None, "the disk is well"

    def put(stream: str) -> None:
        committed = 0
        while len(followed) < 2:
            assert monotonic() < 1500, f"{stream} is not taken"
            with suppress(_Gone, _Refused):
                place = host.act("position", stream=stream)
                at = place["delivered"]
                assert committed <= place["committed"] <= at <= n, (stream, committed, place)
                committed = place["committed"]
                if at == n:
                    host.act("finish", stream=stream)
                if scheduler.buggify("another place"):
                    at = chance.randint(0, n)
                command = json.dumps({"stream": stream, "from": at, "acknowledge": chance.random() < 0.5})
                cuts = [range(part.start + at, part.stop + at) for part in batches(scheduler, n - at) if part]
                for _ in host.call("DoPut", _put(stream, cuts, command)) if cuts else ():
                    pass
            sleep(chance.uniform(0, 1))

    def follow(query: str) -> None:
        found: list[Row] = []
        while True:
            assert monotonic() < 1500, f"{query} does not end"
            goes_on = chance.random() < 0.5
            with suppress(_Gone, _Refused), closing(
                    host.rows(query=query, row=len(found), follow=goes_on)) as answers:
                for batch, place in answers:
                    assert place["row"] == len(found)
                    assert place["epoch"] < read_manifest(config.folder).epochs
                    found.extend(given(batch))
                    assert found == expected[:len(found)]
                if goes_on:
                    break
            sleep(chance.uniform(0, 1))
        assert found == expected
        followed[query] = found

    with files.using(disk), mock.patch.object(grpc, "server", _Grpc), mock.patch.object(flight, "Statements"):
        together(scheduler, operate, *(lambda stream=stream: put(stream) for stream in chance.choice(["rs", "rsr"])),
                 lambda: follow("q1"), lambda: follow("q2"))
        host.kill()
