"""Streaming sessions: two streams are pushed in batches and results are polled meanwhile, on any device.

A push passes these objects, each for one reason:

1. `StreamJoin` (session.py): the public session. Checks arguments, lets one thread at a time work, and makes a push
   wait, or refuses it, while a bound is reached. `AsyncStreamJoin` (aio.py) is the same for asyncio.
2. `Pipeline` (pipeline.py): merges the sources by its gate (`splitjoin.gate`), cuts the tuples that are ready into
   slices of arrival order, gives these to the device, gathers result rows, and takes the session's state from one
   device session to the next.
3. `NumberedSession` (numbered.py): one session of the device. Converts its row ids, which begin anew in each, to those
   of the stream, and leaves out what an earlier session has given out already.
4. The device's own `Session` (`splitjoin.device.api`). Of a circuit that is `CircuitSession`, which encodes tuples and
   decodes results, over
5. a `Transport`, which moves words to and from one circuit: a simulator, or the link to a board.

Beside this path are the `RetainedWindows` (retained.py), from which result rows are gathered and a fresh device session
is filled, and the `ResultQueue` (results.py). A poll takes its rows from the queue, and then lets the pipeline continue
with input that a bound held up: `StreamJoin` → `ResultQueue`, `Pipeline` → `NumberedSession` → the device's session.
`SessionSchemas` (schemas.py) are the columns on the way, a `Snapshot` (snapshot.py) is the state as bytes.
"""

from .aio import AsyncSource, AsyncStreamJoin
from .opening import open as open, open_async, query  # noqa: A004  # called as splitjoin.open
from .pipeline import Limit
from .session import StreamJoin

__all__ = ["AsyncSource", "AsyncStreamJoin", "Limit", "StreamJoin", "open_async", "query"]
