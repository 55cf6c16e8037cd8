"""Many queries over one pair of streams: tuples are checked, ordered and kept once, and each query reads at its pace.

`SharedStreams` (streams.py) has the gate and the sequence of ready tuples (`splitjoin.sessions.gate.readers`). Each
`SharedQuery` (query.py) is the reading half of a session: a pipeline whose gate is a `Reader` of that sequence. The
`History` (history.py) holds what a query that is added later finds in its windows.
"""

from .query import SharedQuery
from .streams import SharedStreams

__all__ = ["SharedQuery", "SharedStreams"]
