"""Cases of other engines' joins, from what their documentation says: when each row comes there, and here.

Streams have the columns ``ts``, ``k`` and ``x`` (R), or ``a`` (S), which number the tuples. A row is ``(x, a)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = tuple[int | None, int | None]
Tuples = Sequence[tuple[int, int, int]]


@dataclass(frozen=True)
class Step:
    """One action, and the rows that come in it.

    Attributes:
        action: "r" or "s": tuples ``(ts, k, number)`` of that stream. "beat": a heartbeat of both streams, "idle": no
            tuple waits for the stream; "end".
        what: The tuples, the time, or the stream.
        theirs: The rows that the other engine gives.
        ours: The rows that a session gives, where they are others.
        withdrawn: Rows among ``theirs`` that the other engine takes back later, or should; a session with ``early``
            does.
    """

    action: str
    what: Any
    theirs: Sequence[Row] = ()
    ours: Sequence[Row] | None = None
    withdrawn: Sequence[Row] = ()


@dataclass(frozen=True)
class Case:
    """A join of another engine, and the same one here.

    Attributes:
        engine: Its name.
        title: The case in words.
        query: Arguments of `splitjoin.query`; ``on="r.k = s.k"`` and ``order="none"`` unless they say otherwise.
        steps: The actions.
        options: Arguments of `splitjoin.open`.
        why: The reason why rows come later here, or empty.
        in_spark: True if it also runs as a streaming join of Spark, a micro-batch a step.
    """

    engine: str
    title: str
    query: Mapping[str, Any]
    steps: Sequence[Step]
    options: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    in_spark: bool = False


def r(*tuples: tuple[int, int, int], theirs: Sequence[Row] = (), **more: Any) -> Step:
    return Step("r", tuples, theirs, **more)


def s(*tuples: tuple[int, int, int], theirs: Sequence[Row] = (), **more: Any) -> Step:
    return Step("s", tuples, theirs, **more)


_SPARK: Mapping[str, Any] = {"lateness": 10, "watermark": "spark"}
_EARLY: Mapping[str, Any] = {"early": True}
_FLINK: Mapping[str, Any] = {"lateness": 10**6}  # its watermarks are heartbeats

CASES: Sequence[Case] = [
    Case("Spark", "inner, equal keys: a pair with its second row", {"window": "RANGE 1000000"}, [
        r((0, 1, 1)), s((0, 1, 1), (0, 10, 2), theirs=[(1, 1)]), r((0, 10, 2), theirs=[(2, 2)]),
        s((0, 1, 3), theirs=[(1, 3)]), r((0, 1, 3), (0, 5, 4), theirs=[(3, 1), (3, 3)])], _SPARK, in_spark=True),
    Case("Spark", "inner, time range: pairs at once, out of order too", {"window": ("RANGE 5", "RANGE 1")}, [
        r((20, 1, 1)), s((25, 1, 1), (26, 1, 2), theirs=[(1, 1)]), s((19, 1, 3), (18, 1, 4), theirs=[(1, 3)]),
        r((17, 1, 2), theirs=[(2, 3), (2, 4)])], _SPARK, in_spark=True),
    Case("Spark", "a row at the watermark is late", {"window": "RANGE 20"}, [
        r((20, 1, 1)), s((20, 1, 1), theirs=[(1, 1)]), s((10, 1, 2)), s((11, 1, 3), theirs=[(1, 3)])], _SPARK,
        in_spark=True),
    Case("Spark", "inner, tumbling windows of 10 as a condition",
         {"on": "r.k = s.k AND r.ts div 10 = s.ts div 10", "window": "RANGE 9"}, [
             r((5, 1, 1)), s((9, 1, 1), (10, 1, 2), theirs=[(1, 1)]), r((12, 1, 2), theirs=[(2, 2)])], _SPARK,
         in_spark=True),
    Case("Spark", "left outer: the NULL row once the watermark is past the window", {"window": "RANGE 5",
                                                                                    "how": "left"}, [
        r((1, 1, 1), (2, 2, 2)), s((3, 1, 1), theirs=[(1, 1)]), s((40, 9, 2)), r((40, 8, 3), theirs=[(2, None)])],
        _SPARK, in_spark=True),
    Case("Spark", "right outer", {"window": "RANGE 5", "how": "right"}, [
        s((1, 1, 1), (2, 2, 2)), r((3, 1, 1), theirs=[(1, 1)]), r((40, 9, 2)), s((40, 8, 3), theirs=[(None, 2)])],
        _SPARK, in_spark=True),
    Case("Spark", "full outer", {"window": "RANGE 5", "how": "full"}, [
        r((1, 1, 1), (2, 2, 2)), s((3, 1, 1), (3, 3, 2), theirs=[(1, 1)]), s((40, 9, 3)),
        r((40, 8, 3), theirs=[(2, None), (None, 2)])], _SPARK, in_spark=True),
    Case("Spark", "left semi: a row with its first partner, once", {"window": "RANGE 5", "how": "semi"}, [
        r((1, 1, 1), (2, 2, 2)), s((3, 1, 1), theirs=[(1, None)]), s((4, 1, 2)), r((5, 1, 3), theirs=[(3, None)])],
        _SPARK, in_spark=True),
    Case("Spark", "the watermark is that of the slower stream", {"window": "RANGE 5", "how": "left"}, [
        r((1, 1, 1)), s((1, 2, 1)), r((90, 8, 2)), s((9, 7, 2)), s((30, 7, 3), theirs=[(1, None)])], _SPARK,
        in_spark=True),

    Case("Kafka Streams", "inner, ±100: edges belong to the window", {"window": "RANGE 100"}, [
        r((1000, 1, 1)), s((900, 1, 1), theirs=[(1, 1)]), s((1100, 1, 2), theirs=[(1, 2)]), s((1101, 1, 3))],
        {"lateness": 100, "watermark": "max"}, in_spark=True),
    Case("Kafka Streams", "inner, only after: [0, 100]", {"window": ("RANGE 100", "RANGE 0")}, [
        r((1000, 1, 1)), s((999, 1, 1)), s((1000, 1, 2), theirs=[(1, 2)]), s((1100, 1, 3), theirs=[(1, 3)])],
        {"lateness": 100, "watermark": "max"}),
    Case("Kafka Streams", "inner, only before: [−100, 0]", {"window": ("RANGE 0", "RANGE 100")}, [
        r((1000, 1, 1)), s((900, 1, 1), theirs=[(1, 1)]), s((1000, 1, 2), theirs=[(1, 2)]), s((1001, 1, 3))],
        {"lateness": 100, "watermark": "max"}),
    Case("Kafka Streams", "inner: each record meets all of its key", {"window": "RANGE 100"}, [
        r((0, 0, 1), (0, 1, 2)), s((0, 0, 1), (0, 1, 2), theirs=[(1, 1), (2, 2)]),
        r((0, 0, 3), theirs=[(3, 1)]), s((0, 0, 3), theirs=[(1, 3), (3, 3)])], {"lateness": 0, "watermark": "max"}),
    Case("Kafka Streams", "left: the NULL row when stream time closes the window", {"window": "RANGE 100",
                                                                                 "how": "left"}, [
        r((0, 0, 1), (0, 1, 2)), s((0, 0, 1), theirs=[(1, 1)]), r((100, 5, 3)), r((101, 5, 4), theirs=[(2, None)])],
        {"lateness": 0, "watermark": "max"}, in_spark=True),
    Case("Kafka Streams", "left, with grace: a late record within it joins", {"window": "RANGE 100", "how": "left"}, [
        r((0, 0, 1)), r((120, 5, 2)), s((80, 0, 1), theirs=[(1, 1)]), s((69, 0, 2)),
        r((271, 6, 3), theirs=[(2, None)])], {"lateness": 50, "watermark": "max"}),
    Case("Kafka Streams", "outer: both streams' NULL rows when stream time closes", {"window": "RANGE 10",
                                                                                   "how": "full"}, [
        r((0, 0, 1)), s((5, 1, 1)), s((16, 2, 2), theirs=[(1, None), (None, 1)])],
        {"lateness": 0, "watermark": "max"}),

    Case("Flink", "interval join [0, 2]: pairs at once", {"window": ("RANGE 2", "RANGE 0")}, [
        r((1, 1, 1)), s((1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4), theirs=[(1, 1), (1, 2), (1, 3)])], _FLINK),
    Case("Flink", "interval join [−2, −1]", {"on": "r.k = s.k AND s.ts <= r.ts - 1", "window": ("RANGE 0", "RANGE 2")},
         [r((4, 1, 1)), s((1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4), theirs=[(1, 2), (1, 3)])], _FLINK),
    Case("Flink", "interval join, exclusive bounds (0, 2)",
         {"on": "r.k = s.k AND s.ts > r.ts AND s.ts < r.ts + 2", "window": ("RANGE 2", "RANGE 0")},
         [s((1, 1, 1), (2, 1, 2), (3, 1, 3)), r((1, 1, 1), theirs=[(1, 2)])], _FLINK),
    Case("Flink", "interval join: either side may be first", {"window": "RANGE 2"}, [
        s((9, 1, 1)), r((8, 1, 1), theirs=[(1, 1)]), r((7, 1, 2), theirs=[(2, 1)]), s((5, 1, 2), theirs=[(2, 2)])],
        _FLINK),
    Case("Flink", "interval join: elements below the watermark are late", {"window": "RANGE 2"}, [
        Step("beat", 3), r((2, 1, 1), (3, 1, 2)), s((2, 1, 1), (3, 1, 2), theirs=[(2, 2)])], _FLINK),
    Case("Flink", "SQL interval join, left: the NULL row when the watermark is past the bound", {
        "window": "RANGE 2", "how": "left"}, [
        r((1, 1, 1)), s((1, 2, 1)), Step("beat", 3), Step("beat", 4, [(1, None)])], _FLINK),
    Case("Flink", "withIdleness: an idle input does not hold the watermark back", {
        "window": "RANGE 2", "how": "left"}, [
        r((1, 1, 1)), r((9, 2, 2)), Step("idle", "s", [(1, None)])], {"lateness": 0}),

    Case("Quix Streams", "join_interval, 5 backward: at once", {"window": ("RANGE 0", "RANGE 5")}, [
        s((1, 1, 1), (6, 1, 2)), r((6, 1, 1), theirs=[(1, 1), (1, 2)]), s((6, 1, 3), theirs=[(1, 3)])],
        {"lateness": 10}),
    Case("Quix Streams", "join_asof, inner: the latest partner known so far", {
        "window": ("RANGE 0", "RANGE 100"), "how": "asof"}, [
        s((1, 1, 1), (5, 1, 2)), r((6, 1, 1), theirs=[(1, 2)]), s((7, 1, 3)), Step("beat", 7)], _EARLY),
    Case("Quix Streams", "join_asof, inner: a partner that comes after its record is missed", {
        "window": ("RANGE 0", "RANGE 100"), "how": "asof"}, [
        s((1, 1, 1)), r((6, 1, 1), theirs=[(1, 1)], withdrawn=[(1, 1)]),
        s((5, 1, 2), (7, 1, 3), ours=[(1, 2)])], _EARLY),
    Case("Quix Streams", "join_asof, left: NULL at once", {"window": ("RANGE 0", "RANGE 100"), "how": "asof_left"}, [
        r((6, 1, 1), theirs=[(1, None)]), s((7, 1, 1)), Step("beat", 7)], _EARLY),

    Case("DolphinDB", "asof join engine: once the right stream is past the record", {
        "window": ("RANGE 0", "RANGE 100"), "how": "asof"}, [
        s((1, 1, 1)), r((6, 1, 1)), s((7, 1, 2), theirs=[(1, 1)])]),

    Case("Pathway", "interval_join [−2, 1]: at once", {"window": ("RANGE 1", "RANGE 2")}, [
        r((3, 1, 1)), s((1, 1, 1), (4, 1, 2), (5, 1, 3), theirs=[(1, 1), (1, 2)])], {"lateness": 10}),
    Case("Pathway", "window_join, tumbling(2), as a condition",
         {"on": "r.k = s.k AND r.ts div 2 = s.ts div 2", "window": "RANGE 1"}, [
             r((2, 1, 1), (4, 1, 2)), s((3, 1, 1), theirs=[(1, 1)]), s((4, 1, 2), theirs=[(2, 2)])],
         {"lateness": 10}),
    Case("Pathway", "interval_join_left: NULL at once, taken back when a partner comes", {
        "window": "RANGE 2", "how": "left"}, [
        r((3, 1, 1), theirs=[(1, None)], withdrawn=[(1, None)]), s((4, 1, 1), theirs=[(1, 1)])],
        {"lateness": 10, **_EARLY}),
    Case("Pathway", "interval_join_left: NULL at once, and it stays", {"window": "RANGE 2", "how": "left"}, [
        r((3, 1, 1), theirs=[(1, None)]), Step("beat", 6)], {"lateness": 10, **_EARLY}),
    Case("Pathway", "asof_join: the partner known so far, replaced by a later one", {
        "window": ("RANGE 0", "RANGE 100"), "how": "asof"}, [
        s((1, 1, 1)), r((6, 1, 1), theirs=[(1, 1)], withdrawn=[(1, 1)]),
        s((5, 1, 2), theirs=[(1, 2)]), Step("beat", 7)], _EARLY),
]
