"""A server in this process: what clients get, and what clients that do wrong get."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import splitjoin
from splitjoin.base.errors import InputError
from splitjoin.server import JoinService, read_config
from splitjoin.server.flight import FlightServer

from ...support.patience import until
from .clients import A, B, act, config, connect, offers, orders, put, rows

N = 400


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[JoinService, Any]]:
    with JoinService(read_config(config(tmp_path, more="[limits]\nsubscriptions = 3\nstatements = 1\n"
                                                       "statement_seconds = 300"))) as service:
        server = FlightServer(service)
        with connect(server.port, service.config.folder) as client:
            yield service, client
        server.shutdown()


def wanted(query: str) -> list[dict[str, Any]]:
    r, s = pa.Table.from_batches([orders(0, N)]), pa.Table.from_batches([offers(0, N)])
    if query == "near":
        return [{"ts": row["ts_r"], "price": row["price"], "ask": row["ask"]} for row in splitjoin.join(
            r, s, on="abs(r.price - s.ask) <= 3", window="RANGE 20", time="ts", device="golden").to_pylist()]
    return [{"ts": row["ts_r"], "t": row["ts_s"]} for row in splitjoin.join(
        r, s, on="r.price = s.ask", window=("RANGE 20", "ROWS 9"), time="ts", device="golden").to_pylist()]


def fill(client: Any) -> None:
    for at in range(0, N, 50):
        put(client, orders(at, at + 50), "orders", **{"from": at})
        put(client, offers(at, at + 50), "offers", **{"from": at})
    for stream in "orders", "offers":
        act(client, "finish", stream=stream)


def test_followers_get_every_row_as_it_is_committed(served: tuple[JoinService, Any]) -> None:
    _, client = served
    found: dict[str, list[Any]] = {}
    threads = [threading.Thread(target=lambda q=query: found.update({q: rows(client, q, follow=True, row=0)}))
               for query in ("near", "equal")]
    for thread in threads:
        thread.start()
    fill(client)
    for thread in threads:
        thread.join(60)
    assert found == {"near": wanted("near"), "equal": wanted("equal")}
    assert rows(client, "near", row=17) == wanted("near")[17:]
    assert rows(client, "near", epoch="now") == []
    assert act(client, "position", stream="orders") == {"delivered": N, "committed": N}
    status = act(client, "status")
    assert (status["trouble"], status["queries"]["near"]["rows"]) == (None, len(wanted("near")))


def test_errors_of_a_put_name_stream_and_source_as_the_file_does(served: tuple[JoinService, Any]) -> None:
    _, client = served
    put(client, offers(5, 9), "offers")
    with pytest.raises(fl.FlightError, match=r"stream offers \(s\), source main: the time column s\.ts of source "
                                             r"s\[0\] must not decrease"):
        put(client, offers(0, 3), "offers")
    act(client, "finish", stream="orders")
    with pytest.raises(fl.FlightError, match=r"stream orders \(r\), source main: stream r is finished"):
        put(client, orders(0, 3), "orders")


def test_statements_see_epochs_and_what_is_in_none_yet(served: tuple[JoinService, Any]) -> None:
    service, client = served
    for at in range(0, N, 50):
        put(client, orders(at, at + 50), "orders")
        put(client, offers(at, at + 50), "offers")
        ticket = fl.Ticket(json.dumps({"sql": "SELECT n.ts FROM near n ORDER BY ALL"}).encode())
        seen = client.do_get(ticket).read_all().to_pydict()["ts"]
        expected = [row["ts"] for row in wanted("near")]
        assert seen == sorted(expected[:len(seen)])
    least = sum(max(row["ts"], 0) < N for row in wanted("near")) - 60
    until(lambda: len(client.do_get(ticket).read_all()) >= least)
    assert service.epochs()


@pytest.mark.parametrize(("sql", "message"), [
    ("SELECT * FROM read_text('/etc/hostname')", "be a SELECT over near, equal, but: Permission Error"),
    ("COPY near TO 'out.csv'", "Permission Error"),
    ("SET memory_limit = '9GB'", "Cannot change configuration option"),
    ("SELECT nothing", "a statement must be a SELECT over near, equal, but: Binder Error"),
])
def test_statements_that_do_not_fit(served: tuple[JoinService, Any], sql: str, message: str) -> None:
    _, client = served
    with pytest.raises(fl.FlightError, match=message):
        client.do_get(fl.Ticket(json.dumps({"sql": sql}).encode())).read_all()
    ticket = fl.Ticket(b'{"sql": "SELECT count(*) AS n FROM near"}')
    assert client.do_get(ticket).read_all().to_pylist() == [{"n": 0}]  # its place is free again


@pytest.mark.parametrize(("ticket", "message"), [
    (b"\xff\0", "a ticket must be a JSON object of at most 65536 bytes"),
    (b"[1]", "a ticket must be a JSON object"),
    (b"{" * 70000, "a ticket must be a JSON object"),
    (b"{}", "'query' must be a text, not None"),
    (b'{"query": "neer"}', "there is no query 'neer', did you mean 'near'?"),
    (b'{"query": "near", "epoch": -1}', "'epoch' must be a whole number of 64 bits from 0, not -1"),
    (b'{"query": "near", "row": 1e3}', "'row' must be a whole number of 64 bits from 0, not 1000.0"),
    (b'{"query": "near", "fllow": false}', "a ticket has the unknown entry 'fllow'"),
    (b'{"query": "near", "follow": 0}', "'follow' must be true or false"),
    (b'{"query": "near", "sql": "SELECT 1"}', "a ticket with a statement has the unknown entry 'query'"),
])
def test_tickets_that_are_none(served: tuple[JoinService, Any], ticket: bytes, message: str) -> None:
    _, client = served
    with pytest.raises(fl.FlightError) as caught:
        client.do_get(fl.Ticket(ticket)).read_all()
    assert message.split(",")[0].split("?")[0] in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_puts_that_do_not_fit(served: tuple[JoinService, Any]) -> None:
    _, client = served
    put(client, orders(0, 5), "orders")
    for batch, command, message in (
            (orders(5, 6), {"stream": "orders", "from": 4}, "at tuple 5, but it goes on from 4"),
            (orders(5, 6), {"stream": "orders", "form": 5}, r"unknown entry 'form' \(did you mean 'from'\?\)"),
            (orders(5, 6), {"stream": "orders", "from": "5"}, "'from' must be a whole number"),
            (orders(5, 6), {"stream": "order"}, "there is no stream 'order'"),
            (orders(5, 6), {"stream": "orders", "source": "none"}, "stream orders has no source 'none'"),
            (offers(5, 6), {"stream": "orders"}, "price"),
            (orders(3, 4), {"stream": "orders"}, "must not decrease")):
        with pytest.raises(fl.FlightError, match=message):
            put(client, batch, **command)
    assert act(client, "position", stream="orders")["delivered"] == 5
    for action, body, message in (("fly", {}, "there is no action 'fly'"),
                                  ("finish", {"stream": "orders", "source": "main"}, "the body of finish has the"),
                                  ("heartbeat", {"stream": "orders", "time": "x"}, "'time' must be a whole number")):
        with pytest.raises(fl.FlightError, match=message):
            act(client, action, **body)


def test_one_client_at_a_time_puts_to_a_source_and_one_that_vanishes_frees_it(served: tuple[JoinService, Any]) -> None:
    service, client = served
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(b'{"stream": "orders", "acknowledge": true}'), A)
    writer.write_batch(orders(0, 5))
    assert json.loads(reader.read().to_pybytes()) == {"delivered": 5, "committed": 0}
    with pytest.raises(fl.FlightError, match="one client at a time puts to a source"):
        put(client, orders(5, 6), "orders")
    del reader
    writer.close()
    until(lambda: not service._busy)
    put(client, orders(5, 6), "orders", **{"from": 5})


def test_slow_and_vanished_followers_hold_nobody_back(served: tuple[JoinService, Any]) -> None:
    _, client = served
    slow = client.do_get(fl.Ticket(b'{"query": "near"}'))
    vanished = client.do_get(fl.Ticket(b'{"query": "near"}'))
    third = client.do_get(fl.Ticket(b'{"query": "near"}'))
    with pytest.raises(fl.FlightError, match="3 clients may get rows at once"):
        rows(client, "near")
    vanished.cancel()
    until(lambda: service_takes(client))
    fill(client)
    third.cancel()
    found = until(lambda: len(found := rows(client, "near")) >= len(wanted("near")) and found)
    assert found == wanted("near")
    assert slow.read_all().to_pylist() == found


def service_takes(client: Any) -> bool:
    try:
        rows(client, "equal")
    except fl.FlightError:
        return False
    return True


def test_flights_schemas_and_heartbeats(served: tuple[JoinService, Any]) -> None:
    service, client = served
    assert [flight.descriptor.path[0] for flight in client.list_flights()] == [b"near", b"equal", b"orders", b"offers"]
    info = client.get_flight_info(fl.FlightDescriptor.for_path("near"))
    assert info.schema == client.get_schema(fl.FlightDescriptor.for_path("near")).schema == service.schemas["near"]
    assert client.get_schema(fl.FlightDescriptor.for_path("offers")).schema == B
    with pytest.raises(fl.FlightError, match="there is no query 'none'"):
        client.get_flight_info(fl.FlightDescriptor.for_path("none"))
    assert [action.type for action in client.list_actions()] == ["position", "heartbeat", "idle", "finish", "status"]
    put(client, orders(0, 9), "orders")
    put(client, offers(0, 9), "offers")
    assert act(client, "status")["streams"]["ready"] < 18
    act(client, "idle", stream="orders")
    act(client, "heartbeat", stream="offers", time=50)
    put(client, orders(40, 41), "orders")
    assert act(client, "status")["streams"]["waiting"] == 0


def test_sources_of_a_stream_deliver_side_by_side(tmp_path: Path) -> None:
    path = config(tmp_path, sources='["main", "shop"]')
    for at in 0, 100:
        with JoinService(read_config(path)) as service:
            for n, source in enumerate(("main", "shop")):
                assert service.position("orders", source) == {"delivered": at, "committed": at}
                service.source("orders", source).push(orders(at + n, at + n + 100))
                service.release("orders", source)
            service.source("offers", "main").push(offers(at, at + 100))
    with pytest.raises(InputError, match="has epochs of a stream orders with 2 sources"):
        JoinService(read_config(config(tmp_path)))


def test_a_token_and_tls(tmp_path: Path) -> None:
    here = Path(__file__).parent
    (tmp_path / "token").write_text("0123456789abcdef0123\n")
    (tmp_path / "token").chmod(0o600)
    path = config(tmp_path, top='token_file = "token"', more=f'[tls]\ncertificate = "{here / "certificate.pem"}"\n'
                                                             f'key = "{here / "key.pem"}"')
    certificate = (here / "certificate.pem").read_bytes()
    with JoinService(read_config(path)) as service:
        server = FlightServer(service)
        client = fl.connect(f"grpc+tls://localhost:{server.port}", tls_root_certs=certificate)
        for given in None, b"Bearer 0123456789abcdef012", b"0123456789abcdef0123":
            headers = [] if given is None else [(b"authorization", given)]
            with pytest.raises(fl.FlightUnauthenticatedError, match="must have the header"):
                list(client.list_flights(options=fl.FlightCallOptions(headers=headers)))
            with pytest.raises(fl.FlightUnauthenticatedError, match="must have the header"):
                client.do_get(fl.Ticket(b'{"query": "near"}'), options=fl.FlightCallOptions(headers=headers)).read_all()
        right = fl.FlightCallOptions(headers=[(b"authorization", b"Bearer 0123456789abcdef0123")])
        assert len(list(client.list_flights(options=right))) == 4
        with pytest.raises(fl.FlightError):
            list(fl.connect(f"grpc://localhost:{server.port}").list_flights(
                options=fl.FlightCallOptions(timeout=2)))
        threading.Thread(target=server.shutdown, daemon=True).start()
