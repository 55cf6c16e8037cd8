"""The choice among the algorithms that join whole tables: the first line of a table that suits, and is expected to take
less than a session.
"""

from __future__ import annotations

from splitjoin.base.arrays import Ints
from splitjoin.lang.query import Query

from ..arrival import Arrivals
from ..device import TableAnswer
from .as_of_join import NearestJoin, PartnerJoin
from .band_join import BandJoin, BucketJoin, DisjunctionJoin, SlicedJoin
from .coded_nulls import with_coded_nulls
from .hash_join import HashJoin, HashSemiJoin
from .range_folds import PrevailingJoin, RangeFold
from .table_job import TableAlgorithm, TableJob
from .table_work import Work

#: The algorithms, in the order in which they are asked: those before others look at fewer rows. README.md says when
#: each of them runs.
TABLE_ALGORITHMS: tuple[type[TableAlgorithm], ...] = (
    RangeFold, PrevailingJoin, NearestJoin, HashJoin, HashSemiJoin, SlicedJoin, PartnerJoin, DisjunctionJoin, BandJoin,
    BucketJoin)


def join_tables(query: Query, incoming: Arrivals, room: int, work: Work,
                bases: Ints | None = None) -> TableAnswer | None:
    """As `Device.join_tables`."""
    query, incoming = with_coded_nulls(query, incoming)
    job = TableJob(query, incoming, room, work, bases)
    if job.shape not in ("aggregates", "nearest") and query.order.kind not in ("total", "none", "left"):
        return None
    job.share()
    for kind in TABLE_ALGORITHMS:
        if job.shape in kind.shapes and (kind.has_prevailing or not query.prevailing):
            one = kind(job)
            if one.suits and one.cost <= one.limit and (found := one.run()) is not None:
                return found
    return None
