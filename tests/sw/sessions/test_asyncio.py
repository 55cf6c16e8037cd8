"""Sessions under asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import splitjoin
from splitjoin import DeviceError, Limit

from ...support.lagging import LaggingDevice
from ...support.sessions import query, r, s


def test_asyncio_waits_for_room_and_for_rows() -> None:
    most = 0

    async def produce(session: splitjoin.AsyncStreamJoin) -> None:
        nonlocal most
        for at in range(0, 300, 10):
            await session.push_r(r(*range(at, at + 10)))
            await session.push_s(s(*range(at, at + 10)))
            most = max(most, (await session.counters())["unread_rows"])
        await session.close_r()
        await session.close_s()

    async def run() -> list[Any]:
        async with splitjoin.open_async(query(window="RANGE 3"), "golden", limit=7) as session:
            task = asyncio.create_task(produce(session))
            rows = [row async for batch in session for row in batch.to_pylist()]
            await task
            assert session.finished
            assert [b async for b in session] == []
            return rows

    rows = asyncio.run(run())
    expected = splitjoin.join(r(*range(300)), s(*range(300)), on="r.x = s.a", window="RANGE 3", time="ts",
                              device="golden")
    assert rows == expected.to_pylist()
    assert most <= 7 + 10 * 14


def test_asyncio_has_all_that_sessions_have() -> None:
    async def run() -> None:
        made = query()
        async with splitjoin.open_async(made, "golden", lateness=3, watermark="source", punctuation=True) as session:
            async with await session.source("r") as source:
                await source.push(r(5, 1, 6))
                await source.heartbeat(7)
            await session.push_s(s(4))
            await session.heartbeat(9)
            items, rows = await session.poll_items()
            assert (len(items), len(rows)) == (5, 2)
            assert (await session.late_r())["ts"].to_pylist() == [1]
            assert (await session.late_s()).num_rows == 0
            saved = await session.snapshot()
            await session.restart("golden")
            assert (await session.source_at("r", 0)).index == 0
            async with splitjoin.open_async(made, LaggingDevice(3), lateness=3, watermark="source",
                                            punctuation=True) as other:
                await other.restore(saved)
                await other.push_s(s(20))
                reader = asyncio.create_task(anext(aiter(other)))
                await asyncio.sleep(0.05)
                await other.push_r(r(30))
                await other.close_r()
                await other.close_s()
                assert len(await reader) + sum([len(batch) async for batch in other]) == 4
                assert len(await other.flush()) == 0
                assert other.schema == rows.schema
            await other.close()
            with pytest.raises(DeviceError, match="the session is closed"):
                await other.poll()

    asyncio.run(run())


def test_a_cancelled_push_that_waits_takes_nothing() -> None:
    async def run() -> None:
        async with splitjoin.open_async(query(), "golden", limit=Limit(waiting=2)) as session:
            await session.push_r(r(1, 2))
            push = asyncio.create_task(session.push_r(r(3)))
            await asyncio.sleep(0.05)
            push.cancel()
            with pytest.raises(asyncio.CancelledError):
                await push
            await session.push_s(s(9))
            assert (await session.counters())["waiting"] == 1  # S itself
            closing = asyncio.create_task(session.push_s(s(10)))
            await asyncio.sleep(0)
            await session.close()
            assert isinstance((await asyncio.gather(closing, return_exceptions=True))[0], (DeviceError, type(None)))

    asyncio.run(run())


def test_what_a_cancelled_call_gives_is_of_the_next_one() -> None:
    async def cancelled(call: Any) -> None:
        """Cancel ``call`` twice while it is at work."""
        task = asyncio.create_task(call)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def run() -> None:
        async with splitjoin.open_async(query(), "golden", lateness=0, watermark="source", when_full="shed",
                                        shedding=splitjoin.Shedding(capacity=9, threshold=8),
                                        punctuation=True) as session:
            await session.push_r(r(1, 9, 4))
            await session.push_s(s(10))
            for call in (session.poll, session.poll_items, aiter(session).__anext__, session.flush):
                await cancelled(call())
            batch = await session.poll()
            assert len(batch) > 0 and len(await session.poll()) == 0
            for name, dropped in (("late_r", 1), ("shed_r", 0), ("late_s", 0), ("shed_s", 0)):
                await cancelled(getattr(session, name)())
                assert len(await getattr(session, name)()) == dropped, name
                assert len(await getattr(session, name)()) == 0
            assert session.finished and (await session.counters())["late_r"] == 1

    asyncio.run(run())


def test_changes_and_dropped_tuples_are_those_of_the_session() -> None:
    async def run() -> None:
        async with splitjoin.open_async(query(order="outer(2)"), "golden", when_full="shed",
                                        shedding=splitjoin.Shedding(capacity=3)) as session:
            assert await session.mask([0], of=2) == (0, 0)
            assert await session.precision(3) == (0, 0)
            await session.move("cpu")
            assert await session.window("RANGE 900") == (0, 0)
            await session.push_r(r(1, 2, 3, 4, 5))
            await session.push_s(s(6))
            assert len(await session.shed_r()) == (await session.counters())["shed_r"] > 0
            assert len(await session.shed_s()) == 0
            rows = await session.flush()
            assert rows["ts_r"].to_pylist() == [2], "r#0 and r#2 are hidden"

    asyncio.run(run())
