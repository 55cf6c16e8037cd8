"""`FlightServer`: a `JoinService` behind Arrow Flight, whose clients are plain Flight clients.

Clients put to streams, get the rows of queries and of statements, and call actions; docs/server.md describes each.
gRPC's own server for Python carries the messages, as pyarrow's unpacks what clients put before anybody can look at it.
"""

from __future__ import annotations

import hmac
import io
import json
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.flight as fl
import pyarrow.ipc

from splitjoin.base import threads
from splitjoin.base.errors import InputError, SplitJoinError
from splitjoin.base.json_text import parsed_json
from splitjoin.lang.schema import suggest

from .messages import FlightData, action_type, data_message, put_result, split, stated
from .puts import Put
from .service import JoinService
from .statements import Statements
from .token import token_in

#: The most bytes of a ticket, a descriptor or an action's body.
_MOST = 1 << 16
#: Bytes of a put's message beside those of its batch: its header, and the descriptor.
_BESIDE = 1 << 21
#: Calls beside those that put, follow and ask: actions, schemas and lists.
_SHORT_CALLS = 32
#: The most bytes of an error's text, which gRPC carries in a header.
_MOST_SAID = 2000
#: Milliseconds after which a client is asked whether it is there, that it has to answer, and after which a connection
#: without calls is closed.
_KEEPALIVE, _ANSWER, _IDLE = 30_000, 20_000, 300_000
_PATH = "/arrow.flight.protocol.FlightService/"
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


