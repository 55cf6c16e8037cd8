"""Calls of Flight as bytes, as no client of Arrow would send them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.flight as fl

from splitjoin.server.messages import data_message, split

from .clients import Server

_PATH = "/arrow.flight.protocol.FlightService/"


def call(server: Server, method: str, messages: Iterable[bytes], *, metadata: Sequence[tuple[str, str]] | None = None,
         compression: Any = None, seconds: float = 60.0) -> list[bytes]:
    """The answers to a call; with the token, unless ``metadata`` is given. Raises `grpc.RpcError`."""
    if metadata is None:
        metadata = [("authorization", f"Bearer {server.token}")]
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", options=[("grpc.max_send_message_length", -1)]) as channel:
        return list(channel.stream_stream(_PATH + method)(iter(messages), metadata=metadata, compression=compression,
                                                          timeout=seconds))


def packed(batch: pa.RecordBatch, codec: str | None, command: bytes = b'{"stream": "orders"}') -> list[bytes]:
    """The messages of a put of ``batch``, compressed by ``codec`` of Arrow IPC."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)
    return with_descriptor([data_message(header, body) for header, body in split(sink.getvalue())], command)


def with_descriptor(messages: list[bytes], command: bytes) -> list[bytes]:
    """``messages`` of a put, the first one with this ``command``."""
    descriptor = fl.FlightDescriptor.for_command(command).serialize()
    assert len(descriptor) < 128, "its length is one byte"
    return [bytes((10, len(descriptor))) + descriptor + messages[0], *messages[1:]]
