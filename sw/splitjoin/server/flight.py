"""`FlightServer`: a `JoinService` behind Arrow Flight (pyarrow.flight), whose clients are plain Flight clients.

Clients put to streams, get the rows of queries and of statements, and call actions; docs/server.md describes each.
"""

from __future__ import annotations

import hmac
import json
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from splitjoin.base.errors import InputError, SplitJoinError
from splitjoin.base.json_text import parsed_json
from splitjoin.lang.schema import suggest

from .service import JoinService
from .statements import Statements

__all__ = ["FlightServer"]

#: The most bytes of a ticket, a descriptor or an action's body.
_MOST = 1 << 16
_ACTIONS = {
    "position": 'how many tuples of a source are delivered, and committed: {"stream": …, "source": …}',
    "heartbeat": 'promise that a stream delivers nothing below a time: {"stream": …, "time": …}',
    "idle": 'declare a stream silent until it delivers again: {"stream": …}',
    "finish": 'end a stream for good: {"stream": …}',
    "status": "counters, and what fails",
}
#: What the body of each action may have.
_BODIES: dict[str, tuple[str, ...]] = {"position": ("stream", "source"), "heartbeat": ("stream", "time"),
                                       "idle": ("stream",), "finish": ("stream",), "status": ()}


class FlightServer(fl.FlightServerBase):  # type: ignore[misc]  # pyarrow.flight is untyped
    """Serves ``service`` at the address of its configuration; ``port`` says which one if that was 0."""

    def __init__(self, service: JoinService):
        config = service.config
        self._service, self._statements = service, Statements(config.limits)
        self._followers = threading.Semaphore(config.limits.subscriptions)
        options: dict[str, Any] = {}
        if config.certificate is not None:
            options["tls_certificates"] = [(config.certificate, config.key)]
        if config.token is not None:
            options["middleware"] = {"token": _TokenCheck(config.token)}
        scheme = "grpc" if config.certificate is None else "grpc+tls"
        super().__init__(f"{scheme}://{config.host}:{config.port}", **options)

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Deliver a client's batches to a source of a stream."""
        with _told():
            asked = _command(descriptor)
            stream, source = _text(asked, "stream"), _text(asked, "source", "main")
            at = None if asked.get("from") is None else _number(asked["from"], "from")
            acknowledge = _flag(asked, "acknowledge", False)
            to = self._service.source(stream, source)
            try:
                have = self._service.position(stream, source)["delivered"]
                if at is not None and at != have:
                    raise InputError(f"a put must go on where the source {stream}/{source} stands, at tuple {have}, "
                                     f"but it goes on from {at}; ask for the position, and put from there on")
                while True:
                    try:
                        chunk = reader.read_chunk()
                    except StopIteration:
                        return
                    if self._service.stopping:
                        raise InputError("the server stops; ask for the position when it runs again, and put from "
                                         "there on")
                    if chunk.data is not None:
                        with self._service.naming(stream, source):
                            to.push(chunk.data)
                    if acknowledge:
                        writer.write(pa.py_buffer(json.dumps(self._service.position(stream, source)).encode()))
            finally:
                self._service.release(stream, source)

    def do_get(self, context: Any, ticket: Any) -> Any:
        """The rows of a query as they are committed, or of a statement."""
        with _told():
            asked = _object(ticket.ticket, "a ticket")
            if "sql" in asked:
                _known(asked, "a ticket with a statement", "sql")
                return self._answer(_text(asked, "sql"))
            _known(asked, "a ticket", "query", "epoch", "row", "follow")
            query = _text(asked, "query")
            epoch = asked.get("epoch", 0)
            epoch = self._service.epochs() if epoch == "now" else _number(epoch, "epoch")
            row, follow = _number(asked.get("row", 0), "row"), _flag(asked, "follow", True)
            if query not in self._service.schemas:
                next(self._service.rows(query), None)  # raises
            if not self._followers.acquire(blocking=False):
                raise InputError(f"{self._service.config.limits.subscriptions} clients may get rows at once, and so "
                                 f"many do; try again later")
            rows = self._service.rows(query, epoch=epoch, row=row, follow=follow, gone=context.is_cancelled)
            return fl.GeneratorStream(self._service.schemas[query], _Released(rows, self._followers.release))

    def _answer(self, sql: str) -> Any:
        running = self._statements.answer(sql, self._service.tables())
        reader = running.__enter__()

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from reader
            except (pa.ArrowException, OSError) as error:
                raise fl.FlightServerError(f"the statement failed: {self._statements.reason(error)}") from None

        def end() -> None:
            running.__exit__(None, None, None)

        return fl.GeneratorStream(reader.schema, _Released(batches(), end))

    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """A flight for each query to get, and each stream to put to."""
        for name in self._service.schemas:
            yield self._flight(name)
        for stream in self._service.config.streams:
            yield fl.FlightInfo(stream.schema, fl.FlightDescriptor.for_path(stream.name), [], -1, -1)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """The flight of the query that is the descriptor's path."""
        with _told():
            return self._flight(_name(descriptor))

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """The schema of the query or the stream that is the descriptor's path."""
        with _told():
            name = _name(descriptor)
            for stream in self._service.config.streams:
                if stream.name == name:
                    return fl.SchemaResult(stream.schema)
            return fl.SchemaResult(self._flight(name).schema)

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """The actions, with what their bodies hold."""
        return list(_ACTIONS.items())

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """Do an action; its answer is JSON."""
        with _told():
            asked = _object(action.body.to_pybytes() or b"{}", "the body of an action")
            if action.type in _BODIES:
                _known(asked, f"the body of {action.type}", *_BODIES[action.type])
            service = self._service
            found: Any = None
            match action.type:
                case "position":
                    found = service.position(_text(asked, "stream"), _text(asked, "source", "main"))
                case "heartbeat":
                    service.heartbeat(_text(asked, "stream"), _number(asked.get("time"), "time", -(2**63)))
                case "idle":
                    service.idle(_text(asked, "stream"))
                case "finish":
                    service.finish(_text(asked, "stream"))
                case "status":
                    found = service.status()
                case other:
                    raise InputError(f"there is no action {other!r}; there are {', '.join(_ACTIONS)}")
            return [json.dumps(found).encode()]

    def _flight(self, name: str) -> Any:
        if name not in self._service.schemas:
            next(self._service.rows(name), None)  # raises
        ticket = fl.Ticket(json.dumps({"query": name}).encode())
        return fl.FlightInfo(self._service.schemas[name], fl.FlightDescriptor.for_path(name),
                             [fl.FlightEndpoint(ticket, [])], -1, -1)


