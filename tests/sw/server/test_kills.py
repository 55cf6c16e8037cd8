"""A server that is killed while clients put and follow: they go on, and nothing is lost or doubled."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

import splitjoin
from splitjoin.server import JoinService, read_config

from ...support.patience import until
from ...support.sampling import examples
from .clients import Server, act, config, offers, orders, put, rows

N = 2000


def test_clients_of_a_server_that_is_killed_lose_and_double_nothing(tmp_path: Path) -> None:
    chance, seen, kills = random.Random(3), list[Any](), 0
    path = config(tmp_path)
    while True:
        with Server(path) as server, server.client() as client:
            at = {stream: act(client, "position", stream=stream)["delivered"] for stream in ("orders", "offers")}
            # What this client has seen stays seen, and what comes next begins behind it.
            seen += rows(client, "near", row=len(seen))
            stop = time.monotonic() + 0.3 + chance.random() * 0.6 if kills < examples(1) else None
            while min(at.values()) < N and (stop is None or time.monotonic() < stop):
                for stream, make in (("orders", orders), ("offers", offers)):
                    end = min(at[stream] + 30, N)
                    if at[stream] < end:
                        put(client, make(at[stream], end), stream, **{"from": at[stream]})
                        at[stream] = end
                seen += rows(client, "near", row=len(seen))
            if stop is not None:
                assert server.end(signal.SIGKILL) == -9
                kills += 1
                continue
            for stream in at:
                act(client, "finish", stream=stream)
            seen += rows(client, "near", row=len(seen), follow=True)
            assert server.end() == 0
            assert "stopped, with" in server.log()
            break
    expected = splitjoin.join(pa.Table.from_batches([orders(0, N)]), pa.Table.from_batches([offers(0, N)]),
                              on="abs(r.price - s.ask) <= 3", window="RANGE 20", time="ts", device="golden").to_pylist()
    assert seen == [{"ts": row["ts_r"], "price": row["price"], "ask": row["ask"]} for row in expected]
    assert kills == examples(1)


def test_a_server_that_stops_ends_calls_that_wait(tmp_path: Path) -> None:
    with Server(config(tmp_path)) as server, server.client() as client:
        follower = client.do_get(fl.Ticket(b'{"query": "near"}'))
        writer, _ = client.do_put(fl.FlightDescriptor.for_path("orders"), orders(0, 1).schema)
        writer.write_batch(orders(0, 1))
        until(lambda: act(client, "position", stream="orders")["delivered"])
        assert server.end() == 0
        assert follower.read_all().num_rows == 0
    with JoinService(read_config(config(tmp_path))) as service:
        assert service.position("orders", "main") == {"delivered": 1, "committed": 1}
