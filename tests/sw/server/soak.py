"""A server under many clients, some of them slow, vanishing, without the token, or talking garbage, which is killed and
stopped again and again.

Run: python -m tests.sw.server.soak [--clients N] [--seconds N] [--kills N] [--stops N] [--pause SECONDS]
[--seed N]. Two clients put, and vanish now and then; the others follow from where they were. In the end every follower
that stayed must have the rows of the join of all that was put, once each and in order; no client may have got anything
without the token; each clean stop must have ended by 0; and the last server's memory must not have grown with its age.
Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.flight as fl

import splitjoin

from .clients import Bearer, Server, act, config, offers, orders, put

#: Tuples of a batch, and seconds between two calls of a client that disturbs.
_BATCH, _PAUSE = 500, 0.5
#: Makes some 56 rows of a tuple.
_WINDOW = "RANGE 200"
#: MiB by which the server may grow from its third quarter to its last one.
_GROWTH = 200
#: One batch of so many is put by a client that vanishes before it has the answer.
_VANISHES = 100
_TOKEN = "the-token-of-this-soak"


class Rows:
    """How many rows were seen, and a digest of them that does not depend on the batches: all would not fit."""

    def __init__(self) -> None:
        self.count, self._digest = 0, hashlib.sha256()

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See the rows of ``batch``, whose columns are whole numbers."""
        columns = [column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
                   for column in batch.columns]
        self._digest.update(np.column_stack(columns).astype(np.int64).tobytes())
        self.count += len(batch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and (self.count, self._digest.digest()) == (other.count, other._digest.digest())

    __hash__ = None  # type: ignore[assignment]  # it changes


class Clients:
    """All clients, and what they know of the server that runs."""

    def __init__(self, seed: int, pause: float):
        self.chance, self._pause = random.Random(seed), pause
        self.port: int | None = None  # none while no server runs
        self.stop, self.done = threading.Event(), threading.Event()
        self.put = {"orders": 0, "offers": 0}
        self.seen: dict[int, Rows] = {}
        self.problems: list[str] = []
        self.refused = self.vanished = 0

    def connected(self, use: Any, token: str | None = _TOKEN) -> None:
        """Call ``use`` with a client, again whenever the server has gone, until it returns true."""
        while True:
            port = self.port
            if port is None:
                time.sleep(0.05)
                continue
            try:
                with fl.connect(f"grpc://127.0.0.1:{port}", middleware=[Bearer(token)]) as client:
                    if use(client):
                        return
            except (fl.FlightError, pa.ArrowException, OSError):
                time.sleep(0.1)  # the server was killed, or stops

    def putting(self, stream: str, make: Any) -> None:
        """Put batches until the end, each from where the server stands."""
        def use(client: Any) -> bool:
            at = act(client, "position", stream=stream)["delivered"]
            self.put[stream] = max(self.put[stream], at)
            command = json.dumps({"stream": stream, "from": at, "acknowledge": True}).encode()
            writer, reader = client.do_put(fl.FlightDescriptor.for_command(command), make(0, 1).schema)
            while not (self.stop.is_set() and at >= max(self.put.values())):
                writer.write_batch(make(at, at + _BATCH))
                if self.chance.randrange(_VANISHES) == 0:
                    self.vanished += 1
                    return False  # whether the server has taken it, the next position says
                reader.read()
                at += _BATCH
                self.put[stream] = max(self.put[stream], at)
                time.sleep(self._pause)
            writer.close()
            act(client, "finish", stream=stream)
            return True

        self.connected(use)

    def following(self, n: int, *, slow: bool) -> None:
        """Follow a query until the streams end, from the row behind the last one seen."""
        seen = self.seen[n] = Rows()

        def use(client: Any) -> bool:
            asked = {"query": "near", "row": seen.count}
            for chunk in client.do_get(fl.Ticket(json.dumps(asked).encode())):
                if json.loads(chunk.app_metadata.to_pybytes())["row"] != seen.count:
                    self.problems.append(f"follower {n} got another row than the one behind its last")
                    return True
                seen.add(chunk.data)
                if slow:
                    time.sleep(0.1)
            return bool(act(client, "status")["streams"].get("waiting") == 0 and self.done.is_set())

        self.connected(use)

    def end(self, server: Server, number: signal.Signals) -> None:
        """End ``server``, and note what a clean stop lacks."""
        code = server.end(number)
        if number == signal.SIGTERM and (code != 0 or "stopped, with" not in server.log()):
            self.problems.append(f"a clean stop ended by {code}: {server.log()[-300:]}")

    def disturbing(self) -> None:
        """Vanish, send garbage, and ask for what is not there, until the end."""
        def use(client: Any) -> bool:
            time.sleep(_PAUSE)
            what = self.chance.randrange(4)
            if what == 0:
                client.do_get(fl.Ticket(b'{"query": "near"}')).read_chunk()
            elif what == 1:
                client.do_get(fl.Ticket(os.urandom(200))).read_all()
            elif what == 2:
                client.do_put(fl.FlightDescriptor.for_command(os.urandom(50)), orders(0, 1).schema)[0].close()
            else:
                client.do_get(fl.Ticket(b'{"sql": "SELECT count(*) FROM near, near AS b"}')).read_all()
            return self.done.is_set()

        while not self.done.is_set():
            try:
                self.connected(use)
            except StopIteration:  # a stream without a batch
                continue

    def intruding(self) -> None:
        """Try all calls without the token, or with another one, until the end; none may get an answer."""
        calls: list[Any] = [
            lambda client: client.do_get(fl.Ticket(b'{"query": "near"}')).read_chunk(),
            lambda client: client.do_get(fl.Ticket(b'{"sql": "SELECT count(*) FROM near"}')).read_all(),
            lambda client: put(client, orders(0, 1), "orders"),
            lambda client: act(client, "finish", stream="orders"),
            lambda client: act(client, "status"),
            lambda client: list(client.list_flights()),
            lambda client: client.get_flight_info(fl.FlightDescriptor.for_path("near"))]

        def use(client: Any) -> bool:
            call = self.chance.randrange(len(calls))
            try:
                calls[call](client)
            except fl.FlightUnauthenticatedError:
                self.refused += 1
            except StopIteration:
                self.problems.append(f"call {call} without the token was answered")
            else:
                self.problems.append(f"call {call} without the token was answered")
            time.sleep(_PAUSE)
            return True

        while not self.done.is_set():
            self.connected(use, self.chance.choice([None, "", _TOKEN[:-1], _TOKEN + "s", "x" * 5000]))


def soak(folder: Path, *, clients: int, seconds: float, kills: int, stops: int, pause: float, seed: int) -> list[str]:
    """The problems that were found."""
    (folder / "token").write_text(_TOKEN)
    (folder / "token").chmod(0o600)
    path = config(folder, top='token_file = "token"', more="[limits]\nsubscriptions = 200\nstatement_seconds = 2")
    path.write_text(path.read_text().replace("RANGE 20", _WINDOW).replace("rows = 500", "rows = 20_000"))
    of, followers = Clients(seed, pause), max(clients - 6, 1)
    threads = [threading.Thread(target=of.putting, args=one, daemon=True)
               for one in (("orders", orders), ("offers", offers))]
    threads += [threading.Thread(target=of.following, args=(n,), kwargs={"slow": n % 5 == 4}, daemon=True)
                for n in range(followers)]
    others = [threading.Thread(target=one, daemon=True) for one in (of.disturbing, of.intruding) for _ in range(2)]
    for thread in [*threads, *others]:
        thread.start()
    ends = [signal.SIGKILL] * kills + [signal.SIGTERM] * stops
    of.chance.shuffle(ends)
    memory: list[float] = []
    for turn, number in enumerate([*ends, None]):
        with Server(path) as server:
            of.port = server.port
            end = time.monotonic() + seconds / (len(ends) + 1) * (1 if number is None else 0.5 + of.chance.random())
            while time.monotonic() < end:
                time.sleep(1)
                if number is None:
                    memory.append(psutil.Process(server.process.pid).memory_info().rss / 2**20)
            print(f"{time.strftime('%H:%M:%S')} turn {turn}: {max(of.put.values()):,} tuples a stream", flush=True)
            if number is None:
                of.stop.set()
                for thread in threads[:2]:
                    thread.join()
                of.done.set()
                for thread in [*threads[2:], *others]:
                    thread.join(600)
            of.port = None
            of.end(server, number or signal.SIGTERM)
    with Server(path) as server, fl.connect(f"grpc://127.0.0.1:{server.port}", middleware=[Bearer(_TOKEN)]) as client:
        kept = act(client, "status")["queries"]["near"]["rows"]
    n = of.put["orders"]
    table = splitjoin.join(pa.Table.from_batches([orders(0, n)]), pa.Table.from_batches([offers(0, of.put["offers"])]),
                           on="abs(r.price - s.ask) <= 3", window=_WINDOW, time="ts").table
    wanted = Rows()
    wanted.add(table.select(["ts_r", "price", "ask"]))
    of.problems += [f"follower {n} has {seen.count} rows, not these {wanted.count}" for n, seen in of.seen.items()
                    if seen != wanted]
    if kept != wanted.count:
        of.problems.append(f"a server that starts after the clean stop has {kept} rows, not these {wanted.count}")
    quarter = len(memory) // 4
    before, after = (min(part, default=0) for part in (memory[2 * quarter:3 * quarter], memory[3 * quarter:]))
    if quarter and after > before + _GROWTH:
        of.problems.append(f"the server grew from {before:.0f} to {after:.0f} MiB in its second half")
    print(f"{wanted.count:,} rows to each of {followers} followers, {kills} kills, {stops} clean stops and one at the "
          f"end, {of.vanished} puts whose client vanished, {of.refused} calls without the token refused, memory of the "
          f"last server {min(memory):.0f} to {max(memory):.0f} MiB: {len(of.problems)} problems", flush=True)
    return of.problems


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sw.server.soak", description="Soaks a server.")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stops", type=int, default=4)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two batches of 500 tuples")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = soak(Path(folder), clients=options.clients, seconds=options.seconds, kills=options.kills,
                        stops=options.stops, pause=options.pause, seed=options.seed)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
