"""`RewrittenJoin`: a join of batch DataFrames as SQL of Spark's own, as an expert writes it, without Python.

The band of the condition, and the windows in time, are cut into bins of their own length. A row of one side is in one
bin, a row of the other in the two that its partners may be in: Spark joins equal bins, and then decides the condition.
So a pair is found once. The rows that are copied are those of the smaller side, or of the side whose rows alone the
kind of join does not keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    StringType,
    StructType,
    TimestampType,
)

from splitjoin.base.errors import InputError, SplitJoinError, UnsupportedError
from splitjoin.lang import build
from splitjoin.lang.ir import Arith, Col, Expr, Within, columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side
from splitjoin.lang.types import EXACT, Int
from splitjoin.plan.linear import ExactRelation, LinearTerm
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.rows.output import OutputColumn

from .joined_rows import with_marks
from .settings import JoinSettings
from .spark_sql import TIMES, Text, Writer, number, quoted
from .text import WHICH
from .views import number_of_rows

#: The engine's name; and that of it or the CPU engine in Python workers, whichever is estimated to take less.
ENGINE, _AUTO = "rewrite", "auto"
#: CPU seconds, of runs with the bands of ``bench.spark``: in Spark's join, of a row that is in bins, of a pair that
#: shares a bin, and of one of the result; in Python, of the start, of a row, and of a pair of the result.
_COPY, _CANDIDATE, _GIVEN = 2e-6, 2e-8, 1e-7
_PYTHON, _ROW, _PAIR = 0.4, 5e-6, 1e-6
#: The joins of Spark that the kinds are, and the side that may be copied: None for either.
_KINDS: Mapping[str, tuple[str, Side | None]] = {
    "inner": ("JOIN", None), "left": ("LEFT JOIN", "s"), "right": ("RIGHT JOIN", "r"), "semi": ("LEFT SEMI JOIN", "s"),
    "anti": ("LEFT ANTI JOIN", "s")}


#: Rows of a side from which the number of pairs in a bin is estimated; and such pairs from which that of results is.
_SAMPLE = 250_000


@dataclass(frozen=True)
class _Band:
    """A bound on every pair: ``low <= r − s <= high``, of whole numbers of a column of each side."""

    r: Col
    s: Col
    low: int
    high: int

    def reach(self, copied: Side) -> tuple[int, int]:
        """How far the other side's value is from that of side ``copied``, at least and at most."""
        return (self.low, self.high) if copied == "s" else (-self.high, -self.low)


