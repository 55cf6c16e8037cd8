"""Producers and readers in threads of their own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import splitjoin
from splitjoin import Limit, StreamJoin
from splitjoin.engines.cpu import CpuDevice
from splitjoin.sessions.results import ResultQueue

from ...support.sessions import R, in_thread, joined, query, r, s


def test_iteration_waits_for_a_producer() -> None:
    def produce() -> None:
        for at in range(0, 600, 10):
            session.push_r(r(*range(at, at + 10)))
            session.push_s(s(*range(at, at + 10)))
        session.close_r()
        session.close_s()

    with StreamJoin(query(window="RANGE 3"), CpuDevice(), limit=7, when_full="block") as session:
        thread, _, result = in_thread(produce)
        batches = list(session)
        joined(thread)
        assert result == [None]
        assert all(len(b) for b in batches)
        expected = splitjoin.join(r(*range(600)), s(*range(600)), on="r.x = s.a", window="RANGE 3", time="ts",
                                  device="golden")
        assert pa.Table.from_batches(batches).to_pylist() == expected.to_pylist()
        assert session.finished
        assert list(session) == []


def test_a_failure_before_a_reader_waits_is_not_missed() -> None:
    queue = ResultQueue(R, punctuated=False)
    queue.fail()
    queue.wait(None)
    queue.recover()
    thread, *_ = in_thread(lambda: queue.wait(None))
    thread.join(0.05)
    assert thread.is_alive()
    queue.fail()
    joined(thread)


def test_many_producers_of_many_sources() -> None:
    def produce(source: Any, make: Any) -> None:
        with source:
            for at in range(0, 300, 5):
                source.push(make(*range(at, at + 5)))

    with StreamJoin(query(window="RANGE 2"), CpuDevice(), limit=Limit(rows=50, waiting=20), when_full="block") as j:
        sources = [(j.source("r"), r), (j.source("s"), s), (j.source("r"), r), (j.source("s"), s)]
        threads = [in_thread(lambda source=source, make=make: produce(source, make)) for source, make in sources]
        threads.append(in_thread(lambda: [joined(t) for t, *_ in threads[:4]] and (j.close_r(), j.close_s())))
        rows = pa.Table.from_batches(list(j))
        for thread, _, result in threads:
            joined(thread)
            assert not isinstance(result[0], BaseException), result
        twice = [t for t in range(300) for _ in (0, 1)]
        expected = splitjoin.join(r(*twice), s(*twice), on="r.x = s.a", window="RANGE 2", time="ts", device="golden")
        assert rows.to_pylist() == expected.to_pylist()
