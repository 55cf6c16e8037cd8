"""Two small streams, a query over them, and threads to feed a session from."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pyarrow as pa

import splitjoin
from splitjoin import Query, StreamJoin

from .patience import SOON

R, S = pa.schema([("ts", pa.int64()), ("x", pa.int32())]), pa.schema([("ts", pa.int64()), ("a", pa.int32())])
#: The message of a push after the end of its stream.
FINISHED = "stream r is finished and takes no more tuples or sources; push before it is closed, or open a new session"


def query(**more: Any) -> Query:
    return splitjoin.query(R, S, **{"on": "r.x = s.a", "window": "RANGE 1000", "time": "ts"} | more)


def r(*times: int) -> pa.Table:
    return pa.table({"ts": times, "x": [0] * len(times)}, schema=R)


def s(*times: int) -> pa.Table:
    return pa.table({"ts": times, "a": [0] * len(times)}, schema=S)


def in_thread(call: Any) -> tuple[Thread, Event, list[Any]]:
    """Run ``call`` in a thread. Returns the thread, an event set when it begins, and its result or exception."""
    begun, result = Event(), []

    def run() -> None:
        begun.set()
        try:
            result.append(call())
        except BaseException as error:
            result.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    assert begun.wait(SOON)
    return thread, begun, result


def blocked(session: StreamJoin) -> None:
    """Wait until a push of another thread waits for room."""
    for _ in range(60_000):
        with session._lock:  # a push that needs room holds the lock, except while it waits
            if session._blocked:
                return
        Event().wait(0.001)
    raise AssertionError("nobody waits")


def joined(thread: Thread) -> None:
    thread.join(SOON)
    assert not thread.is_alive()