@dataclass(frozen=True)
class RewrittenJoin:
    """The join, checked.

    Attributes:
        query: The query.
        frames: Both DataFrames.
        result: Spark's schema of the result.
        gathered: The columns of the result.
        bands: What is cut into bins.
        copied: The side whose rows are copied.
        counts: The number of rows of each side.
    """

    query: Query
    frames: Mapping[Side, DataFrame]
    result: StructType
    gathered: Sequence[OutputColumn]
    bands: Sequence[_Band]
    copied: Side
    counts: Mapping[Side, int]

    @classmethod
    def of(cls, query: Query, frames: Mapping[Side, DataFrame], result: StructType,
           gathered: Sequence[OutputColumn]) -> RewrittenJoin:
        """The join by ``query``. Raises `UnsupportedError` for one that cannot be written; runs a job that counts."""
        if frames["r"].isStreaming:
            raise UnsupportedError("engine='rewrite' is for batch DataFrames; leave engine out for streaming ones")
        if query.kind.how not in _KINDS or query.aggregates or query.order.kind != "none" or any(
                query.window(side).rows is not None and query.time is not None for side in SIDES):
            raise UnsupportedError(f"engine='rewrite' writes {', '.join(_KINDS)} joins with RANGE windows, or without "
                                   f"windows, in order 'none'; leave engine out for other kinds, orders, windows and "
                                   f"aggregates")
        for frame in frames.values():
            if taken := [name for name in frame.columns if name.startswith("__")]:
                raise InputError(f"engine='rewrite' gives columns of its own names that begin with '__', so none of "
                                 f"the inputs may be called {taken[0]!r}; rename it")
        bands = list(_bands(query))
        if not bands:
            raise UnsupportedError(f"engine='rewrite' cuts a band into bins, as in abs(r.x - s.a) <= 5 with whole "
                                   f"numbers or times, but {query.predicate} has none that all pairs are in, and there "
                                   f"is no window; leave engine out")
        copied = _KINDS[query.kind.how][1]
        made = cls(query, frames, result, gathered, bands, copied or "s", {})
        made.sql()  # refuses what it cannot write before a job runs
        counts = {side: number_of_rows(frames[side]) for side in SIDES}
        return replace(made, copied=copied or ("s" if counts["s"] <= counts["r"] else "r"), counts=counts)

    @property
    def copies(self) -> int:
        """The most rows that Spark sorts into bins."""
        return self.counts[other_side(self.copied)] + self.counts[self.copied] * (1 << len(self.bands))

    def plan(self) -> DataFrame:
        """The result."""
        spark = self.frames["r"].sparkSession
        return with_marks(spark.sql(self.sql(), left=self.frames["r"], right=self.frames["s"]), self.result)

    def sql(self) -> str:
        """The statement, over ``{left}`` and ``{right}``, which ``spark.sql(text, left=…, right=…)`` takes."""
        chosen = ", ".join(f"{c.side}.{quoted(c.source)} AS {quoted(c.name)}" for c in self.gathered)
        return self._statement(chosen or "1", _KINDS[self.query.kind.how][0])

    def candidates(self, sample: int = _SAMPLE) -> float:
        """About how many pairs share a bin; runs a job over ``sample`` rows of each side, or all."""
        bins = ", ".join(f"__b{n}" for n in range(len(self.bands)))
        sides = [f"(SELECT {bins}, count(*) n FROM {self._side(side)} GROUP BY {bins}) {side}" for side in SIDES]
        shares: dict[Side, float] = {side: min(1.0, sample / max(1, self.counts[side])) for side in SIDES}
        text = f"SELECT sum(CAST(r.n AS DOUBLE) * s.n) n FROM {sides[0]} JOIN {sides[1]} USING ({bins})"
        return self._estimated(text, shares)

    def pairs(self, candidates: float, sample: int = _SAMPLE) -> float:
        """About how many of the ``candidates`` fulfil the condition; runs a job over about ``sample`` of them."""
        share = min(1.0, (sample / max(1.0, candidates)) ** 0.5)
        return self._estimated(self._statement("count(*) n", "JOIN"), {"r": share, "s": share})

    def _estimated(self, text: str, shares: Mapping[Side, float]) -> float:
        """The number ``n`` that the statement gives over such shares of the sides' rows, for all of their rows."""
        # With other seeds, as both sides may be the same rows.
        left, right = (self.frames[side].sample(fraction=shares[side], seed=seed) if shares[side] < 1 else
                       self.frames[side] for seed, side in enumerate(SIDES))
        row = self.frames["r"].sparkSession.sql(text, left=left, right=right).first()
        return float((row and row["n"]) or 0) / (shares["r"] * shares["s"])

    def _statement(self, chosen: str, join: str) -> str:
        writer = Writer(self._column)
        parts = [f"r.__b{n} = s.__b{n}" for n in range(len(self.bands))] + [writer.write(self.query.predicate).sql]
        for band in self.bands:
            if self._is_time(band.r) and self._is_time(band.s):
                apart = writer.write(Arith(EXACT, "-", band.r, band.s)).sql
                parts.append(f"{apart} BETWEEN {number(band.low)} AND {number(band.high)}")
        sides = {side: self._side(side) for side in SIDES}
        return f"SELECT {chosen}\nFROM {sides['r']} r\n{join} {sides['s']} s\nON " + "\n  AND ".join(parts)

    def explained(self, reason: str) -> str:
        """What `explain` says; ``reason`` why the engine was chosen, if it was."""
        copied, other = WHICH[self.copied], WHICH[other_side(self.copied)]
        lines = [f"engine     {ENGINE}: a join of Spark's own, in bins; no device, no Python",
                 *([f"chosen     {reason}"] if reason else []),
                 *([] if self.query.kind.is_inner else [f"kind       {self.query.kind}"]),
                 f"condition  {self.query.predicate}"]
        lines += [f"bins       r.{b.r.name} - s.{b.s.name} in {b.low} to {b.high}: bins of {_width(b)}"
                  for b in self.bands]
        lines += [f"copies     each of the {self.counts[self.copied]} rows of {copied} is in up to "
                  f"{2 ** len(self.bands)} bins; each of the {self.counts[other_side(self.copied)]} of {other} in one"]
        return "\n".join([*lines, *self.sql().splitlines()])

    def _side(self, side: Side) -> str:
        """The rows of a side with their keys and bins."""
        used = dict.fromkeys(c for c in columns(self.query.predicate) if c.side == side)
        used |= dict.fromkeys(b.r if side == "r" else b.s for b in self.bands)
        keys = [f"{self._key(c, side)} AS {self._column(c).sql.partition('.')[2]}" for c in used]
        rows = f"(SELECT *, {', '.join(keys)} FROM {{{WHICH[side]}}})"
        bins, views = list[str](), list[str]()
        for n, band in enumerate(self.bands):
            key = self._column(band.r if side == "r" else band.s)
            key = replace(key, sql=key.sql.partition(".")[2])
            if side != self.copied:
                bins.append(f"{_bin(key, 0, band)} AS __b{n}")
                continue
            low, high = (_bin(key, reach, band) for reach in band.reach(side))
            views.append(f"LATERAL VIEW explode(sequence({low}, {high})) b{n} AS __b{n}")
        if views:
            return f"(SELECT * FROM {rows} {' '.join(views)})"
        return f"(SELECT *, {', '.join(bins)} FROM {rows})"

    def _is_time(self, column: Col) -> bool:
        return self.query.time is not None and self.query.time.name(column.side) == column.name

    def _column(self, column: Col) -> Text:
        """The key of a column, as `_key` computes it."""
        schema = self.frames[column.side].schema
        name = f"{column.side}.__k{schema.names.index(column.name)}"
        kind: DataType = schema[column.name].dataType
        if isinstance(column.type, Int):
            return Text(name, *column.type.range, True)
        if isinstance(kind, (TimestampType, DateType)):
            return Text(name, -TIMES, TIMES, True)
        if isinstance(kind, (BooleanType, DoubleType, FloatType)) or kind == StringType():
            return Text(name)
        raise UnsupportedError(f"engine='rewrite' writes conditions on whole numbers, floats, times with a zone, "
                               f"dates, texts and truth values, but {column.side}.{column.name} is of the type "
                               f"{kind.simpleString()}; leave engine out")

    def _key(self, column: Col, side: Side) -> str:
        name = quoted(column.name)
        kind = self.frames[side].schema[column.name].dataType
        made = name
        if isinstance(column.type, Int):
            made = f"CAST({name} AS BIGINT)"
        elif isinstance(kind, DateType):
            made = f"CAST(unix_date({name}) AS BIGINT)"
        elif isinstance(kind, TimestampType):
            fits = f"unix_micros({name}) BETWEEN {number(-TIMES)} AND {number(TIMES)} OR {name} IS NULL"
            made = f"CASE WHEN {fits} THEN unix_micros({name}) ELSE {_error('a time is beyond the year 75000')} END"
        if self._is_time(column):
            lost = _error(f"an event time of {WHICH[side]} is NULL; filter such rows out")
            made = f"coalesce({made}, {lost})"
        return made


