"""`JoinService`: puts, followers and statements in threads of their own, beside the one that writes epochs."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from splitjoin.base.threads import sleep
from splitjoin.server import JoinService, ServerConfig, read_config

from ..support.scheduler import Scheduler
from .sessions import Row, batches, given, rows, together, tuples

WINDOW = 5
_FILE = """\
listen = "127.0.0.1:0"
folder = "results"
[epochs]
rows = 3
delay = 0.5
[limits]
unread = 6
[streams.r]
schema = "ts:int64, x:int32"
time = "ts"
[streams.s]
schema = "ts:int64, a:int32"
time = "ts"
[queries.q1]
sql = "SELECT r.ts AS ts_r, s.ts AS ts_s FROM r JOIN s ON r.x = s.a"
window = "RANGE {window}"
device = "golden"
[queries.q2]
sql = "SELECT r.ts AS ts_r, s.ts AS ts_s FROM r JOIN s ON r.x = s.a"
window = "RANGE {window}"
device = "golden"
"""


def configured(folder: Path) -> ServerConfig:
    """The configuration of a server with two equal queries over the tuples of `tuples`."""
    (folder / "join.toml").write_text(_FILE.format(window=WINDOW))
    return read_config(folder / "join.toml")


def service(scheduler: Scheduler, folder: Path) -> None:
    """Followers get all rows once; statements see a beginning of the rows, the same one of each query."""
    n = scheduler.chance.randint(3, 8)
    expected = rows(n, lambda side, number: WINDOW)
    followed: dict[str, list[Row]] = {"q1": [], "q2": []}
    with JoinService(configured(folder), lambda line: None) as server:
        def put(stream: str) -> None:
            source = server.source(stream, "main")
            for batch in batches(scheduler, n):
                source.push(tuples(stream, batch))
                assert server.position(stream, "main")["delivered"] == (batch.stop if batch else 0)
            server.release(stream, "main")
            server.finish(stream)

        def follow(query: str) -> None:
            for batch, place in server.rows(query):
                assert place["row"] == len(followed[query])
                followed[query].extend(given(batch))

        def state() -> None:
            for _ in range(5):
                seen = {}
                for query, (files, rest) in server.tables().items():
                    seen[query] = [row for file in files for row in given(pq.read_table(file))] + given(rest)
                    assert seen[query] == expected[:len(seen[query])]
                assert seen["q1"] == seen["q2"]
                server.status()
                sleep(scheduler.chance.choice([0.0, 0.1, 1.0]))

        together(scheduler, lambda: put("r"), lambda: put("s"), lambda: follow("q1"), lambda: follow("q2"), state)
        assert followed == {"q1": expected, "q2": expected}
        assert server.status()["trouble"] is None
