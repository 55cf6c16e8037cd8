"""Streaming sessions: the user pushes two streams in batches and polls results meanwhile, on any device.

A push passes through these objects:

1. `StreamJoin` (session.py): the public session, of two halves: `FeedingSession` (feeding.py) checks what is pushed,
   and blocks or refuses it while a bound is reached; `ReadingSession` (reading.py) gives the rows. Shared streams are
   the first half, and each of their queries is the second one. `AsyncStreamJoin` (aio.py) is a session for asyncio.
2. `Pipeline` (pipeline.py): merges the sources by its gate (`splitjoin.sessions.gate`), cuts the tuples that are ready
   into slices of arrival order, gives these to the device, gathers result rows, and takes the session's state from one
   device session to the next.
3. `NumberedSession` (rows/numbered.py), which the `RowOperator` (rows/operator.py) opens that decides the rows: one
   session of the device. It converts row ids, which restart in each device session, to those of the stream, and drops
   results that an earlier session has delivered already.
4. The device's own `Session` (`splitjoin.engines.device`). For a circuit it is `CircuitSession`, which encodes tuples
   and decodes results, over
5. a `Transport`, which moves words to and from one circuit: a simulator, or the link to a board.

Beside this path are the `RetainedWindows` (retained.py), from which result rows are gathered and a fresh device session
is filled, and the `ResultQueue` (results.py). A poll takes its rows from the queue, and then lets the pipeline continue
with input that a bound had held up: `StreamJoin` → `ResultQueue`, `Pipeline` → `NumberedSession` → the device's
session. `SessionSchemas` (schemas.py) hold the schemas of all stages, and a `Snapshot` (snapshot.py) is the state as
bytes.
"""

from .aio import AsyncSource, AsyncStreamJoin
from .limit import Limit
from .multiway import MultiwayJoin
from .opening import open as open, open_async, open_multiway, open_unsorted, query, share  # noqa: A004  # called as splitjoin.open
from .precision import AdaptivePrecision
from .session import StreamJoin
from .shared import CommonJoin, SharedQuery, SharedStreams
from .shedding import Shedding

__all__ = ["AdaptivePrecision", "AsyncSource", "AsyncStreamJoin", "CommonJoin", "Limit", "MultiwayJoin", "SharedQuery",
           "SharedStreams", "Shedding", "StreamJoin", "open_async", "open_multiway", "open_unsorted", "query", "share"]
