"""The file of `splitjoin serve`: `ServerConfig`, read and checked by `read_config`."""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import InputError, first_line
from splitjoin.lang.schema import suggest
from splitjoin.tables.schema_text import parse_schema

from .token import token_in

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+):(\d{1,5})")
_SIZE = re.compile(r"(\d{1,6}) ?([KMGT])(i?)B")
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True)
class StreamConfig:
    """A stream that clients put to: its name, schema, time column, and the names of its sources."""

    name: str
    schema: pa.Schema
    time: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class QueryConfig:
    """A continuous query: a SELECT over both streams, its window, and the device that it runs on."""

    name: str
    sql: str
    window: Any
    device: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """Bounds of what clients may do.

    Attributes:
        subscriptions: Clients that may follow queries at once.
        statements: One-time statements that may run at once.
        statement_seconds: Seconds that one may take, with what its client takes to read it.
        statement_memory: Memory of one, beside that of an interpreter with DuckDB: ``"1GB"``.
        unread: Tuples that the slowest query may have to join before clients' puts wait.
        waiting: Tuples of one stream that may wait for the other one before its puts wait.
        put_rows: Rows of one batch of a put.
        put_bytes: Bytes of one, on the wire and once it is unpacked: ``"64MB"``.
    """

    subscriptions: int = 64
    statements: int = 4
    statement_seconds: float = 30.0
    statement_memory: str = "1GB"
    unread: int = 1 << 20
    waiting: int = 1 << 22
    put_rows: int = 1 << 20
    put_bytes: str = "64MB"

    @property
    def statement_size(self) -> int:
        """``statement_memory`` in bytes."""
        return _bytes(self.statement_memory)

    @property
    def put_size(self) -> int:
        """``put_bytes`` in bytes."""
        return _bytes(self.put_bytes)


@dataclass(frozen=True)
class ServerConfig:
    """All of a server: the file of `splitjoin serve`."""

    host: str
    port: int
    folder: Path
    streams: tuple[StreamConfig, StreamConfig]
    queries: tuple[QueryConfig, ...]
    token_file: Path
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    page: tuple[str, int] | None = None
    limits: Limits = Limits()
    input: Mapping[str, Any] = field(default_factory=dict)
    epochs: Mapping[str, Any] = field(default_factory=dict)


def read_config(path: str | os.PathLike[str]) -> ServerConfig:
    """Read the file of a server. Raises `InputError` that names what is wrong, and where."""
    place = Path(path)
    try:
        found = tomllib.loads(place.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"the file of a server must be TOML that can be read, but {place}: "
                         f"{first_line(error)}") from None
    return _ConfigReader(place.parent).server(found)