class FlightServer:
    """Serves ``service`` at the address of its configuration; ``port`` says which one if that was 0. Each call must
    have the header ``authorization: Bearer TOKEN``. Raises OSError where it cannot listen there, and `InputError`.
    """

    def __init__(self, service: JoinService):
        config, limits = service.config, service.config.limits
        self._service = service
        self._wanted = f"Bearer {token_in(config.token_file)}".encode()
        self._statements = Statements(limits)
        self._followers = threads.semaphore(limits.subscriptions)
        calls = limits.subscriptions + limits.statements + _SHORT_CALLS + sum(
            len(one.sources) for one in config.streams)
        self._methods: dict[str, Callable[[Iterator[bytes], Any], Iterator[bytes]]] = {
            _PATH + name: method for name, method in (
                ("DoPut", self._put), ("DoGet", self._get), ("DoAction", self._act), ("GetFlightInfo", self._info),
                ("GetSchema", self._schema), ("ListActions", self._list_actions), ("ListFlights", self._list_flights))}
        self._server = grpc.server(
            ThreadPoolExecutor(calls, "splitjoin call"), handlers=[_Handlers(self._handler)],
            maximum_concurrent_rpcs=calls, options=[
                ("grpc.max_receive_message_length", limits.put_size + _BESIDE),
                ("grpc.compression_enabled_algorithms_bitset", 1),  # none: what it unpacks has no limit
                ("grpc.so_reuseport", 0),  # a second server is refused
                ("grpc.keepalive_time_ms", _KEEPALIVE), ("grpc.keepalive_timeout_ms", _ANSWER),
                ("grpc.max_connection_idle_ms", _IDLE)])
        address = f"{config.host}:{config.port}"
        try:
            self.port = self._server.add_insecure_port(address) if config.certificate is None else (
                self._server.add_secure_port(address, grpc.ssl_server_credentials([(config.key, config.certificate)])))
        except RuntimeError as error:
            raise OSError(str(error)) from None
        self._server.start()

    def shutdown(self, grace: float = 0.0) -> None:
        """Take no more calls, and wait until those that run end; cancel them after ``grace`` seconds."""
        self._statements.close()
        self._server.stop(grace).wait()

    def _handler(self, path: str) -> Any:
        """The handler of the method ``path``; None if there is none. All take streams: a message is read, and takes
        memory, only once the token was seen.
        """
        method = self._methods.get(path)

        def call(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            given = [value for name, value in context.invocation_metadata() if name == "authorization"]
            sent = given[0] if len(given) == 1 else ""
            if not hmac.compare_digest(sent.encode() if isinstance(sent, str) else sent, self._wanted):
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "the call must have the header 'authorization: Bearer "
                                                               "TOKEN' with the server's token, which is in its "
                                                               "token_file")
            assert method is not None
            code, said = grpc.StatusCode.UNKNOWN, ""
            try:
                yield from method(requests, context)
                return
            except SplitJoinError as error:
                said = str(error)
            except Exception:
                if not context.is_active():  # the client is gone
                    return
                traceback.print_exc()
                code, said = grpc.StatusCode.INTERNAL, "the server failed at this call; its log says why"
            context.abort(code, said.encode()[:_MOST_SAID].decode("utf-8", "ignore"))

        return None if method is None else grpc.stream_stream_rpc_method_handler(call)

    def _put(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Deliver a client's batches to a source of a stream."""
        put = Put(requests, self._service.config.limits)
        asked = _command(_of_bytes(fl.FlightDescriptor, put.descriptor, "the descriptor of a put"))
        stream, source = _text(asked, "stream"), _text(asked, "source", "main")
        at = None if asked.get("from") is None else _number(asked["from"], "from")
        acknowledge = _flag(asked, "acknowledge", False)
        to = self._service.source(stream, source)
        try:
            with self._service.naming(stream, source):
                put.check(*self._service.stream(stream))
            have = self._service.position(stream, source)["delivered"]
            if at is not None and at != have:
                raise InputError(f"a put must go on where the source {stream}/{source} stands, at tuple {have}, "
                                 f"but it goes on from {at}; ask for the position, and put from there on")
            for batch in put:
                self._service.check_running()
                if batch is not None:
                    with self._service.naming(stream, source):
                        to.push(batch)
                if acknowledge:
                    yield put_result(json.dumps(self._service.position(stream, source)).encode())
        finally:
            self._service.release(stream, source)

    def _get(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """The rows of a query as they are committed, or of a statement."""
        asked = _object(_of_bytes(fl.Ticket, _first(requests), "a ticket").ticket, "a ticket")
        if "sql" in asked:
            _known(asked, "a ticket with a statement", "sql")
            yield from self._statements.answer(_text(asked, "sql"), self._service.tables())
            return
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
        try:
            rows = self._service.rows(query, epoch=epoch, row=row, follow=follow, gone=lambda: not context.is_active())
            yield from _messages(self._service.schemas[query], (
                (batch, json.dumps(place).encode()) for batch, place in rows))
        finally:
            self._followers.release()

    def _list_flights(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """A flight for each query to get, and each stream to put to."""
        for name in self._service.schemas:
            yield self._flight(name).serialize()
        for stream in self._service.config.streams:
            yield fl.FlightInfo(stream.schema, fl.FlightDescriptor.for_path(stream.name), [], -1, -1).serialize()

    def _info(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """The flight of the query that is the descriptor's path."""
        yield self._flight(_name(_first(requests))).serialize()

    def _schema(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """The schema of the query or the stream that is the descriptor's path."""
        name = _name(_first(requests))
        for stream in self._service.config.streams:
            if stream.name == name:
                yield fl.SchemaResult(stream.schema).serialize()
                return
        yield fl.SchemaResult(self._flight(name).schema).serialize()

    def _list_actions(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """The actions, with what their bodies hold."""
        yield from (action_type(name, description) for name, description in _ACTIONS.items())

    def _act(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Do an action; its answer is JSON."""
        action = _of_bytes(fl.Action, _first(requests), "an action")
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
        yield fl.Result(pa.py_buffer(json.dumps(found).encode())).serialize()

    def _flight(self, name: str) -> Any:
        if name not in self._service.schemas:
            next(self._service.rows(name), None)  # raises
        ticket = fl.Ticket(json.dumps({"query": name}).encode())
        return fl.FlightInfo(self._service.schemas[name], fl.FlightDescriptor.for_path(name),
                             [fl.FlightEndpoint(ticket, [])], -1, -1)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc is untyped
    def __init__(self, find: Callable[[str], Any]):
        self._find = find

    def service(self, details: Any) -> Any:
        """The handler of the method that ``details`` names."""
        return self._find(details.method)


def _messages(schema: pa.Schema, batches: Iterator[tuple[pa.RecordBatch, bytes]]) -> Iterator[bytes]:
    """The messages of FlightData for ``batches``, each with its metadata: schema, dictionaries and rows."""
    ((header, body),) = split(schema.serialize().to_pybytes())
    yield data_message(header, body)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch, metadata in batches:
            writer.write_batch(batch)
            for header, body in split(sink.getvalue()):
                kind = stated(FlightData(b"", header, body)).kind
                if kind != "schema":  # which came already
                    yield data_message(header, body, metadata if kind == "batch" else b"")
            sink.seek(0)
            sink.truncate()


def _first(requests: Iterator[bytes]) -> bytes:
    """The one message of a call. Raises `InputError`."""
    found = next(requests, None)
    if found is None:
        raise InputError("the call must have a message, but has none")
    return found


def _of_bytes(kind: Any, data: bytes, what: str) -> Any:
    """The message of this ``kind`` in ``data``. Raises `InputError`."""
    try:
        return kind.deserialize(data)
    except (pa.ArrowException, ValueError, TypeError):
        raise InputError(f"{what} must be a message of Arrow Flight, but it is damaged") from None


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


def _name(data: bytes) -> str:
    descriptor = _of_bytes(fl.FlightDescriptor, data, "a descriptor")
    if descriptor.descriptor_type != fl.DescriptorType.PATH or len(descriptor.path) != 1:
        raise InputError("the descriptor must be a path of one name: a query's or a stream's")
    return str(descriptor.path[0].decode("utf-8", "replace"))
