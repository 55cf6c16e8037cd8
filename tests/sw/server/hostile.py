"""A server under clients that send damaged, oversized and half messages, whose process is watched from outside.

Run: python -m tests.sw.server.hostile [--cases N] [--seed N]. Each case is a call with the token: a put, a ticket, an
action, a descriptor or a statement, valid or damaged at random, with all its messages or some, to the end or broken
off; or bytes that are no HTTP. Between them an honest client puts and asks. Reports a server that ends, fails at a
call (its log says so), takes more memory than its limits, or loses what the honest client has put, also once it is
killed and started again. Exits with 1 then. A case is replayed by its number: --first N --cases N+1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.flight as fl

from ...fuzz.inputs import damaged
from .clients import MAPPED, A, Server, act, config, offers, own_memory, put
from .raw import call, packed

_LIMITS = """[limits]
subscriptions = 4
statements = 2
statement_seconds = 1
statement_memory = "64MB"
put_bytes = "1MB"
put_rows = 50_000
unread = 100_000
"""
#: Bytes by which the server may grow, and that a process of a statement may have beside an idle one: its limit, and
#: what the idle one had mapped but not touched.
_SERVER, _STATEMENT = 400_000_000, 64_000_000 + MAPPED
_METHODS = ("DoPut", "DoGet", "DoAction", "ListFlights", "ListActions", "GetFlightInfo", "GetSchema", "DoExchange")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: Statements, scaled down: of each kind one that fits, and some that ask for too much memory, time, or rights.
_STATEMENTS = (
    "SELECT 1", "SELECT count(*) FROM near n JOIN equal e ON n.ts = e.ts", "SELECT * FROM near ORDER BY ALL LIMIT 5",
    "SELECT length(repeat('x', 90000000))", "SELECT len(list_sort(range(9000000)))",
    "SELECT sum(a.range + b.range) FROM range(1000000) a, range(1000000) b",
    "SELECT repeat('x', 9000) FROM range(9000)", "SELECT 'a'::ENUM('a', 'b'), NULL, INTERVAL 1 MONTH",
    "SELECT {'a': [1, 2], 'b': 'x'} AS s, 1::UTINYINT, 1.5::DECIMAL(38, 9)",
    "SELECT union_value(x := 1) AS u, MAP {'a': 1} AS m", "COPY near TO 'out.csv'", "ATTACH 'x.db'", "INSTALL httpfs",
    "SELECT * FROM read_text('/etc/hostname')", "SET memory_limit = '9GB'", "SELECT * FROM enable_profiling()",
    "CREATE TABLE t AS SELECT 1; SELECT * FROM t", "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) "
    "SELECT count(*) FROM r", "SELECT error('x')", "PRAGMA database_list", "EXPLAIN ANALYZE SELECT 1", "")


def _batch(chance: random.Random) -> pa.RecordBatch:
    """A batch of the stream, or of other columns, types and sizes."""
    n, kind = chance.choice((0, 1, 7, 1000, 49_999, 60_000)), chance.randrange(9)
    n = max(n, 1) if kind == 2 else n
    times = pa.array(np.full(n, chance.choice((0, 5, 2**40))), pa.int64())
    prices = pa.array(np.arange(n, dtype=np.int32))
    texts = pa.array(["x" * chance.choice((0, 3, 500_000 // max(n, 1)))] * n, pa.string())
    match kind:
        case 0:
            return pa.record_batch({"ts": times, "price": texts})
        case 1:
            return pa.record_batch({"ts": times, "price": texts.dictionary_encode()})
        case 2:
            union = pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [prices, texts])
            return pa.record_batch({"ts": times, "price": union})
        case 3:
            return pa.record_batch({"ts": times, "price": pa.array([[i] for i in range(n)], pa.list_(pa.int32()))})
        case 4:
            return pa.record_batch({f"c{i}": pa.nulls(n) for i in range(chance.choice((1, 300)))})
        case _:
            return pa.record_batch([times, prices], schema=A)


def _put(chance: random.Random) -> list[bytes]:
    command: dict[str, Any] = {"stream": chance.choice(("orders", "orders", "none"))}
    command["acknowledge"] = chance.random() < 0.3
    if chance.random() < 0.2:
        command["from"] = chance.choice((0, -1, 2**70, "x", 1.5))
    return packed(_batch(chance), chance.choice((None, "zstd", "lz4")), json.dumps(command).encode())


def _get(chance: random.Random) -> list[bytes]:
    tickets: tuple[Any, ...] = (
        {"query": "near", "follow": False}, {"query": "near", "follow": False, "row": chance.randrange(2**63)},
        {"query": "equal", "epoch": "now", "follow": False}, {"query": ["near"]}, [], "x", {"sql": 1},
        {"query": "near", "epoch": -(2**80)}, *({"sql": one} for one in _STATEMENTS))
    text = json.dumps(chance.choice(tickets)).encode()
    return [fl.Ticket(damaged(text, chance) if chance.random() < 0.3 else text).serialize()]


def _act(chance: random.Random) -> list[bytes]:
    body = {"stream": chance.choice(("orders", "none", 1)), "time": chance.choice((0, 2**62, 2**70, "x", None))}
    text = json.dumps(body if chance.random() < 0.8 else {}).encode()
    kind = chance.choice(("position", "heartbeat", "idle", "status", "x" * 9))  # not finish, which would end the rest
    return [fl.Action(kind, damaged(text, chance) if chance.random() < 0.3 else text).serialize()]


def _describe(chance: random.Random) -> list[bytes]:
    return [fl.FlightDescriptor.for_path(*chance.choice((("near",), ("orders",), ("x",), (), ("a", "b")))).serialize()]


_MAKERS: tuple[tuple[str, Callable[[random.Random], list[bytes]]], ...] = (
    ("DoPut", _put), ("DoPut", _put), ("DoPut", _put), ("DoGet", _get), ("DoGet", _get), ("DoAction", _act),
    ("GetSchema", _describe), ("GetFlightInfo", _describe))


def _case(server: Server, chance: random.Random) -> None:
    """One case: what its client gets is not looked at, but for a failure of the server itself."""
    if chance.random() < 0.05:
        with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
            raw.sendall(chance.choice((b"GET / HTTP/1.1\r\n\r\n", _PREFACE + chance.randbytes(90))))
        return
    method, make = chance.choice(_MAKERS)
    messages = make(chance)
    if chance.random() < 0.6:
        at = chance.randrange(len(messages))
        messages[at] = damaged(messages[at], chance)
    if chance.random() < 0.1:
        messages = [chance.choice(messages) for _ in range(chance.randrange(4))]
    if chance.random() < 0.05:
        method = chance.choice(_METHODS)
    try:
        call(server, method, messages, seconds=0.3 if chance.random() < 0.1 else 60.0)
    except grpc.RpcError as error:
        assert error.code() not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE), (method, error.details())


def hostile(cases: int, seed: int, first: int = 0, say: Callable[[str], None] = lambda line: None) -> list[str]:
    """The findings of the cases from ``first`` up to ``cases``."""
    found, mine = list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        path = config(Path(folder), more=_LIMITS)
        with Server(path) as server:
            with server.client() as client:
                client.do_get(fl.Ticket(b'{"sql": "SELECT 1"}')).read_all()
            process = psutil.Process(server.process.pid)
            least, idle = process.memory_info().rss, max(map(own_memory, process.children()))
            for number in range(first, cases):
                try:
                    _case(server, random.Random(f"{seed} {number}"))
                    if number % 20 == 0:
                        with server.client() as client:
                            put(client, offers(mine, mine + 3), "offers", **{"from": mine})
                            mine += 3
                            assert act(client, "position", stream="offers")["delivered"] == mine
                            assert act(client, "status")["trouble"] is None
                    assert process.memory_info().rss < least + _SERVER, "the server takes more memory than it may"
                    for child in process.children():
                        with contextlib.suppress(psutil.Error):
                            assert own_memory(child) < idle + _STATEMENT, "a statement takes more than it may"
                except Exception as error:
                    found.append(f"case {number} of seed {seed}: {type(error).__name__}: {error}")
                    say(found[-1])
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        found.append(f"the server ended: {server.process.wait(1)} {server.log()[-2000:]}")
                        say(found[-1])
                        return found
            if "Traceback" in server.log():
                found.append(f"the server failed at a call: {server.log()[-3000:]}")
            with server.client() as client:
                committed = act(client, "position", stream="offers")["committed"]
            server.end(signal.SIGKILL)
        with Server(path) as server, server.client() as client:
            if not committed <= act(client, "position", stream="offers")["delivered"] <= mine:
                found.append(f"{committed} tuples were committed, but after a kill it is "
                             f"{act(client, 'position', stream='offers')}")
            if server.end() != 0:
                found.append(f"a clean stop must end by 0: {server.log()[-2000:]}")
    say(f"{cases - first} cases, {mine} honest tuples: {len(found)} findings")
    return found


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sw.server.hostile", description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000, help="how many (default: 20000)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: 0)")
    parser.add_argument("--seed", type=int, default=0, help="of what is random (default: 0)")
    args = parser.parse_args()
    raise SystemExit(1 if hostile(args.cases, args.seed, args.first, lambda line: print(line, flush=True)) else 0)


if __name__ == "__main__":
    main()