class _ConfigReader:
    """Reads values, whose paths are relative to ``folder``."""

    def __init__(self, folder: Path):
        self._folder = folder

    def server(self, found: Mapping[str, Any]) -> ServerConfig:
        _keys("the file", found, {"folder", "streams", "queries"},
              {"listen", "page", "token_file", "tls", "limits", "input", "epochs"})
        host, port = _address("listen", found.get("listen", "127.0.0.1:8815"))
        page = _address("page", found["page"]) if "page" in found else None
        if page and not _is_loopback(page[0]):
            raise InputError(f"page must be an address of this machine alone, such as '127.0.0.1:8816', not "
                             f"{found['page']!r}; forward the port by SSH to look from elsewhere")
        tls = _table("tls", found.get("tls", {}))
        if tls:
            _keys("[tls]", tls, {"certificate", "key"}, set())
        if not _is_loopback(host) and not tls:
            raise InputError(f"a server that other machines reach needs [tls], but the file with listen = "
                             f"'{host}:{port}' has none; add it, or listen on 127.0.0.1")
        streams = _table("streams", found["streams"])
        if len(streams) != 2:
            raise InputError(f"a server joins two streams, [streams.NAME] each, but the file has {len(streams)}")
        first, second = (self._stream(name, value) for name, value in streams.items())
        queries = tuple(self._query(name, value) for name, value in _table("queries", found["queries"]).items())
        if not queries:
            raise InputError("a server needs a query, [queries.NAME], but the file has none")
        folder = self._folder / _text("folder", found["folder"])
        token_file = self._folder / _text("token_file", found.get("token_file", str(folder.absolute() / "_token")))
        if token_file.exists():
            token_in(token_file)  # raises; it is made when the server starts
        return ServerConfig(
            host, port, folder, (first, second), queries, token_file,
            self._bytes("tls.certificate", tls["certificate"]) if tls else None,
            self._bytes("tls.key", tls["key"]) if tls else None, page,
            _limits(_table("limits", found.get("limits", {}))),
            _some("input", found, {"lateness", "watermark", "idle", "retain"}),
            _some("epochs", found, {"rows", "delay", "every"}))

    def _stream(self, name: str, value: Any) -> StreamConfig:
        what = f"[streams.{name}]"
        _keys(what, _table(f"streams.{name}", value), {"schema", "time"}, {"sources"})
        text = _text(f"{what} schema", value["schema"])
        schema = parse_schema(text if ":" in text else str(self._folder / text))
        sources = value.get("sources", ["main"])
        if (not isinstance(sources, list) or not sources or not all(isinstance(one, str) and one for one in sources)
                or len(set(sources)) != len(sources)):
            raise InputError(f"{what} sources must be a list of different names, not {sources!r}")
        return StreamConfig(name, schema, _text(f"{what} time", value["time"]), tuple(sources))

    def _query(self, name: str, value: Any) -> QueryConfig:
        what = f"[queries.{name}]"
        _keys(what, _table(f"queries.{name}", value), {"sql", "window"}, {"device", "options"})
        return QueryConfig(name, _text(f"{what} sql", value["sql"]), value["window"],
                           _text(f"{what} device", value.get("device", "cpu")),
                           _table(f"queries.{name}.options", value.get("options", {})))

    def _bytes(self, what: str, value: Any) -> bytes:
        path = self._folder / _text(what, value)
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError(f"{what} must be a file that can be read, but {first_line(error)}") from None


def _keys(what: str, found: Mapping[str, Any], needed: set[str], more: set[str]) -> None:
    if unknown := [name for name in found if name not in needed | more]:
        raise InputError(f"{what} has the unknown entry {unknown[0]!r}{suggest(unknown[0], sorted(needed | more))}; it "
                         f"may have {', '.join(sorted(needed | more))}")
    if missing := sorted(needed - set(found)):
        raise InputError(f"{what} must have {', '.join(sorted(needed))}, but has no {missing[0]}")


def _table(what: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"[{what}] must be a table of TOML, not {value!r}")
    return value


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{what} must be a text, not {value!r}")
    return value


def _some(what: str, found: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    value = _table(what, found.get(what, {}))
    _keys(f"[{what}]", value, set(), names)
    return value


def _limits(found: dict[str, Any]) -> Limits:
    known = {one.name: type(getattr(Limits, one.name)) for one in fields(Limits)}
    _keys("[limits]", found, set(), set(known))
    for name, value in found.items():
        kinds = (int, float) if known[name] is float else (known[name],)
        if isinstance(value, bool) or not isinstance(value, kinds) or (not isinstance(value, str) and value <= 0):
            raise InputError(f"[limits] {name} must be a {'text' if known[name] is str else 'number'} above 0, not "
                             f"{value!r}")
    for name, (least, most) in {"statement_memory": ("16MB", "999999TB"), "put_bytes": ("64KB", "1GB")}.items():
        text = found.get(name, getattr(Limits, name))
        if not _SIZE.fullmatch(text) or not _bytes(least) <= _bytes(text) <= _bytes(most):
            raise InputError(f"[limits] {name} must be like '500MB', from {least} to {most}, not {text!r}")
    return Limits(**found)


def _bytes(text: str) -> int:
    """The bytes of a size such as ``"500MB"`` or ``"2GiB"``."""
    match = _SIZE.fullmatch(text)
    assert match is not None
    return int(match[1]) * int((1024 if match[3] else 1000) ** _UNITS[match[2]])


def _address(what: str, value: Any) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text := _text(what, value))
    if match is None or int(match[2]) > 65535:
        raise InputError(f"{what} must be HOST:PORT, such as '127.0.0.1:8815', not {text!r}")
    return match[1], int(match[2])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
