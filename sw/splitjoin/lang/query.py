"""A query: two schemas, a predicate, windows, the time column and the output order, checked against each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Union, cast

import pyarrow as pa

from splitjoin.base.errors import InputError, OptionError, OrderError, PredicateError, SplitJoinError, WindowError
from splitjoin.base.recent import of_text

from . import build
from .aggregate import Aggregate, parse_aggregates
from .categories import without_order
from .equalities import Equalities
from .front_ends import FRONT_ENDS
from .ir import Expr, Lit, check_depth, text
from .kind import INNER, Kind
from .local_times import current_zone
from .order import Order, parse_order
from .python.decorator import TypedPredicate
from .python.traced_condition import trace
from .schema import Column, Schema, Side
from .sql.parser import parse_sql
from .time_columns import TimeColumns, TimeSpec, has_no_type, time_columns
from .types import FLOAT64, Float, Timestamp, is_text
from .windows import Extent, Tolerance, Window, WindowSpec, of_tolerance, parse_tolerance, parse_windows

#: A join condition as the user writes it: SQL text, a Python function of ``(r, s)``, or IR.
Predicate = Union[str, Callable[[Any, Any], Any], Expr]


@dataclass(frozen=True)
class ComputedColumn:
    """A column of stream ``side`` that the host computes of the others, by ``text``, an SQL expression of DuckDB's."""

    side: Side
    text: str
    field: pa.Field


