"""`AsyncStreamJoin`: a streaming session for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from splitjoin.base.errors import BackPressure, DeviceError
from splitjoin.engines.device import Device, Fault, Items
from splitjoin.lang.schema import Side
from splitjoin.lang.windows import WindowSpec

from .gate import Source
from .session import StreamJoin

__all__ = ["AsyncSource", "AsyncStreamJoin"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncStreamJoin:
    """A `StreamJoin` whose methods are awaited; `splitjoin.open_async` makes it.

    A push waits while the session is full, and the event loop runs meanwhile; all work is done in one thread. A push
    that is cancelled while it waits has taken no tuple. ``session`` must not have been opened with
    ``when_full="block"``, and must not be used by others.
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

    async def heartbeat(self, time: Any, stream: Side | None = None) -> None:
        """Promise no more tuples below ``time`` (see `StreamJoin.heartbeat`)."""
        await self._change(self._session.heartbeat, time, stream)

    async def idle(self, stream: Side) -> None:
        """Declare the sources of ``stream`` silent (see `StreamJoin.idle`)."""
        await self._change(self._session.idle, stream)

    async def close_r(self) -> None:
        """Close R (see `StreamJoin.close_r`)."""
        await self._change(self._session.close_r)

    async def close_s(self) -> None:
        """Close S (see `StreamJoin.close_s`)."""
        await self._change(self._session.close_s)

    async def poll(self) -> pa.RecordBatch:
        """The complete result rows that were not returned yet (see `StreamJoin.poll`)."""
        return await self._change(self._session.poll)

    async def poll_items(self) -> tuple[Items, pa.RecordBatch]:
        """The result rows of a poll with their items (see `StreamJoin.poll_items`)."""
        return await self._change(self._session.poll_items)

    async def flush(self) -> pa.RecordBatch:
        """End both streams, and return all remaining rows (see `StreamJoin.flush`)."""
        return await self._change(self._session.flush)

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield batches as they become complete, each with at least one row, until both streams are drained."""
        while True:
            async with self._changed:
                batch = await self._call(self._session.poll)
                if len(batch):
                    self._changed.notify_all()
                elif self._session.finished:
                    return
                else:
                    await self._wait()
            if len(batch):
                yield batch

    async def late_r(self) -> pa.Table:
        """R's late tuples since the last call (see `StreamJoin.late_r`)."""
        return await self._change(self._session.late_r)

    async def late_s(self) -> pa.Table:
        """S's late tuples since the last call (see `StreamJoin.late_s`)."""
        return await self._change(self._session.late_s)

    async def shed_r(self) -> pa.Table:
        """R's tuples that were dropped under load since the last call (see `StreamJoin.shed_r`)."""
        return await self._change(self._session.shed_r)

    async def shed_s(self) -> pa.Table:
        """S's tuples that were dropped under load since the last call (see `StreamJoin.shed_s`)."""
        return await self._change(self._session.shed_s)

    async def counters(self) -> dict[str, int]:
        """Counters of the session (see `StreamJoin.counters`)."""
        return await self._change(self._session.counters)

    async def plan(self) -> str:
        """The way in which rows are found at present (see `StreamJoin.plan`)."""
        return await self._change(self._session.plan)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The cores that the device has left out (see `StreamJoin.faults`)."""
        return self._session.faults

    async def mask(self, cores: Collection[int], *, of: int | None = None) -> tuple[int, int]:
        """Leave out pairs by the sub-windows of their stored tuples (see `StreamJoin.mask`)."""
        return await self._change(lambda: self._session.mask(cores, of=of))

    async def precision(self, n: int) -> tuple[int, int]:
        """Change how often stars come in order ``outer`` (see `StreamJoin.precision`)."""
        return await self._change(self._session.precision, n)

    async def window(self, window: WindowSpec) -> tuple[int, int]:
        """Change the windows (see `StreamJoin.window`)."""
        return await self._change(self._session.window, window)

    async def move(self, device: str | Device, **options: Any) -> None:
        """Go on on another device without a replay (see `StreamJoin.move`)."""
        await self._change(lambda: self._session.move(device, **options))

    async def snapshot(self) -> bytes:
        """The state of the session as bytes (see `StreamJoin.snapshot`)."""
        return await self._change(self._session.snapshot)

    async def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot (see `StreamJoin.restore`)."""
        await self._change(self._session.restore, snapshot)

    async def restart(self, device: str | Device | None = None, *, device_options: Mapping[str, Any] | None = None,
                      **options: object) -> None:
        """Continue in a fresh device session (see `StreamJoin.restart`)."""
        await self._change(self._session.restart, device, device_options=device_options, **options)

    async def close(self) -> None:
        """Release the device (see `StreamJoin.close`). Waiting pushes raise."""
        if not self._closed:
            await self._change(self._session.close)
            self._closed = True
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncStreamJoin:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
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
        """Call ``function`` of the session, and wake the tasks that the call may let continue."""
        async with self._changed:
            try:
                return await self._call(call, *args, **kwargs)
            finally:
                self._changed.notify_all()

    async def _call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call in the worker thread. Even a cancelled caller waits for a call that has begun there."""
        if self._closed:
            raise DeviceError("the session is closed")
        done = asyncio.get_running_loop().run_in_executor(self._thread, lambda: call(*args, **kwargs))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
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