def is_rewritten(settings: JoinSettings) -> bool:
    """True if the device options choose ``engine="rewrite"``. Raises `InputError` for what it has not besides."""
    if settings.device_options.get("engine") != ENGINE:
        return False
    if given := _besides(settings):
        raise InputError(f"engine='rewrite' is a join of Spark's own, without a device, so it has no "
                         f"{', '.join(given)}; leave it out, or leave engine out")
    return True


def may_be_rewritten(settings: JoinSettings, left: DataFrame) -> bool:
    """True if `chosen_engine` has anything to choose. Raises what `is_rewritten` raises."""
    return is_rewritten(settings) or (settings.device_options.get("engine") == _AUTO and not left.isStreaming
                                      and not _besides(settings))


def _besides(settings: JoinSettings) -> list[str]:
    given = [name for name in ("partitions", "metrics", "ties") if getattr(settings, name)]
    given += [f"device={settings.device!r}"] if settings.device != "cpu" else []
    return given + [name for name in settings.device_options if name != "engine"]


def chosen_engine(query: Query, frames: Mapping[Side, DataFrame], result: StructType, gathered: Sequence[OutputColumn],
                  engine: object) -> tuple[RewrittenJoin | None, str]:
    """The join that Spark runs itself, None for the Python workers, by ``engine``, "rewrite" or "auto"; and what
    `explain` says of the choice. Runs jobs that count rows.

    "auto" takes what is estimated to take less CPU time, from the numbers of rows and of pairs that share a bin or are
    results. Raises `SplitJoinError` for a join that cannot be written, with "rewrite".
    """
    if engine == ENGINE:
        return RewrittenJoin.of(query, frames, result, gathered), ""
    try:
        made = RewrittenJoin.of(query, frames, result, gathered)
    except SplitJoinError as error:
        return None, f"in Python workers, as {str(error).partition('; leave engine out')[0]}"
    candidates = made.candidates()
    pairs = made.pairs(candidates)
    own = made.copies * _COPY + candidates * _CANDIDATE + pairs * _GIVEN
    python = _PYTHON + sum(made.counts.values()) * _ROW + pairs * _PAIR
    said = (f"about {own:.2g} CPU s by Spark's own join in bins ({candidates:,.0f} pairs share one, {pairs:,.0f} are "
            f"results), {python:.2g} in Python workers")
    return (made, f"in Spark: {said}") if own < python else (None, f"in Python workers: {said}")


