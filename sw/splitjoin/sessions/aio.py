"""`AsyncStreamJoin`: a streaming session for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from splitjoin.base.errors import BackPressure, DeviceError
from splitjoin.engines.device import Device, Fault, Items
from splitjoin.lang.schema import Side

from .gate import Source
from .session import StreamJoin

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(method: Callable[Concatenate[StreamJoin, P], T]) -> Callable[
        Concatenate[AsyncStreamJoin, P], Coroutine[Any, Any, T]]:
    """``method`` of the session, to be awaited; it also wakes the tasks that it may let continue."""
    @wraps(method)
    async def call(self: AsyncStreamJoin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._change(method, self._session, *args, **kwargs)

    return call


class AsyncStreamJoin:
    """A `StreamJoin` whose methods are awaited; `splitjoin.open_async` makes it.

    It has those of `StreamJoin` with their arguments: ``push_r``, ``push_s``, ``source``, ``source_at``, ``heartbeat``,
    ``idle``, ``close_r``, ``close_s``, ``poll``, ``poll_items``, ``flush``, ``late_r``, ``late_s``, ``shed_r``,
    ``shed_s``, ``counters``, ``plan``, ``mask``, ``precision``, ``window``, ``move``, ``restart``, ``snapshot``,
    ``restore`` and ``close``; ``schema``, ``finished`` and ``faults`` are at hand.

    A push waits while the session is full, and the event loop runs meanwhile; all work is done in one thread. A push
    that is cancelled while it waits has taken no tuple; one that was at work has. Rows and tuples that a cancelled call
    took are given by the next one. ``session`` must not have been opened with ``when_full="block"``, and must not be
    used by others.
    """

    def __init__(self, session: StreamJoin):
        self._session = session
        self._changed = asyncio.Condition()
        self._thread = ThreadPoolExecutor(1, "splitjoin")
        self._closed = False

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the results."""
        return self._session.schema

    @property
    def finished(self) -> bool:
        """True if both streams are closed and all rows have been given out."""
        return self._session.finished

    async def push_r(self, data: Any) -> None:
        """Deliver tuples of R when there is room (see `StreamJoin.push_r`)."""
        await self._deliver(self._session.push_r, data)

    async def push_s(self, data: Any) -> None:
        """Deliver tuples of S when there is room (see `StreamJoin.push_s`)."""
        await self._deliver(self._session.push_s, data)

    async def source(self, stream: Side) -> AsyncSource:
        """Add a source of ``stream`` (see `StreamJoin.source`)."""
        return AsyncSource(self, await self._change(self._session.source, stream))

    async def source_at(self, stream: Side, index: int) -> AsyncSource:
        """The source ``index`` of ``stream`` (see `StreamJoin.source_at`)."""
        return AsyncSource(self, await self._change(self._session.source_at, stream, index))

    heartbeat = _awaited(StreamJoin.heartbeat)
    idle = _awaited(StreamJoin.idle)
    close_r = _awaited(StreamJoin.close_r)
    close_s = _awaited(StreamJoin.close_s)
    counters = _awaited(StreamJoin.counters)
    plan = _awaited(StreamJoin.plan)
    mask = _awaited(StreamJoin.mask)
    precision = _awaited(StreamJoin.precision)
    window = _awaited(StreamJoin.window)
    snapshot = _awaited(StreamJoin.snapshot)
    restore = _awaited(StreamJoin.restore)

    async def poll(self) -> pa.RecordBatch:
        """The complete rows that were not returned yet (see `StreamJoin.poll`)."""
        return (await self._take(self._session.polled))[1]

    async def poll_items(self) -> tuple[Items, pa.RecordBatch]:
        """The rows of a `poll` with their items (see `StreamJoin.poll_items`)."""
        self._session.check_punctuated()
        return await self._take(self._session.polled)

    async def flush(self) -> pa.RecordBatch:
        """End both streams, and return all remaining rows (see `StreamJoin.flush`)."""
        return await self._take(self._session.flushed)

    async def late_r(self) -> pa.Table:
        """R's late tuples since the last call (see `StreamJoin.late_r`)."""
        return await self._take(self._session.set_apart, "late", "r")

    async def late_s(self) -> pa.Table:
        """S's late tuples since the last call."""
        return await self._take(self._session.set_apart, "late", "s")

    async def shed_r(self) -> pa.Table:
        """R's tuples that were dropped under load since the last call (see `StreamJoin.shed_r`)."""
        return await self._take(self._session.set_apart, "shed", "r")

    async def shed_s(self) -> pa.Table:
        """S's tuples that were dropped under load since the last call."""
        return await self._take(self._session.set_apart, "shed", "s")

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield batches as they become complete, each with at least one row, until both streams are drained."""
        while True:
            async with self._changed:
                _, batch = await self._taken(self._session.polled)
                if len(batch):
                    self._changed.notify_all()
                elif self._session.finished:
                    return
                else:
                    await self._wait()
            if len(batch):
                yield batch

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The cores that the device has left out (see `StreamJoin.faults`)."""
        return self._session.faults

    async def move(self, device: str | Device, **options: Any) -> None:
        """Go on on another device without a replay (see `StreamJoin.move`)."""
        await self._change(lambda: self._session.move(device, **options))

    async def restart(self, device: str | Device | None = None, **options: Any) -> None:
        """Continue in a fresh device session (see `StreamJoin.restart`)."""
        await self._change(lambda: self._session.restart(device, **options))

    async def close(self) -> None:
        """Release the device (see `StreamJoin.close`). Waiting pushes raise."""
        if not self._closed:
            await self._change(self._session.close)
            self._closed = True
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncStreamJoin:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _deliver(self, push: Callable[[Any], None], data: Any) -> None:
        async with self._changed:
            while True:
                try:
                    await self._call(push, data)
                    break
                except BackPressure:
                    await self._wait()
            self._changed.notify_all()

    async def _change(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``call``, and wake the tasks that the call may let continue."""
        async with self._waking():
            return await self._call(call, *args, **kwargs)

    async def _take(self, call: Callable[P, tuple[T, Callable[[], None]]], *args: P.args, **kwargs: P.kwargs) -> T:
        """`_taken`, and wake the tasks that the call may let continue."""
        async with self._waking():
            return await self._taken(call, *args, **kwargs)

    @asynccontextmanager
    async def _waking(self) -> AsyncIterator[None]:
        """Hold the lock, and wake the tasks that wait at the end of the block."""
        async with self._changed:
            try:
                yield
            finally:
                self._changed.notify_all()

    async def _taken(self, call: Callable[P, tuple[T, Callable[[], None]]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``call``, which returns a result and the function that puts it back. A caller that is cancelled does not
        get the result, so it is put back.
        """
        given = list[Callable[[], None]]()

        def kept() -> T:
            found, undo = call(*args, **kwargs)
            given.append(undo)
            return found

        try:
            return await self._call(kept)
        except asyncio.CancelledError:
            for undo in given:
                undo()
            raise

    async def _call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call in the worker thread. Even a cancelled caller waits for a call that has begun there."""
        if self._closed:
            raise DeviceError("the session is closed")
        done = asyncio.get_running_loop().run_in_executor(self._thread, lambda: call(*args, **kwargs))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            while not done.done():
                with suppress(asyncio.CancelledError):  # a second one, for which the first one is raised
                    await asyncio.wait([done])
            raise

    async def _wait(self) -> None:
        """Wait until the session has changed, or may have rows by itself."""
        try:
            await asyncio.wait_for(self._changed.wait(), self._session._patience)
        except TimeoutError:
            return


class AsyncSource:
    """A source of an `AsyncStreamJoin`. Use as a context manager to close it at the end."""

    def __init__(self, session: AsyncStreamJoin, source: Source):
        self._session, self._source = session, source
        self.side, self.index = source.side, source.index

    async def push(self, data: Any) -> None:
        """Deliver the source's next tuples when there is room (see `Source.push`)."""
        await self._session._deliver(self._source.push, data)

    async def heartbeat(self, time: Any) -> None:
        """Promise no more tuples below ``time`` (see `Source.heartbeat`)."""
        await self._session._change(self._source.heartbeat, time)

    async def idle(self) -> None:
        """Let no other source wait for this one until it speaks (see `Source.idle`)."""
        await self._session._change(self._source.idle)

    async def close(self) -> None:
        """Close the source (see `Source.close`)."""
        await self._session._change(self._source.close)

    async def __aenter__(self) -> AsyncSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
