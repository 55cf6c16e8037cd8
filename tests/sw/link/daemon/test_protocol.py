"""The wire protocol: messages return as they were, and hostile bytes are an error of ours."""

from __future__ import annotations

import json
import re
import socket as sockets
import struct
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.base import errors
from splitjoin.base.errors import DeviceError, InputError, SplitJoinError, WindowOverflow
from splitjoin.circuit.driver import DeviceStalled
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import ITEM
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.daemon.budget import Budget
from splitjoin.link.daemon.protocol import (
    HEADER_FACTOR,
    MAGIC,
    MAX_HEADER,
    MAX_PAYLOAD_BYTES,
    Message,
    ProtocolError,
    arrivals_payloads,
    error_header,
    items_payload,
    latencies_payload,
    needed_columns,
    option,
    raised_error,
    read_arrivals,
    read_items,
    read_latencies,
    receive,
    receiving,
    send,
)

from ....support.patience import SOON
from ....support.sampling import examples
from ....support.scenarios import SCENARIOS

NAMED = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.fixture
def pair() -> Iterator[tuple[sockets.socket, sockets.socket]]:
    a, b = sockets.socketpair()
    with a, b:
        yield a, b


def received(data: bytes) -> Message | None:
    """Bytes received where the other end sends ``data`` and closes."""
    a, b = sockets.socketpair()
    with b:
        with a:
            a.sendall(data)
        return receive(b)