class _TokenCheck(fl.ServerMiddlewareFactory):  # type: ignore[misc]  # pyarrow.flight is untyped
    """Lets calls pass that have the header ``authorization: Bearer TOKEN``."""

    def __init__(self, token: str):
        self._wanted = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> None:
        found = [value for name, values in headers.items() if name.lower() == "authorization" for value in values]
        given = found[0] if len(found) == 1 else ""
        if not hmac.compare_digest(given.encode() if isinstance(given, str) else given, self._wanted):
            raise fl.FlightUnauthenticatedError("the call must have the header 'authorization: Bearer TOKEN' with the "
                                                "server's token")


class _Released:
    """An iterator that calls ``end`` once: behind its last item, or when it is dropped."""

    def __init__(self, items: Iterator[Any], end: Callable[[], None]):
        self._items, self._end = items, end
        self._ended = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            with _told():
                item = next(self._items)
        except BaseException:
            self._finish()
            raise
        return (item[0], pa.py_buffer(json.dumps(item[1]).encode())) if isinstance(item, tuple) else item

    def __del__(self) -> None:
        self._finish()

    def _finish(self) -> None:
        if not self._ended:
            self._ended = True
            self._end()


@contextmanager
def _told() -> Iterator[None]:
    """Give errors of splitjoin to the client, with their texts; of others it learns no more than that there was one."""
    try:
        yield
    except SplitJoinError as error:
        raise fl.FlightServerError(str(error)) from None
    except (StopIteration, fl.FlightError):
        raise
    except Exception:
        traceback.print_exc()
        raise fl.FlightInternalError("the server failed at this call; its log says why") from None


def _command(descriptor: Any) -> dict[str, Any]:
    """A put's descriptor: JSON, or a path with the stream and, if it has several, the source."""
    if descriptor.descriptor_type == fl.DescriptorType.PATH:
        path = [part.decode("utf-8", "replace") for part in descriptor.path]
        if len(path) not in (1, 2):
            raise InputError("the path of a put must be a stream, or a stream and a source")
        return dict(zip(("stream", "source"), path, strict=False))
    return _known(_object(descriptor.command, "a put's command"), "a put's command", "stream", "source", "from",
                  "acknowledge")


def _object(data: bytes, what: str) -> dict[str, Any]:
    try:
        found = parsed_json(data.decode()) if len(data) <= _MOST else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{what} must be a JSON object of at most {_MOST} bytes")
    return found


def _known(asked: dict[str, Any], what: str, *names: str) -> dict[str, Any]:
    """``asked``. Raises `InputError` for another name: without a misspelt ``from`` rows would be put twice."""
    for name in asked:
        if name not in names:
            raise InputError(f"{what} has the unknown entry {name!r}{suggest(name, names)}; it may have "
                             f"{', '.join(names) or 'none'}")
    return asked


def _flag(asked: dict[str, Any], name: str, default: bool) -> bool:
    value = asked.get(name, default)
    if not isinstance(value, bool):
        raise InputError(f"{name!r} must be true or false, not {value!r}")
    return value


def _text(asked: dict[str, Any], name: str, default: str | None = None) -> str:
    value = asked.get(name, default)
    if not isinstance(value, str):
        raise InputError(f"{name!r} must be a text, not {value!r}")
    return value


def _number(value: Any, name: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value < 2**63:
        raise InputError(f"{name!r} must be a whole number of 64 bits{'' if least else ' from 0'}, not {value!r}")
    return value


def _name(descriptor: Any) -> str:
    if descriptor.descriptor_type != fl.DescriptorType.PATH or len(descriptor.path) != 1:
        raise InputError("the descriptor must be a path of one name: a query's or a stream's")
    return str(descriptor.path[0].decode("utf-8", "replace"))


