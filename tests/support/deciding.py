"""The rows of other kinds of join by `KindOperator`, from all items of the inner join."""

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import Items
from splitjoin.lang.query import Query
from splitjoin.rows.kinds import KindOperator


def decide(query: Query, arrivals: Arrivals, items: Items) -> Items:
    """The rows of ``query`` from all arrivals and all items of the inner join, in total order."""
    return KindOperator(query).between(arrivals, items, 0, None, None).items