def _error(text: str) -> str:
    return f"CAST(raise_error('splitjoin: {text}') AS BIGINT)"


def _width(band: _Band) -> int:
    """The length of a bin; at least 2 for BIGINT, so that its number fits even if a value is shifted."""
    is_wide = any(isinstance(c.type, Int) and c.type.bits == 64 for c in (band.r, band.s))
    return max(2 if is_wide else 1, band.high - band.low)


def _bin(key: Text, shift: int, band: _Band) -> str:
    """The number of the bin of a key plus ``shift``, rounded down below 0 too."""
    width = _width(band)
    shifted = Text(f"({key.sql} + {number(shift)})" if shift else key.sql, key.low + shift, key.high + shift, True)
    if replace(shifted, low=shifted.low - width).is_long and width < TIMES:
        return f"({shifted.sql} - pmod({shifted.sql}, {number(width)})) div {number(width)}"
    value = f"({key.as_decimal()} + CAST('{shift}' AS DECIMAL(38, 0)))"
    length = f"CAST('{width}' AS DECIMAL(38, 0))"
    return f"({value} - pmod({value}, {length})) div {length}"


def _bands(query: Query) -> Iterator[_Band]:
    """What is cut into bins: the windows in time, and the narrowest band of the condition."""
    found: dict[tuple[Col, Col], tuple[list[int], list[int]]] = {}
    plan = make_plan(query.predicate)
    for j in plan.required:
        for relation in plan.tests[j].relations:
            if not isinstance(relation, ExactRelation):
                continue
            r, s = _column_of(relation.r), _column_of(relation.s)
            if r is None or s is None or relation.g + relation.h:
                continue
            least, most = found.setdefault((r, s), ([], []))
            # g · (r − s) + c op 0
            if relation.op == "=" or (relation.op == "<=") == (relation.g > 0):
                most.append(-relation.c // relation.g)
            if relation.op == "=" or (relation.op == ">=") == (relation.g > 0):
                least.append(-(relation.c // relation.g))
    timed: _Band | None = None
    if query.time is not None:
        lengths = query.window_r.length, query.window_s.length
        assert lengths[0] is not None
        assert lengths[1] is not None
        r, s = (_time_column(query, side) for side in SIDES)
        timed = _Band(r, s, -lengths[0], lengths[1])
        yield timed
    bands = [_Band(r, s, max(least), min(most)) for (r, s), (least, most) in found.items() if least and most
             and (timed is None or (r.name, s.name) != (timed.r.name, timed.s.name))]
    if bands:
        yield min(bands, key=_width)


def _column_of(terms: tuple[LinearTerm, ...]) -> Col | None:
    """The column that the key of a relation is; None if it is anything else."""
    if len(terms) != 1 or terms[0].scale != 1 or terms[0].factor != 1:
        return None
    e: Expr = terms[0].expr
    e = e.a if isinstance(e, Within) else e
    return e if isinstance(e, Col) else None


def _time_column(query: Query, side: Side) -> Col:
    assert query.time is not None
    found = build.column(query.schema(side), query.time.name(side))
    assert isinstance(found, Col)
    return found
