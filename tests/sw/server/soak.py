"""A server under many clients, some of them slow, vanishing, or talking garbage, which is killed again and again.

Run: python -m tests.sw.server.soak [--clients N] [--seconds N] [--kills N] [--seed N]. Two clients put, the others
follow from where they were. In the end every follower that stayed must have the rows of the join of all that was put,
once each and in order, and the last server's memory must not have grown with its age. Exits with 1 otherwise.
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

from .clients import Server, act, config, offers, orders

__all__ = ["main", "soak"]

#: Tuples of a batch, and seconds between two.
_BATCH, _PAUSE = 500, 0.05
#: MiB by which the server may grow from its third quarter to its last one.
_GROWTH = 200


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

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        self.port: int | None = None  # none while no server runs
        self.stop, self.done = threading.Event(), threading.Event()
        self.put = {"orders": 0, "offers": 0}
        self.seen: dict[int, Rows] = {}
        self.problems: list[str] = []

    def connected(self, use: Any) -> None:
        """Call ``use`` with a client, again whenever the server has gone, until it returns true."""
        while True:
            port = self.port
            if port is None:
                time.sleep(0.05)
                continue
            try:
                with fl.connect(f"grpc://127.0.0.1:{port}") as client:
                    if use(client):
                        return
            except (fl.FlightError, pa.ArrowException, OSError):
                time.sleep(0.1)  # the server was killed, or stops

    def putting(self, stream: str, make: Any) -> None:
        """Put batches until the end, each from where the server stands."""
        def use(client: Any) -> bool:
            at = act(client, "position", stream=stream)["delivered"]
            command = json.dumps({"stream": stream, "from": at, "acknowledge": True}).encode()
            writer, reader = client.do_put(fl.FlightDescriptor.for_command(command), make(0, 1).schema)
            while not (self.stop.is_set() and at >= max(self.put.values())):
                writer.write_batch(make(at, at + _BATCH))
                reader.read()
                at += _BATCH
                self.put[stream] = max(self.put[stream], at)
                time.sleep(_PAUSE)
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

    def disturbing(self) -> None:
        """Vanish, send garbage, and ask for what is not there, until the end."""
        def use(client: Any) -> bool:
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


def soak(folder: Path, *, clients: int, seconds: float, kills: int, seed: int) -> list[str]:
    """The problems that were found."""
    path, of = config(folder, more="[limits]\nsubscriptions = 200\nstatement_seconds = 2"), Clients(seed)
    followers = max(clients - 4, 1)
    threads = [threading.Thread(target=of.putting, args=one, daemon=True)
               for one in (("orders", orders), ("offers", offers))]
    threads += [threading.Thread(target=of.following, args=(n,), kwargs={"slow": n % 5 == 4}, daemon=True)
                for n in range(followers)]
    disturbers = [threading.Thread(target=of.disturbing, daemon=True) for _ in range(2)]
    for thread in [*threads, *disturbers]:
        thread.start()
    memory: list[float] = []
    for turn in range(kills + 1):
        with Server(path) as server:
            of.port = server.port
            end = time.monotonic() + seconds / (kills + 1) * (0.5 + of.chance.random() if turn < kills else 1)
            while time.monotonic() < end:
                time.sleep(1)
                if turn == kills:
                    memory.append(psutil.Process(server.process.pid).memory_info().rss / 2**20)
            print(f"{time.strftime('%H:%M:%S')} turn {turn}: {max(of.put.values()):,} tuples a stream", flush=True)
            if turn < kills:
                of.port = None
                server.end(signal.SIGKILL)
                continue
            of.stop.set()
            for thread in threads[:2]:
                thread.join()
            of.done.set()
            for thread in threads[2:]:
                thread.join(600)
            of.port = None
    n = of.put["orders"]
    table = splitjoin.join(pa.Table.from_batches([orders(0, n)]), pa.Table.from_batches([offers(0, of.put["offers"])]),
                           on="abs(r.price - s.ask) <= 3", window="RANGE 20", time="ts").table
    wanted = Rows()
    wanted.add(table.select(["ts_r", "price", "ask"]))
    of.problems += [f"follower {n} has {seen.count} rows, not these {wanted.count}" for n, seen in of.seen.items()
                    if seen != wanted]
    quarter = len(memory) // 4
    before, after = (min(part, default=0) for part in (memory[2 * quarter:3 * quarter], memory[3 * quarter:]))
    if quarter and after > before + _GROWTH:
        of.problems.append(f"the server grew from {before:.0f} to {after:.0f} MiB in its second half")
    print(f"{wanted.count:,} rows to each of {followers} followers, {kills} kills, memory of the last server "
          f"{min(memory):.0f} to {max(memory):.0f} MiB: {len(of.problems)} problems", flush=True)
    return of.problems


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sw.server.soak", description="Soaks a server.")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = soak(Path(folder), clients=options.clients, seconds=options.seconds, kills=options.kills,
                        seed=options.seed)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
