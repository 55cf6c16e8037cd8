"""`JoinedRows`: what a later join has to know of a DataFrame that an earlier join gave.

An inner join marks its result columns that are event times, in their metadata, which Spark keeps through `select`,
`where`, `withColumn` and new names. A mark says of which stream the column is the time, and how long that stream's
window is; so a later join knows the time of the latest tuple of a row, and the window of each (semantics, section 11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pyspark.sql import DataFrame, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import StructField, StructType

from splitjoin.base.errors import SchemaError, UnsupportedError, WindowError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .streaming.frontier import Frontier, digest_of
from .text import WHICH
from .views import quoted
from .workers import is_remote

#: The entry of a column's metadata.
_MARK = "splitjoin"
#: Nodes of Spark's plans that keep the parts of a join, and so the place of its watermark.
_KEPT = ("Project", "Filter", "SubqueryAlias", "View", "EventTimeWatermark", "CollectMetrics")


@dataclass(frozen=True)
class TupleTime:
    """The ``column`` with the time of a stream's tuples, and their window's ``length`` in ticks, None if it counts."""

    column: str
    length: int | None


@dataclass(frozen=True)
class _Mark:
    """The mark of a column: its stream's number, of how many, its window's length in ticks, the kind of the join; of
    streaming joins also name, groups and a digest of ``state=``.
    """

    stream: int
    of: int
    kind: str
    length: int | None = None
    join: str = ""
    groups: int = 0
    state: str = ""


@dataclass(frozen=True)
class JoinedRows:
    """The marks of a DataFrame: the ``times`` of the tuples that its rows are made of, stream by stream."""

    times: tuple[TupleTime, ...]
    mark: _Mark

    @classmethod
    def of(cls, frame: DataFrame, side: Side) -> JoinedRows | None:
        """What the columns of ``frame`` say; None if no join has marked them.

        Raises a `SplitJoinError` for joined rows that cannot be joined again.
        """
        found: dict[int, tuple[str, _Mark]] = {}
        for field in frame.schema:
            said = field.metadata.get(_MARK)
            if isinstance(said, dict) and {"stream", "of", "kind"} <= said.keys() <= {f.name for f in fields(_Mark)}:
                mark = _Mark(**said)
                found.setdefault(mark.stream, (field.name, mark))
        if not found:
            return None
        which = f"the {WHICH[side]} DataFrame"
        first = next(iter(found.values()))[1]
        if first.kind != "inner":
            raise UnsupportedError(f"{which} has rows of a join of kind {first.kind!r}, which come with older times "
                                   f"when they are decided; only the last join of a chain may be of another kind than "
                                   f"inner, so join the streams in another order")
        if len({(m.of, m.join, m.groups, m.state) for _, m in found.values()}) > 1:
            raise SchemaError(f"{which} has event times of several joins that do not read each other; join them by "
                              f"stream_join, not by Spark")
        if len(found) < first.of:
            raise SchemaError(f"{which} is made of {first.of} streams, but has the event times of {len(found)} of them "
                              f"({', '.join(name for name, _ in found.values())}); keep all of them, as its rows have "
                              f"the time of the latest")
        return cls(tuple(TupleTime(found[n][0], found[n][1].length) for n in range(first.of)), first)

    @property
    def window(self) -> int:
        """The shortest of the tuples' windows, in ticks. Raises `WindowError` if one counts rows."""
        lengths = [t.length for t in self.times if t.length is not None]
        if len(lengths) < len(self.times):
            raise WindowError("joined rows are joined again by windows of RANGE, without ROWS, but an earlier join of "
                              "them has a window that counts rows; give that one RANGE alone")
        return min(lengths)

    def frontier(self, frame: DataFrame, side: Side, root: str | None) -> Frontier:
        """Where the watermark of the rows is, if ``frame`` still has the parts of the join. ``root``: the state folder
        of the later join.

        Raises `UnsupportedError` if Spark does more than to choose and compute columns and rows between the joins, and
        `SchemaError` for another folder.
        """
        mark, which = self.mark, f"the {WHICH[side]} DataFrame"
        for line in _plan(frame).splitlines():
            node = line.lstrip(" :+-~").partition(" ")  # "~" marks streams
            if node[0] == "CollectMetrics" and node[2].startswith(f"{mark.join}, ["):
                break
            if node[0] not in _KEPT:
                raise UnsupportedError(f"{which} has the event times of the join {mark.join!r}, but between that and "
                                       f"this one Spark has a {node[0]}, behind which rows may be older than the "
                                       f"join's watermark; leave it out, or name one column as its time and give "
                                       f"late=…")
        else:
            raise UnsupportedError(f"{which} has the event times of the join {mark.join!r}, but Spark does not show "
                                   f"that join in its plan; name one column as its time and give late=…")
        if digest_of(root) != mark.state:
            raise SchemaError(f"{which} is rows of the join {mark.join!r}, which keeps its state elsewhere; give both "
                              f"joins the same state=…, or none")
        return Frontier(root, mark.join, mark.groups)


def streams_of(query: Query, side: Side, joined: JoinedRows | None) -> tuple[TupleTime, ...]:
    """The streams that input ``side`` of a join is made of."""
    if joined is not None:
        return joined.times
    if query.time is None:
        return ()
    window = query.window(side)
    return (TupleTime(query.time.name(side), None if window.rows is not None else window.length),)


def marked(result: StructType, query: Query, streams: Mapping[Side, Sequence[TupleTime]],
           sources: Mapping[str, tuple[Side, str]], frontier: Frontier | None = None) -> StructType:
    """``result`` with marks on its event times. ``sources``: the input column that a result column is, as it is;
    ``frontier``: of a streaming join.
    """
    every = [(side, t) for side in SIDES for t in streams[side]]
    number = {(side, t.column): n for n, (side, t) in enumerate(every)}
    own: dict[str, Any] = {} if frontier is None else {"join": frontier.name, "groups": frontier.groups,
                                       "state": digest_of(frontier.root)}
    kind = "with aggregates" if query.aggregates else query.kind.how
    made = StructType()
    for field in result:
        source = sources.get(field.name)
        mark: dict[str, Any] = {}
        if source in number:
            n = number[source]
            mark = {_MARK: {k: v for k, v in asdict(_Mark(n, len(every), kind, every[n][1].length, **own)).items()
                            if v is not None}}
        made.add(StructField(field.name, field.dataType, field.nullable, mark or None))
    return made


def with_marks(frame: DataFrame, result: StructType) -> DataFrame:
    """``frame`` with the marks of ``result``, which has the same columns."""
    return frame.select(*(F.col(quoted(f.name)).alias(f.name, metadata=f.metadata) if f.metadata else
                          F.col(quoted(f.name)) for f in result))


def _plan(frame: DataFrame) -> str:
    if not is_remote(frame.sparkSession):
        return str(frame._jdf.queryExecution().analyzed().toString())
    said = str(frame._explain_string(True))  # type: ignore[operator,unused-ignore]  # the client of Spark Connect has it
    return said.partition("== Analyzed Logical Plan ==\n")[2].partition("\n")[2].partition("\n== ")[0]