@dataclass(frozen=True)
class Query:
    """A checked join query; `Query.make` builds one from the user's arguments.

    Attributes:
        computed: The columns of ``r`` and ``s``, behind those that the user gives, that the host adds to tuples.
        prevailing: True if a tuple of R also meets its last partner before S's window (semantics, section 2).
    """

    r: Schema
    s: Schema
    predicate: Expr
    window_r: Extent
    window_s: Extent
    time: TimeColumns | None
    order: Order
    kind: Kind = INNER
    aggregates: tuple[Aggregate, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    prevailing: bool = False

    @classmethod
    def make(cls, r: Schema, s: Schema, *, on: Predicate | None, window: WindowSpec | None,
             time: TimeSpec | None = None, order: str | Order | None = "total", how: str = "inner",
             direction: str | None = None, allow_exact: bool | None = None, k: int | None = None,
             ties: str | None = None, tolerance: Tolerance | None = None, by: str | None = None,
             aggregate: Mapping[str, Any] | None = None, prevailing: bool = False, whole: bool = False) -> Query:
        """Parse and check all parts of a query. Raises a `SplitJoinError` that names the wrong part.

        ``on``: None for all pairs that the times of an as-of join, or of RANGE windows, leave.
        ``window``: None for an as-of join that looks backward without end (`is_unbounded`).
        ``whole``: True if it is over whole tables, which alone have order ``left``, and times of all types with NULL.
        ``order``: None for ``left`` where partners are chosen by distance, else for ``total``.
        """
        times = None if time is None else time_columns(r, s, time, whole=whole)
        windows = (Window(None), Window(None)) if window is None else parse_windows(window)
        empty = [window.is_empty and times is not None for window in windows]
        if not all(empty):  # the other one has tuples of other times
            windows = (replace(windows[0], open=windows[0].open and not empty[0]),
                       replace(windows[1], open=windows[1].open and not empty[1]))
        if times is not None and any(w.unit for w in windows) and has_no_type(r.find(times.r)) and (
                has_no_type(s.find(times.s))):  # the type is known from the windows' units alone
            times = replace(times, type=Timestamp("us"), tick="us")
        kind, tick = (None, None) if times is None else (times.type, times.tick)
        limit = None if tolerance is None else _tolerance(tolerance, how)
        extents = [w.resolve(kind, tick) for w in windows]
        if on is None and not how.startswith("asof") and not all(w.length is not None for w in windows):
            raise PredicateError("a join needs a condition, such as on='r.k = s.k', or on='TRUE' for all pairs; as-of "
                                 "joins and those within windows of RANGE alone may have none")
        condition = predicate("TRUE" if on is None else on, r, s)
        if times is not None and any(empty):
            ends = build.column(r, times.r), build.column(s, times.s)
            condition = build.and_([condition, build.compare(">" if empty[0] else "<", *ends, "OPEN")], "OPEN")
        if limit is not None:
            try:
                extents = [e.within(limit.resolve(kind, tick)) for e in extents]
            except WindowError as error:
                raise of_tolerance(error, str(limit), tolerance) from None
        if times is not None and whole:
            condition = _with_times(condition, r, s, times, (*windows, *([] if limit is None else [limit, limit])))
        by_distance = (k is not None and k != 1) or ties == "last" or (
            times is not None and not times.has_ticks and direction == "nearest")
        order = parse_order(order) if order is not None else Order("left" if by_distance else "total")
        if order.kind == "left" and not whole:
            raise OrderError("order 'left' is that of the rows of r as they were given, so it needs whole tables, as "
                             "splitjoin.join takes them; streams have 'total' and 'none'")
        chosen = Kind.make(how, direction, allow_exact, k, ties, order=order, timed=times is not None)
        orders = ("left", "none") if whole else ("total",)
        if by_distance and order.kind not in orders:
            raise OrderError(f"partners that are chosen by distance among several come in order "
                             f"{' or '.join(map(repr, orders))}{'' if whole else ' over streams'}, not '{order}'; give "
                             f"order={orders[0]!r}")
        if times is not None and chosen.direction == "nearest" and is_text(times.type):
            raise InputError(f"direction='nearest' needs times that are some distance apart, but {times.r} is text; "
                             f"choose 'backward' or 'forward'")
        made = cls(r, s, condition, extents[0], extents[1], times, order, chosen, prevailing=prevailing)
        if prevailing:
            _check_prevailing(made)
        if window is None:
            check_unbounded(made, has_aggregates=aggregate is not None)
        if aggregate is None:
            if by is not None:
                raise OptionError(f"by={by!r} belongs to aggregate; give both, such as by='r', aggregate="
                                  f"{{'n': 'count(*)'}}")
            return made
        return made.aggregated(parse_aggregates(aggregate, r, s), by)

    def with_window(self, window: WindowSpec) -> Query:
        """A query like this with other windows. Raises `WindowError`."""
        kind, tick = (None, None) if self.time is None else (self.time.type, self.time.tick)
        r, s = (one.resolve(kind, tick) for one in parse_windows(window))
        return replace(self, window_r=r, window_s=s)

    def aggregated(self, aggregates: tuple[Aggregate, ...], by: str | None = None) -> Query:
        """A query like this with a row of ``aggregates`` for each tuple of R, in place of pairs. ``by``: None or "r".

        Raises `OptionError` for another stream and for a kind that has no such rows, `OrderError` for an order.
        """
        if by not in (None, "r"):
            raise OptionError(f"by must be 'r', the stream whose tuples get a row each, not {by!r}; whole tables also "
                              f"take a list of its columns, and to aggregate by s, give the tables the other way round")
        if self.kind.how not in ("inner", "left"):
            raise OptionError(f"aggregates need how='inner', without rows for tuples that meet nothing, or 'left', "
                              f"with them, not {self.kind.how!r}")
        if self.order.kind not in ("total", "none", "left"):
            raise OrderError(f"aggregates need order 'total' or 'none', not '{self.order}': a row that waits for the "
                             f"last partner belongs to no probe")
        return replace(self, aggregates=aggregates)

    @property
    def pairs(self) -> Query:
        """The inner join, which a device runs; rows of other kinds follow from its pairs in total order."""
        return self if self.is_pairs else replace(self, kind=INNER, order=Order("total"), aggregates=())

    @property
    def narrowed(self) -> Query:
        """The same query, with windows no longer than an as-of join of one direction looks into; its rows are the same.

        The partner of a tuple of R that looks backward comes before it, or at the same time; so that tuple need not
        stay in its window. A tuple of S that tuples of R look forward to need not stay in its window either.
        """
        if not self.kind.is_asof or self.kind.direction == "nearest":
            return self
        backward = self.kind.direction == "backward"
        rows = (self.window_r if backward else self.window_s).rows
        short = Extent(1, None) if self.time is None else Extent(rows, 0)
        return replace(self, window_r=short) if backward else replace(self, window_s=short)

    @property
    def is_unbounded(self) -> bool:
        """True if S has no window: an as-of join that looks backward without end. The last tuple of S of each key is
        then all of S that later tuples of R may choose.
        """
        return self.window_s == Extent(None, None)

    @property
    def chooses_by_distance(self) -> bool:
        """True if each tuple of R has the nearest of several partners, by distances that are no ticks, the last of
        equally near ones, or several.
        """
        return self.kind.k > 1 or self.kind.ties == "last" or (
            self.kind.direction == "nearest" and self.time is not None and not self.time.has_ticks)

    @property
    def is_pairs(self) -> bool:
        """True if the rows are the pairs of the inner join."""
        return self.kind.is_inner and not self.aggregates

    @property
    def needs_few_pairs(self) -> bool:
        """True if the rows depend on few pairs: kinds semi, anti and as-of with one partner, without aggregates."""
        return not self.aggregates and self.kind.needs_few_pairs and not self.chooses_by_distance

    def window(self, side: str) -> Extent:
        """The window of stream ``side``."""
        return self.window_r if side == "r" else self.window_s

    def given(self, side: Side) -> list[str]:
        """The columns of stream ``side`` that the user gives."""
        computed = {column.text for column in self.computed if column.side == side}
        return [name for name in self.schema(side).names if name not in computed]

    def schema(self, side: str) -> Schema:
        """The schema of stream ``side``."""
        return self.r if side == "r" else self.s


def _check_prevailing(query: Query) -> None:
    """Raise a `SplitJoinError` unless ``query`` may ask for prevailing rows."""
    if query.kind.how not in ("inner", "left"):
        raise OptionError(f"prevailing=True needs how='inner' or 'left', not {query.kind.how!r}")
    if query.time is not None and not query.time.has_ticks:
        raise WindowError(f"prevailing=True needs times that are whole numbers of something, but r.{query.time.r} is "
                          f"{query.time.type}; cast the times to integers or timestamps")
    if rest := Equalities.of(query.predicate).rest:
        raise PredicateError(f"prevailing=True looks for the last row of each key, so the condition must consist of "
                             f"equalities between r and s and of conditions on one of them, but it has "
                             f"'{text(rest[0])}'; leave it out, or leave prevailing out")


def check_unbounded(query: Query, *, has_aggregates: bool) -> None:
    """Raise `WindowError` unless ``query``, which has no window, needs little of what has come."""
    give, kind = "such as window='RANGE 15 MINUTES'", query.kind
    if not kind.is_asof or has_aggregates:
        raise WindowError(f"streams that do not end need a window, {give}; only an as-of join that looks backward "
                          f"needs none")
    if query.chooses_by_distance:
        raise WindowError(f"an as-of join without a window keeps the last tuple of s of each key, so k must be 1, not "
                          f"{kind.k}; give a window, {give}")
    if kind.direction != "backward":
        raise WindowError(f"an as-of join of direction {kind.direction!r} needs a window, {give}, since a tuple of r "
                          f"would wait without end for a partner that never comes; direction 'backward' needs none")
    if rest := Equalities.of(query.predicate).rest:
        raise WindowError(f"an as-of join without a window keeps the last tuple of s of each key, so its condition "
                          f"must consist of equalities between r and s and of conditions on one of them, but "
                          f"{text(rest[0])} is neither; give a window, {give}")


def _tolerance(tolerance: Tolerance, how: str) -> Window:
    """The RANGE of ``tolerance``. Raises `OptionError` unless ``how`` is that of an as-of join."""
    if how not in ("asof", "asof_left"):
        raise OptionError(f"tolerance belongs to how='asof' and 'asof_left', but how is {how!r}; write "
                          f"window='RANGE …'")
    return parse_tolerance(tolerance)


def _with_times(condition: Expr, r: Schema, s: Schema, times: TimeColumns, windows: Sequence[Window]) -> Expr:
    """``condition``, and that both times are there; and for floats, that they are within the RANGE of ``windows``, R's
    and S's in turn: equal times are, also infinite ones, but NaN never is.
    """
    columns = {"r": build.column(r, times.r), "s": build.column(s, times.s)}
    more = [build.not_(build.is_null(columns[schema.side], "time"), "time") for schema in (r, s)
            if schema.find(times.name(schema.side)).nullable]
    limits = [(n, window.length, window.open) for n, window in enumerate(windows)
              if window.length is not None and isinstance(times.type, Float)]
    for n, length, is_open in limits:  # for equal infinite times it is NaN, which is greater than all numbers
        early, late = columns["r" if n % 2 == 0 else "s"], columns["s" if n % 2 == 0 else "r"]
        later = build.arith("-", early, late, "RANGE")
        more.append(build.compare(">" if is_open else ">=", later, build.literal(-length, "RANGE"), "RANGE"))
    if limits:
        more += [build.compare("<=", time, Lit(FLOAT64, math.inf), "RANGE") for time in columns.values()
                 if isinstance(time.type, Float)]
    return build.and_([condition, *more], "time") if more else condition


def predicate(on: Predicate, r: Schema, s: Schema) -> Expr:
    """The typed IR of a join condition: SQL text, a Python function, IR, or a condition of a registered front end."""
    if isinstance(on, str):
        return _of_text(on, r, s)
    if isinstance(on, Expr):
        made = on
    elif isinstance(on, TypedPredicate):
        made = on.trace(r, s)
    elif (front_end := FRONT_ENDS.get(type(on).__module__.partition(".")[0])) is not None:
        made = cast(Expr, getattr(import_module(front_end.module), front_end.function)(on, r, s))
    elif callable(on):
        made = trace(on, r, s)
    else:
        kinds = ["an SQL text", "a function of (r, s)", *(f.kind for f in FRONT_ENDS.values())]
        more = "; for equal columns write on='r.k = s.k'" if isinstance(on, (list, tuple)) else ""
        raise PredicateError(f"on must be {', '.join(kinds[:-1])} or {kinds[-1]}, not {type(on).__name__}{more}")
    return _checked(made)


def _of_text(text: str, r: Schema, s: Schema) -> Expr:
    """The condition ``text``: the same object, which carries its plans, as long as it is among those read last."""
    with suppress(SplitJoinError):  # errors know more of the schemas than their columns
        return of_text(_condition_of, text, r.columns, s.columns, current_zone())
    return _checked(parse_sql(text, r, s))


def _condition_of(text: str, r: tuple[Column, ...], s: tuple[Column, ...], _zone: object) -> Expr:
    """The condition ``text`` over streams of these columns, as of a session's time zone."""
    return _checked(parse_sql(text, Schema("r", r), Schema("s", s)))


def _checked(made: Expr) -> Expr:
    check_depth(made)
    return without_order(build.condition(made, str(made)))
