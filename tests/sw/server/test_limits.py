"""Limits of a server in a process of its own, measured from outside: memory, time, and what is never unpacked."""

from __future__ import annotations

import json
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from ...support.patience import SOON
from .clients import MAPPED, A, Server, act, config, offers, orders, own_memory, put
from .raw import call, packed

#: Bytes of a statement's memory, and of a put's batch.
MEMORY, BATCH = 200_000_000, 8_000_000
#: A statement's time: those that end start a process within it on a machine that does much else, too.
SECONDS = 5
#: Rows of a put, tuples that a query may have to join, and tuples of a stream that may wait for the other one.
ROWS, UNREAD, WAITING = 500, 2000, 3000
#: MiB that the server may hold beside one batch on the wire and one unpacked.
SPARE = 200
#: MiB that it may take for a thousand connections, and as many calls as there may be.
CONNECTED = 100


class Peaks:
    """The highest memory of a server, and of any process that it has started, in bytes."""

    def __init__(self, server: Server):
        self._process = psutil.Process(server.process.pid)
        self._stop = threading.Event()
        self.server = self.child = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.server = max(self.server, self._process.memory_info().rss)
            for child in self._process.children():
                try:
                    self.child = max(self.child, own_memory(child))
                except psutil.Error:  # it has ended
                    continue

    def end(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = (f'[limits]\nstatement_seconds = {SECONDS}\nstatement_memory = "{MEMORY // 10**6}MB"\n'
              f'put_rows = 9_999_999\nput_bytes = "{BATCH // 10**6}MB"\nstatements = 1')
    with Server(config(tmp_path_factory.mktemp("server"), more=limits)) as server:
        yield server


def test_statements_are_killed_at_their_limits(served: Server) -> None:
    with served.client() as client:
        def answer(sql: str) -> pa.Table:
            return client.do_get(fl.Ticket(json.dumps({"sql": sql}).encode())).read_all()

        assert answer("SELECT 1 AS x").to_pylist() == [{"x": 1}]
        idle = max(map(own_memory, psutil.Process(served.process.pid).children()))
        for child in psutil.Process(served.process.pid).children():  # beside what it took before
            assert resource.prlimit(child.pid, resource.RLIMIT_CPU)[0] > SECONDS + 1
        peaks = Peaks(served)
        try:
            for sql, said in (("SELECT length(repeat('x', 1000000000))", "more than 200MB of memory"),
                              ("SELECT array_agg(i) FROM range(100000000) t(i)", "more than "),
                              ("SELECT sum(i) FROM range(100000000000) t(i)", f"more than {SECONDS} s")):
                with pytest.raises(fl.FlightError, match=said):
                    answer(sql)
        finally:
            peaks.end()
        assert peaks.child < idle + MEMORY + MAPPED
        assert len(answer("SELECT repeat('x', 100000) FROM range(100)")) == 100  # in several frames
        assert answer("SELECT count(*) AS n FROM near").to_pylist() == [{"n": 0}]


def test_a_statement_keeps_its_place_no_longer_than_its_limit(served: Server) -> None:
    """Its process is gone, and another one runs, though the client does not read on."""
    with served.client() as client, served.client() as another:
        reader = client.do_get(fl.Ticket(b'{"sql": "SELECT i, repeat(\'x\', 1000) FROM range(100000000) t(i)"}'))
        reader.read_chunk()
        deadline, refused = time.monotonic() + SOON, 0
        while True:
            assert time.monotonic() < deadline
            try:
                another.do_get(fl.Ticket(b'{"sql": "SELECT 1"}')).read_all()
                break
            except fl.FlightError as error:
                assert "1 statements may run at once" in str(error)
                refused += 1
        assert refused
        with pytest.raises(fl.FlightError, match=f"more than {SECONDS} s"):
            reader.read_all()


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_puts_are_measured_before_they_are_unpacked(served: Server, codec: str) -> None:
    rows = 40_000_000 // 12  # 40 MB, in some kB
    batch = pa.record_batch({"ts": pa.repeat(pa.scalar(0), rows), "price": pa.repeat(pa.scalar(1, pa.int32()), rows)},
                            schema=A)
    messages = packed(batch, codec)
    assert sum(map(len, messages)) < 250_000
    lying = [messages[0], messages[1].replace((8 * rows).to_bytes(8, "little"), (2**40).to_bytes(8, "little"))]
    assert lying != messages
    peaks = Peaks(served)
    before = psutil.Process(served.process.pid).memory_info().rss
    try:
        for asked, size in ((messages, "38 MiB"), (lying, "1,024.0 GiB")):
            with pytest.raises(grpc.RpcError) as caught:
                call(served, "DoPut", asked)
            assert "a batch must have at most 8 MiB once it is unpacked (put_bytes of [limits]), but one has " \
                   f"{size}; put smaller ones" == caught.value.details()
    finally:
        peaks.end()
    assert peaks.server < before + 30_000_000


def test_messages_beyond_the_limit_are_not_kept(served: Server) -> None:
    before, peaks = psutil.Process(served.process.pid).memory_info().rss, Peaks(served)
    try:
        for method, compression, said in (("DoPut", None, "Received message larger than max"),
                                          ("DoGet", None, "Received message larger than max"),
                                          ("DoPut", grpc.Compression.Gzip, "is disabled")):
            with pytest.raises(grpc.RpcError) as caught:
                call(served, method, [bytes(300 << 20)], compression=compression)
            assert said in caught.value.details()
    finally:
        peaks.end()
    assert peaks.server < before + SPARE * 2**20


def test_without_the_token_nothing_is_read(served: Server) -> None:
    for token in None, "", "x" * 64, served.token[:-1], served.token + "0", served.token.upper() + "x":
        metadata = [] if token is None else [("authorization", f"Bearer {token}")]
        for method in "DoPut", "DoGet", "DoAction", "ListFlights", "ListActions", "GetSchema", "GetFlightInfo":
            with pytest.raises(grpc.RpcError) as caught:
                call(served, method, [], metadata=metadata)
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
            assert "the call must have the header" in caught.value.details()
    assert served.token_file.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as the system lets this process have."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
def test_a_thousand_clients_are_served_or_refused_and_none_is_forgotten(served: Server) -> None:
    """Connections that say nothing, calls that say half of it, and more calls than there may be at once."""
    before = psutil.Process(served.process.pid).memory_info().rss
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(980)]
    for one in silent[:300]:
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x10\x01")
    channels = [grpc.insecure_channel(f"127.0.0.1:{served.port}", options=[("grpc.use_local_subchannel_pool", 1)])
                for _ in range(20)]
    waiting = threading.Event()

    calls = [channel.stream_stream("/arrow.flight.protocol.FlightService/DoGet")(
        iter(lambda: waiting.wait(60) and None, 1), metadata=[("authorization", f"Bearer {served.token}")])
        for channel in channels for _ in range(10)]
    codes = set()
    for one in calls[-80:]:
        try:
            next(one)
        except grpc.RpcError as error:
            codes.add(error.code())
            if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                break
    assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes
    assert psutil.Process(served.process.pid).memory_info().rss < before + CONNECTED * 2**20
    waiting.set()
    for one in calls:
        one.cancel()
    for channel in channels:
        channel.close()
    deadline = time.monotonic() + SOON
    while True:
        try:
            with served.client() as client:
                at = act(client, "position", stream="offers")["delivered"]
                put(client, offers(at, at + 3), "offers", **{"from": at})
                assert act(client, "position", stream="offers")["delivered"] == at + 3
                break
        except pa.ArrowException:
            assert time.monotonic() < deadline
    for one in silent:
        one.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with low limits on rows, whose query is slow."""
    path = config(tmp_path_factory.mktemp("small"), more="[limits]\n"
                  f"put_rows = {ROWS}\nunread = {UNREAD}\nwaiting = {WAITING}")
    path.write_text(path.read_text().replace('window = "RANGE 20"', 'window = "RANGE 20"\ndevice = "golden"'))
    with Server(path) as server:
        yield server


def test_rows_of_a_put_are_counted_before_they_are_unpacked(small: Server) -> None:
    with small.client() as client:
        before = act(client, "position", stream="orders")
        batch = orders(0, ROWS + 1)
        lying = packed(orders(0, ROWS), None)
        lying[1] = lying[1].replace(ROWS.to_bytes(8, "little"), (2**40).to_bytes(8, "little"))
        for messages, said in ((packed(batch, None), f"{ROWS + 1:,}"), (packed(batch, "zstd"), f"{ROWS + 1:,}"),
                               (lying, f"{2**40:,}")):
            with pytest.raises(grpc.RpcError) as caught:
                call(small, "DoPut", messages)
            assert caught.value.details() == f"a batch must have at most {ROWS:,} rows (put_rows of [limits]), but " \
                                             f"one has {said}; put smaller ones"
        assert act(client, "position", stream="orders") == before


def test_puts_wait_for_the_slowest_query(small: Server) -> None:
    most, ended = 0, threading.Event()

    def put_all() -> None:
        try:
            with small.client() as client:
                for at in range(0, 5 * UNREAD, ROWS):
                    put(client, orders(at, at + ROWS), "orders")
                    put(client, offers(at, at + ROWS), "offers")
        finally:
            ended.set()

    thread = threading.Thread(target=put_all)
    thread.start()
    with small.client() as client:
        while not ended.wait(0.005):
            most = max(most, act(client, "status")["streams"]["unread"])
    thread.join()
    assert UNREAD // 2 < most <= UNREAD + 2 * ROWS  # a put makes as many tuples of the other stream ready


def test_a_process_of_statements_can_write_no_file(small: Server, tmp_path: Path) -> None:
    with small.client() as client:
        def answer(sql: str) -> pa.Table:
            return client.do_get(fl.Ticket(json.dumps({"sql": sql}).encode())).read_all()

        answer("SELECT 1")  # the process is there, and waits for the next one
        workers = psutil.Process(small.process.pid).children()
        assert workers
        for worker in workers:
            assert worker.rlimit(psutil.RLIMIT_FSIZE) == worker.rlimit(psutil.RLIMIT_CORE) == (0, 0)
            assert 0 < worker.rlimit(psutil.RLIMIT_AS)[1] < 10**10
        with pytest.raises(fl.FlightError, match="a statement must be a SELECT over near, equal, but: "):
            answer(f"COPY (SELECT 1) TO '{tmp_path / 'rows.csv'}'")
    assert not list(tmp_path.iterdir())


def test_puts_wait_for_the_other_stream(small: Server) -> None:
    """A stream that delivers nothing keeps the tuples of the other one from their queries."""
    with small.client() as client:
        first, room = act(client, "position", stream="orders")["delivered"], 2 * WAITING

        def put_all() -> None:
            with small.client() as putting:
                for at in range(first, first + room, ROWS):
                    put(putting, orders(at, at + ROWS), "orders")

        thread = threading.Thread(target=put_all)
        thread.start()
        seen, deadline = [0] * 10, time.monotonic() + SOON
        while (seen[-1] < WAITING or seen[-1] != seen[-10]) and time.monotonic() < deadline:
            seen.append(act(client, "position", stream="orders")["delivered"] - first)
            time.sleep(0.02)
        assert WAITING <= seen[-1] < WAITING + ROWS
        assert thread.is_alive()
        act(client, "finish", stream="offers")
        thread.join()
        assert act(client, "position", stream="orders")["delivered"] - first == room
