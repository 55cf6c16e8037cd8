"""Whatever splitjoin reads that others may have written: valid bytes of each kind, and the code that reads them."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import hashlib
import io
import json
import os
import random
import signal
import socket as sockets
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import splitjoin
from splitjoin.cli.pipes import read_source
from splitjoin.engines.arrival import arrivals
from splitjoin.lang.serial import decode_query, encode_query
from splitjoin.link.daemon.protocol import MAGIC, arrivals_payloads, needed_columns, read_arrivals, receive
from splitjoin.sessions.snapshot import Snapshot
from splitjoin.spark.streaming.state_format import Version
from splitjoin.tables import StoredTable, read_schema, read_table
from splitjoin.tables.stored_table import signature

from ..support.micro_batches import MicroBatches

R, S = pa.schema([("ts", pa.int64()), ("x", pa.string())]), pa.schema([("ts", pa.int64()), ("a", pa.string())])


@dataclass(frozen=True)
class Input:
    """A kind of input: valid bytes of it, and ``read``, which reads bytes from a file and uses what they hold.

    ``sealed`` puts fitting checksums into damaged bytes, so that the code behind the check gets them.
    """

    name: str
    valid: Callable[[], Sequence[bytes]]
    read: Callable[[Path], None]
    sealed: Callable[[bytes], bytes] = bytes


def used(table: pa.Table) -> None:
    """Reach every value of ``table``: bad offsets and indices are fatal here, if anywhere."""
    backward = pa.array(range(len(table) - 1, -1, -1), pa.int64())
    for column in table.columns:
        with contextlib.suppress(pa.ArrowNotImplementedError):  # Arrow cannot take from all layouts
            column.take(backward)
        str(column)
        with contextlib.suppress(ValueError, ArithmeticError, TypeError, KeyError):  # values that Python does not have
            column.to_pylist()
    sink = pa.BufferOutputStream()
    with contextlib.suppress(pa.ArrowNotImplementedError), pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def of_file(path: Path) -> None:
    schema = read_schema(path)
    used(read_table(path))
    if len(schema):
        used(read_table(path, schema.names[:1]))
    if path.suffix != ".csv":  # whose stored tables have other options
        for batch in StoredTable(path, schema, 0, 0, {}, signature(path)).batches(3):
            used(pa.Table.from_batches([batch]))


@cache
def tables() -> tuple[pa.Table, ...]:
    """Tables with a column of each layout that Arrow has."""
    n = 5
    flat = {
        "i": pa.array([1, None, 3, 4, 5], pa.int32()), "f": pa.array([0.5] * n),
        "b": pa.array([True, None, False, None, True]),
        "t": pa.array(["a", "bcd", None, "", "ü"]), "y": pa.array([b"a", b"\xff", None, b"", b"xyz"]),
        "l": pa.array(["a", "bcd", None, "", "x"], pa.large_string()), "w": pa.array([b"ab"] * n, pa.binary(2)),
        "d": pa.array(["p", "q", None, "p", "q"]).dictionary_encode(), "m": pa.array([decimal.Decimal("1.50")] * n),
        "z": pa.array([dt.datetime(2024, 1, 1)] * n, pa.timestamp("us", "UTC")), "o": pa.nulls(n),
    }
    nested = {
        "a": pa.array([[1], [2, 3], None, [], [4]]), "s": pa.array([{"u": 1, "v": "x"}] * n),
        "k": pa.array([[("a", 1)], [], None, [("b", 2), ("c", 3)], []], pa.map_(pa.string(), pa.int64())),
        "x": pa.array([[1, 2]] * n, pa.list_(pa.int16(), 2)), "h": pa.array([["p"], ["q", "p"], [], None, ["q"]]),
    }
    rare = {
        "v": pa.array(["short", "a text that is longer than twelve bytes", None, "", "b"], pa.string_view()),
        "e": pa.RunEndEncodedArray.from_arrays(pa.array([2, n], pa.int32()), pa.array(["a", "b"])),
        "u": pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1, 0], pa.int8()), [pa.array(range(n)), pa.array(["u"] * n)]),
        "g": pa.array([[1], [2, 3], None, [], [4]], pa.large_list(pa.int8())),
    }
    return pa.table(flat), pa.table(nested), pa.table(rare)


def ipc(make: Callable[..., Any]) -> list[bytes]:
    found = []
    for table in tables():
        for compression in (None, "zstd"):
            sink = pa.BufferOutputStream()
            with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
                writer.write_table(table)
                writer.write_table(table.slice(2))
            found.append(bytes(sink.getvalue()))
    return found


def parquet() -> list[bytes]:
    found = []
    for table in tables()[:2]:
        for compression in ("none", "snappy"):
            sink = pa.BufferOutputStream()
            pa.parquet.write_table(table, sink, compression=compression, row_group_size=3)
            found.append(bytes(sink.getvalue()))
    return found


def csv() -> list[bytes]:
    sink = io.BytesIO()
    pa.csv.write_csv(tables()[0].select(["i", "f", "b", "t", "m", "z"]), sink)
    return [sink.getvalue(), b"id,n\n18446744073709551615,1\n7,\"a,\nb\"\n"]


def of_stdin(path: Path) -> None:
    old = sys.stdin
    with path.open() as sys.stdin:
        try:
            used(read_source("-"))
        finally:
            sys.stdin = old


@cache
def query(how: str = "inner") -> splitjoin.Query:
    return splitjoin.query(R, S, on="r.x = s.a", window="RANGE 1000", time="ts", how=cast(Any, how),
                           k=2 if how == "asof" else None)


def rows(schema: pa.Schema) -> pa.Table:
    return pa.table([[1, 2, 5, 9], ["a", "b", None, "a"]], schema=schema)


def snapshots() -> list[bytes]:
    found = []
    for how in ("inner", "left", "asof"):
        with splitjoin.open(query(how), "golden", lateness=1) as session:
            session.push_r(rows(R))
            session.push_s(rows(S))
            session.heartbeat(4)
            found.append(session.snapshot())
    return found


def of_snapshot(path: Path) -> None:
    data = path.read_bytes()
    how = "asof" if b"pairs_turn" in data else "left" if b"kind_" in data else "inner"
    found = Snapshot.from_bytes(data)
    found.gate()
    with splitjoin.open(query(how), "golden", lateness=1) as session:
        session.restore(data)


def sealed_snapshot(data: bytes) -> bytes:
    if len(data) < 52:
        return data
    length = struct.unpack("<Q", data[44:52])[0]
    text, blobs = data[52:52 + length], data[52 + length:]
    with contextlib.suppress(ValueError, RecursionError, AttributeError):
        header = json.loads(text)
        header.pop("digest", None)
        header["digest"] = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
        text = json.dumps(header).encode()
        length = len(text)
    rest = struct.pack("<Q", length) + text + blobs
    return data[:12] + hashlib.sha256(rest).digest() + rest


@cache
def states() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        options = {"on": "r.x = s.a", "window": "RANGE 1000", "time": "ts", "order": "none"}
        MicroBatches(folder, R, S, 0, options).run([rows(R)], [rows(S)])
        return [path.read_bytes() for path in Path(folder).rglob("*.state")]


def of_state(path: Path) -> None:
    version = Version.decode(path.read_bytes(), "the state", {"r": R, "s": S})
    for held in (version.state.stored, version.state.waiting):
        for stored in held.values():
            used(stored.table)


def sealed_state(data: bytes) -> bytes:
    if len(data) < 28:
        return data
    length = struct.unpack("<Q", data[16:24])[0]
    body = data[16:24] + struct.pack("<I", zlib.crc32(data[28:28 + length])) + data[28:]
    return data[:12] + struct.pack("<I", zlib.crc32(body)) + body


def messages() -> list[bytes]:
    payloads = arrivals_payloads(arrivals(query(), rows(R), rows(S)), needed_columns(query()))
    header = json.dumps({"op": "push", "payloads": [p.size for p in payloads]}).encode()
    opened = json.dumps({"op": "open", "query": encode_query(query()), "payloads": []}).encode()
    return [MAGIC + struct.pack("<I", len(header)) + header + b"".join(map(bytes, payloads)),
            MAGIC + struct.pack("<I", len(opened)) + opened]


def of_message(path: Path) -> None:
    a, b = sockets.socketpair()
    with b:
        with a:
            a.sendall(path.read_bytes())
        message = receive(b)
    if message is None:
        return
    if message.payloads:
        found = read_arrivals(message.payloads, query())
        used(found.r)
        used(found.s)
    else:
        decode_query(message.header.get("query"))


INPUTS = (
    Input("t.arrow", lambda: ipc(pa.ipc.new_file), of_file),
    Input("t.feather", lambda: ipc(pa.ipc.new_stream), of_file),
    Input("t.parquet", parquet, of_file),
    Input("t.csv", csv, of_file),
    Input("stdin", lambda: [*ipc(pa.ipc.new_stream), *csv()], of_stdin),
    Input("snapshot", snapshots, of_snapshot, sealed_snapshot),
    Input("state", states, of_state, sealed_state),
    Input("message", messages, of_message),
)


def ends(path: Path) -> None:
    if path.read_bytes() != b"valid":
        os.kill(os.getpid(), signal.SIGSEGV)


def fails(path: Path) -> None:
    if path.read_bytes() != b"valid":
        raise KeyError("x")


#: Readers with faults that the fuzzer must find.
PLANTED = (Input("ends", lambda: [b"valid"], ends), Input("fails", lambda: [b"valid"], fails))


#: Numbers that lengths, offsets and indices are replaced by.
_NUMBERS = (0, 1, -1, 127, 128, 255, 256, 32767, 65535, 1 << 20, (1 << 31) - 1, -(1 << 31), (1 << 32) - 1, 1 << 40,
            (1 << 63) - 1, -(1 << 63))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """``data`` after one to four random changes: bits, bytes, numbers, runs that are cut out, doubled or swapped."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not found:
            break
        at = chance.randrange(len(found))
        n = min(chance.choice((1, 2, 4, 8, 16, 64)), len(found) - at)
        match chance.randrange(8):
            case 0 | 1:
                found[at] ^= 1 << chance.randrange(8)
            case 2:
                found[at] = chance.randrange(256)
            case 3 | 4:
                size = chance.choice((1, 2, 4, 8))
                at -= at % size if chance.random() < 0.8 else 0
                number = chance.choice(_NUMBERS) % (1 << 8 * size)
                found[at:at + size] = number.to_bytes(size, "little")
            case 5:
                del found[at:at + n]
            case 6:
                found[at:at] = found[at:at + n] if chance.random() < 0.5 else chance.randbytes(n)
            case _:
                if chance.random() < 0.3:
                    del found[at:]
                else:
                    other = chance.randrange(len(found) - n + 1)
                    found[at:at + n] = found[other:other + n]
    return bytes(found)