def framed(header: Any, rest: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return MAGIC + struct.pack("<I", len(text)) + text + rest


def test_messages_arrive(pair: tuple[sockets.socket, sockets.socket]) -> None:
    a, b = pair
    big = pa.py_buffer(bytes(3 << 20))
    payloads = [big, pa.py_buffer(b""), pa.py_buffer(b"z")]
    thread = Thread(target=send, args=(a, {"op": "x", "n": [1, None, "ü"]}, payloads))
    thread.start()
    found = receive(b)
    thread.join()
    assert found is not None
    assert found.header == {"op": "x", "n": [1, None, "ü"]}
    assert [p.to_pybytes() for p in found.payloads] == [bytes(3 << 20), b"", b"z"]
    a.close()
    assert receive(b) is None


def test_too_large_messages_are_not_sent(pair: tuple[sockets.socket, sockets.socket]) -> None:
    with pytest.raises(ProtocolError, match=f"the header of a message must have at most {MAX_HEADER} bytes"):
        send(pair[0], {"op": "x" * MAX_HEADER})
    with pytest.raises(ProtocolError, match="a message must have at most 8 payloads"):
        send(pair[0], {}, [pa.py_buffer(b"")] * 9)


@pytest.mark.parametrize(("data", "message"), [
    (b"GET / HTTP/1.1\r\n\r\n", "a message must begin with"),
    (b"SJD\x02\0\0\0\0", "daemon and client must be of one release"),
    (MAGIC, "the connection ended within a message, after 4 of 8 bytes"),
    (MAGIC + b"\x05\0\0\0{}", "the connection ended within a message, after 2 of 5 bytes"),
    (MAGIC + b"\xff\xff\xff\xff", "the header of a message must have at most"),
    (framed(b""), "the header of a message must be JSON"),
    (framed(b"\xff\xfe"), "the header of a message must be JSON"),
    (framed(b"[" * 100_000), "the header of a message must be JSON"),
    (framed(b'{"payloads": [], "x": ' + b"9" * 5000 + b"}"), "the header of a message must be JSON"),
    (framed(b'{"payloads": [], "x": NaN}'), "NaN is no JSON"),
    (framed([]), "the header of a message must be an object"),
    (framed({}), "with the lengths of its payloads"),
    (framed({"payloads": [True]}), "with the lengths of its payloads"),
    (framed({"payloads": [-1]}), "with the lengths of its payloads"),
    (framed({"payloads": {}}), "with the lengths of its payloads"),
    (framed({"payloads": [MAX_PAYLOAD_BYTES, 1]}), "a message must have at most"),
    (framed({"payloads": [0] * 9}), "a message must have at most"),
    (framed({"payloads": [3]}, b"ab"), "the connection ended within a message, after 2 of 3 bytes"),
])
def test_what_is_no_message_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        received(data)


@settings(max_examples=examples(200))
@given(st.one_of(st.binary(max_size=40), st.binary(max_size=40).map(lambda rest: MAGIC + rest),
                 st.binary(max_size=20).map(lambda text: framed(text)),
                 st.binary(max_size=20).map(lambda rest: framed({"payloads": [5, 2]}, rest))))
def test_random_bytes_are_refused(data: bytes) -> None:
    try:
        found = received(data)
    except ProtocolError:
        return
    assert found is None or isinstance(found, Message)


@pytest.mark.parametrize("name", ["band-range", "string-equal", "date-and-timestamp", "one-sided", "all-match",
                                  "empty-both", "clocks", "float-band-special"])
def test_arrivals_return(name: str) -> None:
    query = NAMED[name].query()
    whole = arrivals(query, NAMED[name].r, NAMED[name].s)
    found = read_arrivals(arrivals_payloads(whole, needed_columns(query)), query)
    assert (found.stream == whole.stream).all()
    assert (found.ts is None) == (whole.ts is None)
    assert found.ts is None or (found.ts == whole.ts).all()
    for side in ("r", "s"):
        assert len(found.table(side)) == len(whole.table(side))
        for column in needed_columns(query)[side]:  # type: ignore[index]  # "r" or "s"
            ours, theirs = whole.table(side).column(column), found.table(side).column(column)
            assert repr(ours.to_pylist()) == repr(theirs.to_pylist())  # NaN equals itself in text


QUERY = Query.make(Schema.from_arrow("r", pa.schema([("ts", pa.int64()), ("x", pa.int32())])),
                   Schema.from_arrow("s", pa.schema([("ts", pa.int64()), ("a", pa.string())])),
                   on="r.x = 1 AND s.a = 'b'", window="ROWS 2", time="ts")


def written(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def order(stream: Any = (0, 1), ts: Any = (5, 6)) -> pa.Buffer:
    columns = {"stream": pa.array(stream, pa.uint8())}
    return written(pa.table(columns if ts is None else columns | {"ts": pa.array(ts, pa.int64())}))


def tables(x: Any = (1,), a: Any = ("b",)) -> list[pa.Buffer]:
    return [written(pa.table({"x": pa.array(x, pa.int32())})), written(pa.table({"a": pa.array(a, pa.string())}))]


@pytest.mark.parametrize(("payloads", "error", "message"), [
    ([], ProtocolError, "arrivals must have 3 payloads, not 0"),
    ([pa.py_buffer(b"")] * 3, ProtocolError, "a payload must be an Arrow IPC stream"),
    ([pa.py_buffer(b"\xff\xff\xff\xff" + bytes(40))] * 3, ProtocolError, "a payload must be an Arrow IPC stream"),
    ([order(ts=None), *tables()], InputError, "must have event times"),
    ([order(stream=(0, 2)), *tables()], ProtocolError, "stream of arrivals must be 0 or 1, not 2"),
    ([order(stream=(0, None)), *tables()], ProtocolError, "must not hold NULL"),
    ([written(pa.table({"stream": pa.array([0, 1], pa.int8())})), *tables()], ProtocolError,
     "arrivals must have the columns stream"),
    ([order(), *tables(x=(1, 2))], ProtocolError, "arrivals with 1 tuples of stream r must have as many rows"),
    ([order(), *reversed(tables())], InputError, "arrivals must have one column r.x of type int32"),
    ([order(), tables()[0], written(pa.table({"a": pa.array([3])}))], InputError, "must have one column s.a of type"),
])
def test_hostile_arrivals_are_refused(payloads: list[pa.Buffer], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_arrivals(payloads, QUERY)


def test_texts_that_are_no_utf8_are_refused() -> None:
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32).tobytes()),
                                                 pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(ProtocolError, match="a payload must be an Arrow IPC stream"):
        read_arrivals([order(), tables()[0], written(pa.table({"a": bad}))], QUERY)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("column", [pa.array(["a" * 1000]), pa.array(["a" * 1000]).dictionary_encode()],
                         ids=["batch", "dictionary"])
def test_compressed_batches_are_refused(column: pa.Array, compression: str) -> None:
    """A kilobyte could become a gigabyte when it is read."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("a", column.type)]),
                           options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(pa.table({"a": column}))
    with pytest.raises(ProtocolError, match="the batches of a payload must not be compressed"):
        read_arrivals([order(stream=(1,), ts=(1,)), tables(x=())[0], sink.getvalue()], QUERY)


def test_a_message_must_arrive_in_time(pair: tuple[sockets.socket, sockets.socket]) -> None:
    a, b = pair
    whole = framed({"payloads": [3]}, b"abc")
    for sent in (1, 8, 12, len(whole) - 1):
        a.sendall(whole[:sent])
        with pytest.raises(ProtocolError, match=r"each MiB of a message must arrive within 0\.01 s, but only \d+"), (
                receiving(b, within=0.01)):
            pass
    assert b.gettimeout() is None, "an idle connection may stay"
    a.sendall(whole)
    with receiving(b, within=SOON) as found:
        assert found is not None
        assert found.payloads[0].to_pybytes() == b"abc"


def test_a_message_takes_its_bytes_from_the_budget(pair: tuple[sockets.socket, sockets.socket]) -> None:
    a, b = pair
    whole = framed({"payloads": [3]}, b"abc")
    header = HEADER_FACTOR * len(json.dumps({"payloads": [3]}))
    budget = Budget(header + 3, patience=0.01)
    a.sendall(whole)
    with receiving(b, budget=budget) as found:
        assert found is not None
        assert budget.free == 0
        a.sendall(whole)
        with pytest.raises(DeviceError, match=r"must hold at most \d+ bytes of messages, but other clients have"), (
                receiving(b, budget=budget)):
            pass
    assert budget.free == header + 3
    with budget.reserved(1 << 60):
        assert budget.free == 0, "what is larger than the budget takes all of it"


def test_bytes_that_become_free_wake_whoever_waits() -> None:
    budget, got = Budget(10), Event()

    def wait() -> None:
        with budget.reserved(8):
            got.set()

    with budget.reserved(5):
        thread = Thread(target=wait)
        thread.start()
        with pytest.raises(DeviceError), budget.reserved(8, lambda: False):
            pass
        assert not got.is_set()
    thread.join(SOON)
    assert got.is_set()


def test_offsets_that_lead_outside_are_refused() -> None:
    bad = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 9, 1], np.int32).tobytes()),
                                                 pa.py_buffer(b"abcdefghi")])
    with pytest.raises(ProtocolError, match="a payload must be an Arrow IPC stream"):
        read_arrivals([order(stream=(1, 1)), tables(x=())[0], written(pa.table({"a": bad}))], QUERY)


@settings(max_examples=examples(200))
@given(at=st.integers(0, 10_000), to=st.integers(0, 255), which=st.integers(0, 2), cut=st.booleans())
def test_damaged_arrivals_are_refused_or_are_arrivals(at: int, to: int, which: int, cut: bool) -> None:
    payloads = [p.to_pybytes() for p in (order(), *tables())]
    at %= len(payloads[which])
    payloads[which] = payloads[which][:at] + (b"" if cut else bytes([to]) + payloads[which][at + 1:])
    try:
        found = read_arrivals([pa.py_buffer(p) for p in payloads], QUERY)
    except (ProtocolError, InputError):
        return
    assert isinstance(found, Arrivals)
    assert len(found.r) + len(found.s) == len(found)


def test_missing_columns_are_the_caller_s_mistake() -> None:
    r, s = pa.table({"y": [1]}), pa.table({"a": ["b"]})
    whole = Arrivals(np.zeros(1, np.uint8), np.zeros(1, np.int64), r, s.slice(1))
    with pytest.raises(InputError, match=r"arrivals must have the columns of the condition, but stream r lacks 'x'"):
        arrivals_payloads(whole, needed_columns(QUERY))


def test_items_and_latencies_return() -> None:
    items = np.array([(0, 1, 5, 2**62), (1, 0, 7, -1)], ITEM)
    assert (read_items(items_payload(items)) == items).all()
    assert read_items(items_payload(items)).dtype == ITEM
    assert len(read_items(items_payload(items[:0]))) == 0
    assert read_latencies(latencies_payload(np.array([3, 2**40]))).tolist() == [3, 2**40]
    with pytest.raises(ProtocolError, match="items must have the columns kind"):
        read_items(latencies_payload(np.array([3])))
    with pytest.raises(ProtocolError, match="latencies must have the column cycles"):
        read_latencies(items_payload(items))


@pytest.mark.parametrize("name", [name for name, of in vars(errors).items() if isinstance(of, type) and issubclass(
    of, errors.SplitJoinError) and name not in ("WindowOverflow", "CoreLost")])
def test_errors_return(name: str) -> None:
    error = getattr(errors, name)("ä must be b")
    error.add_note("a note")
    found = raised_error(json.loads(json.dumps(error_header(error))))
    assert (type(found), str(found), found.__notes__) == (type(error), "ä must be b", ["a note"])


def test_overflows_return_with_their_attributes() -> None:
    found = raised_error(json.loads(json.dumps(error_header(WindowOverflow("s", 7, 64)))))
    assert isinstance(found, WindowOverflow)
    assert (found.stream, found.row, found.capacity) == ("s", 7, 64)
    assert str(found) == str(WindowOverflow("s", 7, 64))


def test_errors_of_one_layer_return_as_the_public_error_above() -> None:
    found = raised_error(error_header(DeviceStalled("stuck")))
    assert (type(found), str(found)) == (DeviceError, "stuck")


@pytest.mark.parametrize("error", [
    None, "no", {"class": "KeyboardInterrupt", "text": "", "notes": []}, {"class": "check", "text": "", "notes": []},
    {"class": "WindowOverflow", "text": "", "notes": []}, {"class": "DeviceError", "text": 3, "notes": []},
    {"class": "WindowOverflow", "overflow": ["q", 1, 2], "text": "", "notes": []},
], ids=range(7))
def test_hostile_errors_are_refused(error: Any) -> None:
    with pytest.raises(ProtocolError, match=r"an error in a reply must have|the class of an error must be"):
        raised_error({"error": error})


def test_values_of_a_header_have_a_type() -> None:
    assert option({"a": 1}, "a", int) == 1
    assert option({}, "a", str, None) is None
    for header, kinds, must in (
            ({"a": True}, (int,), "int"), ({}, (str,), "str"), ({"a": 1}, (str, None), "str or null")):
        with pytest.raises(ProtocolError, match=re.escape(f"a in a request must be {must}, not ")):
            option(header, "a", *kinds)
    assert issubclass(ProtocolError, SplitJoinError)
