"""Clients of a server: plain pyarrow, as anybody has them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.flight as fl

#: Bytes that a process of statements has mapped, and not touched, before its limit is set.
MAPPED = 32 << 20
ROOT = Path(__file__).parents[3]
A = pa.schema([pa.field("ts", pa.int64(), False), pa.field("price", pa.int32(), False)])
B = pa.schema([pa.field("ts", pa.int64(), False), pa.field("ask", pa.int32(), False)])
_FILE = """\
listen = "127.0.0.1:0"
folder = "results"
{top}
[epochs]
rows = 500
delay = 0.2
[streams.orders]
schema = "ts:int64, price:int32"
time = "ts"
sources = {sources}
[streams.offers]
schema = "ts:int64, ask:int32"
time = "ts"
[queries.near]
sql = "SELECT o.ts, o.price, f.ask FROM orders o JOIN offers f ON abs(o.price - f.ask) <= 3"
window = "RANGE 20"
[queries.equal]
sql = "SELECT o.ts, f.ts AS t FROM orders o JOIN offers f ON o.price = f.ask"
window = ["RANGE 20", "ROWS 9"]
{more}
"""


def config(folder: Path, *, top: str = "", more: str = "", sources: str = '["main"]') -> Path:
    """The file of a server in ``folder``."""
    path = folder / "join.toml"
    path.write_text(_FILE.format(top=top, more=more, sources=sources))
    return path


def orders(first: int, end: int) -> pa.RecordBatch:
    return pa.record_batch({"ts": range(first, end), "price": [i * 7 % 50 for i in range(first, end)]}, schema=A)


def offers(first: int, end: int) -> pa.RecordBatch:
    return pa.record_batch({"ts": range(first, end), "ask": [i * 11 % 50 for i in range(first, end)]}, schema=B)


class Bearer(fl.ClientMiddlewareFactory):  # type: ignore[misc]  # pyarrow has no types
    """Gives each call of a client ``token``; None: none."""

    def __init__(self, token: str | None):
        super().__init__()
        self.headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def start_call(self, info: Any) -> Any:
        """The header of one call."""
        return _Sent(self.headers)


class _Sent(fl.ClientMiddleware):  # type: ignore[misc]
    def __init__(self, headers: dict[str, str]):
        super().__init__()
        self._headers = headers

    def sending_headers(self) -> dict[str, str]:
        return self._headers


def connect(port: int, folder: Path, scheme: str = "grpc") -> Any:
    """A client of the server at ``port`` that writes into ``folder``."""
    token = (folder / "_token").read_text().strip()
    return fl.connect(f"{scheme}://127.0.0.1:{port}", middleware=[Bearer(token)])


def act(client: Any, action: str, **body: Any) -> Any:
    """The answer to an action."""
    (found,) = client.do_action(fl.Action(action, json.dumps(body).encode()))
    return json.loads(found.body.to_pybytes())


def put(client: Any, batch: pa.RecordBatch, stream: str, **more: Any) -> None:
    """Put one batch, and wait until it was taken."""
    command = json.dumps({"stream": stream, "acknowledge": True} | more).encode()
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(command), batch.schema)
    writer.write_batch(batch)
    reader.read()
    writer.close()


def rows(client: Any, query: str, **more: Any) -> list[dict[str, Any]]:
    """The rows of a query that are committed now, or that come with ``follow``; their places are checked."""
    more = {"follow": False} | more
    at, found = more.get("row"), []
    for chunk in client.do_get(fl.Ticket(json.dumps({"query": query} | more).encode())):
        place = json.loads(chunk.app_metadata.to_pybytes())
        assert at is None or place["row"] == at
        at = place["row"] + len(chunk.data)
        found += chunk.data.to_pylist()
    return found


def own_memory(process: psutil.Process) -> int:
    """Bytes of a process that are in memory, without those of files that it has mapped, such as libraries."""
    found = process.memory_info()
    return int(found.rss - found.shared)


class Server:
    """A server in a process of its own. Use as a context manager, which ends it by SIGTERM."""

    def __init__(self, path: Path, *options: str):
        self._log = path.parent / "log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "splitjoin", "serve", str(path), *options], cwd=ROOT,
                                            stderr=log)
        while (found := re.search(r"serves on (.*):(\d+), with", self.log())) is None:
            if self.process.poll() is not None:
                raise AssertionError(self.log())
        self.port = int(found[2])

    def log(self) -> str:
        return self._log.read_text()

    def client(self, token: str | None = "") -> Any:
        """A client; with ``token``, or by default with that of the server."""
        token = self.token if token == "" else token
        return fl.connect(f"grpc://127.0.0.1:{self.port}", middleware=[Bearer(token)])

    @property
    def token_file(self) -> Path:
        """Where the token is, as the log says."""
        found = re.search("calls need is in (.*)", self.log())
        assert found is not None
        return Path(found[1])

    @property
    def token(self) -> str:
        """What calls need."""
        return self.token_file.read_text().strip()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end()
