"""Many queries over one pair of streams: tuples are checked, ordered and kept once, and each query reads at its pace.

`SharedStreams` (streams.py) has the gate and the sequence of ready tuples (`splitjoin.sessions.gate.readers`). Each
`SharedQuery` (query.py) is the reading half of a session: a pipeline whose gate is a `GateReader` of that sequence. The
`History` (input.py) holds what a query that is added later finds in its windows.

Several queries can choose their pairs (`ChosenPairs`, chosen_pairs.py) from those of one `CommonJoin`
(common_join.py), whose `SharedScan` (scan.py) is one pipeline.
"""

from .common_join import CommonJoin
from .query import SharedQuery
from .streams import SharedStreams

__all__ = ["CommonJoin", "SharedQuery", "SharedStreams"]
