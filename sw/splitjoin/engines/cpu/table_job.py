"""`TableJob`: a join of whole tables as its algorithms see it; and what these have in common."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any, ClassVar, Literal

from splitjoin.base.arrays import Ints
from splitjoin.lang.query import Query

from ..arrival import Arrivals
from ..device import TableAnswer
from .algorithm import Algorithm
from .condition import Condition, Planned, Reach
from .key_groups import Groups
from .table_windows import Spans
from .table_work import Work

#: What is asked of a join: terms of aggregates; the nearest partners by distance; the partner of an as-of join; whether
#: there is a partner (semi, anti); all pairs.
Shape = Literal["aggregates", "nearest", "as-of", "exists", "pairs"]

#: Nanoseconds that a tuple takes less than in a session, and a pair that one without an index compares.
_SESSION, _COMPARED = 750.0, 0.2
#: Nanoseconds of compiled loops: a tuple.
_TUPLE = 40.0


class TableJob:
    """``query`` over whole tables, ``incoming``, with what its algorithms need of it, found once. ``room``: the most
    pairs that fit into memory. ``work``: the threads. ``bases``: as of `Device.join_tables`.

    Attributes:
        ways: The ways of a band join (`band_join.ways_of`); None before they are asked for.
    """

    ways: list[Any] | None = None

    def __init__(self, query: Query, incoming: Arrivals, room: int, work: Work, bases: Ints | None = None):
        self.query, self.incoming, self.room, self.work, self.bases = query, incoming, room, work, bases

    @property
    def shape(self) -> Shape:
        """Kind of answer that the query needs."""
        query, kind = self.query, self.query.kind
        return "aggregates" if query.aggregates else "nearest" if query.chooses_by_distance else (
            "as-of" if kind.is_asof else "exists" if kind.needs_few_pairs else "pairs")

    @cached_property
    def visible(self) -> Spans:
        """Ranges of S that the windows show to each tuple of R."""
        return Spans(self.query, self.incoming, self.work)

    @cached_property
    def reach(self) -> Reach:
        """How far an as-of join looks by a condition on floats, which is tested on chosen partners."""
        return Reach.of(self.query)

    @cached_property
    def planned(self) -> Planned:
        """The plan of the rest of the condition."""
        return Planned.of(self.reach.query.predicate, self.incoming, self.work)

    @cached_property
    def condition(self) -> Condition:
        """The rest of the condition, in normal form: equalities, ranges, and what must be verified."""
        return Condition(self.reach.query, self.incoming, self.work, self.planned)

    @property
    def groups(self) -> Groups:
        """The tuples by equal keys."""
        return self.condition.groups()

    @property
    def session_cost(self) -> float:
        """Nanoseconds that a session takes for the tuples, beside their candidates."""
        return len(self.incoming) * _SESSION

    @property
    def nested_cost(self) -> float:
        """Nanoseconds that a session without an index takes."""
        return self.session_cost + self.visible.pairs * _COMPARED

    def share(self, more: float = 0.0) -> None:
        """Have as many threads as the work on all tuples pays for, and so many ``more`` nanoseconds."""
        self.work.share(len(self.incoming) * _TUPLE + more)

    def counters(self, candidates: int, matches: int) -> dict[str, int]:
        """The counters of an answer."""
        return {"tuples_r": len(self.incoming.r), "tuples_s": len(self.incoming.s), "comparisons": self.visible.pairs,
                "candidates": candidates, "matches": matches}


class TableAlgorithm(Algorithm[TableAnswer | None]):
    """An algorithm for the join ``job`` of whole tables. `run` gives None where it turns out to take longer than what
    follows in the table of algorithms, or to need more memory than there is.

    Attributes:
        shapes: What may be asked of it.
        has_prevailing: True if it finds prevailing rows, too.
    """

    shapes: ClassVar[Collection[str]]
    has_prevailing: ClassVar[bool] = False

    def __init__(self, job: TableJob):
        self.job = job

    @property
    def cost(self) -> float:
        """0, as by default an algorithm that suits takes less than a session."""
        return 0.0

    @property
    def limit(self) -> float:
        """Nanoseconds of the session that would run in its place."""
        return self.job.session_cost
