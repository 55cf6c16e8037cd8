"""`Select`: a checked SELECT over two streams, from its text and the schemas of its tables, and the stage at which each
of its conditions is tested (ESJ, "Multi-attribute join", "Peripherals").

ON and WHERE mean the same in an inner join, so their terms go where they are cheapest. A term over one stream is a
*pre-selection*: the host decides it once per tuple before the join, and a tuple that fails keeps its place in its
window but meets nothing. A term over both is a *join predicate*, decided by the device that compares; one of those that
must hold for every match is the *main predicate*, by which an index finds candidates, and the others are *secondary*
(an engine that measures how selective they are may take one of those instead). A term that comparisons of keys do not
decide is a *post-selection*, verified on the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Literal

import pyarrow as pa

from splitjoin.base.errors import SchemaError, WindowError, plural
from splitjoin.base.recent import keep
from splitjoin.lang.aggregate import named_folds
from splitjoin.lang.eval.vector import constant
from splitjoin.lang.ir import And, Expr, Lit, Not, Or, columns, sides, text
from splitjoin.lang.local_times import current_zone
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.types import BOOL
from splitjoin.lang.windows import WindowSpec
from splitjoin.plan.keys import ExactKey, FloatKey, PrefixKey, TextKey, WideKey
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import Plan, Test, is_equality, leading_tests, tests_nothing
from splitjoin.rows.output import needed_columns

from .projection import Projection, project
from .reader import as_of, read_condition
from .statement import Statement, TableName

Clause = Literal["ON", "WHERE"]
#: ``always`` and ``never`` are constants. ``join+post``: a comparison that is necessary, and the verification of what
#: it lets through.
Stage = Literal["always", "never", "pre", "join", "join+post", "post"]


@dataclass(frozen=True)
class PlacedTerm:
    """One of the conditions that must all be true.

    ``side``: the stream of a pre-selection. ``index``: the kind of index that could find candidates by it, if it is a
    join predicate that must hold for every match. ``reasons``: the reasons why comparisons do not decide it.
    """

    condition: Expr
    clause: Clause
    stage: Stage
    side: Side | None = None
    index: Literal["hash", "range"] | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement:
    """The stages of all terms of ON and WHERE, in the order of the text. ``main``: the main predicate, or None."""

    terms: tuple[PlacedTerm, ...]
    main: PlacedTerm | None

    def pre(self, side: Side) -> list[Expr]:
        """The pre-selections of stream ``side``."""
        return [t.condition for t in self.terms if t.stage == "pre" and t.side == side]

    def secondary(self) -> list[PlacedTerm]:
        """The other join predicates."""
        return [t for t in self.terms if t.stage in ("join", "join+post") and t is not self.main]

    def post(self) -> list[PlacedTerm]:
        """The post-selections."""
        return [t for t in self.terms if t.stage in ("post", "join+post")]


def place(on: Expr | None, where: Expr | None, whole: Expr) -> Placement:
    """Place the terms of ``on`` and ``where``; None is no condition. ``whole``: their `conjunction`, as devices run
    it.
    """
    clauses: Sequence[tuple[Clause, Expr | None]] = (("ON", on), ("WHERE", where))
    terms = tuple(_term(c, clause) for clause, e in clauses if e is not None for c in _terms(e))
    return Placement(terms, _main(terms, make_plan(whole)))


def conjunction(*conditions: Expr | None) -> Expr:
    """The condition of the whole join, as devices take it: all of ``conditions``, of which None is none."""
    kept = []
    for term in (c for e in conditions if e is not None for c in _terms(e)):
        if sides(term):
            kept.append(term)
        elif constant(term) is not True:
            return Lit(BOOL, False)
    if not kept:
        return Lit(BOOL, True)
    return kept[0] if len(kept) == 1 else And(BOOL, tuple(kept))


def _terms(e: Expr) -> Iterator[Expr]:
    """``e`` as conditions that must all be true: NOT (a OR b) is true exactly if NOT a and NOT b are."""
    match e:
        case And():
            for a in e.args:
                yield from _terms(a)
        case Not(a=Or() as o):
            for a in o.args:
                yield from _terms(Not(BOOL, a))
        case Not(a=Not() as n):
            yield from _terms(n.a)
        case _:
            yield e


def _main(terms: Sequence[PlacedTerm], plan: Plan) -> PlacedTerm | None:
    """The term by which an index finds candidates: that of the main test of the whole condition's ``plan``, else the
    first by hash, else by range.
    """
    known = [t for t in terms if t.index is not None]
    if plan.main is not None and plan.main.test is not None:
        test = plan.tests[plan.main.test]
        for t in known:
            # Other terms may have narrowed the keys since, but not changed what they read.
            own, read = make_plan(t.condition), _key_columns(plan, test)
            if any(one.is_point == test.is_point and _key_columns(own, one) == read for one in own.tests):
                return t
    return min(known, key=lambda t: t.index != "hash", default=None)


def _key_columns(plan: Plan, test: Test) -> set[tuple[Side, str]]:
    """The columns that the keys of ``test`` read."""
    found: set[tuple[Side, str]] = set()
    for key in (plan.slots_r[test.r].key, plan.slots_s[test.s].key):
        match key:
            case ExactKey() | WideKey():
                exprs = [t.expr for t in (key.exact if isinstance(key, WideKey) else key).terms]
            case FloatKey() | TextKey() | PrefixKey():
                exprs = [key.expr]
            case _:
                exprs = []
        found |= {(c.side, c.name) for e in exprs for c in columns(e)}
    return found


def _term(e: Expr, clause: Clause) -> PlacedTerm:
    streams = sides(e)
    if not streams:
        return PlacedTerm(e, clause, "always" if constant(e) is True else "never")
    if len(streams) == 1:
        return PlacedTerm(e, clause, "pre", side=next(iter(streams)))
    plan = make_plan(e)
    if plan.residual is not None and tests_nothing(plan):
        return PlacedTerm(e, clause, "post", reasons=plan.reasons)
    leading = leading_tests(plan)
    index: Literal["hash", "range"] | None = None
    if leading:
        index = reduce(lambda found, j: "hash" if is_equality(plan, j) else found, leading, index or "range")
    return PlacedTerm(e, clause, "join" if plan.residual is None else "join+post", index=index, reasons=plan.reasons)


@dataclass(frozen=True)
class Select:
    """A SELECT-FROM-WHERE over two streams. The first table after FROM is R, the other one S.

    Attributes:
        statement: The text and its parts.
        query: The join that a device runs.
        projection: The result columns, computed from the pairs that the device finds.
        on, where: The conditions of these clauses; None where the statement has none.
    """

    statement: Statement
    query: Query
    projection: Projection
    on: Expr | None
    where: Expr | None

    @classmethod
    def make(cls, statement: Statement, r: Schema, s: Schema, *, window: WindowSpec | None,
             time: TimeSpec | None = None, order: str | Order = "total",
             aggregates: Mapping[str, Any] | None = None, whole: bool = False,
             given: tuple[Schema, Schema] | None = None) -> Select:
        """Check the whole statement; ``aggregates`` are those of `splitjoin.sql`, ``whole`` is that of `Query.make`.
        ``given``: the schemas of the SELECT list, where ``r`` and ``s`` have computed columns behind these.
        Raises a `SplitJoinError` that names the wrong part, and its place in the text.
        """
        tables = tuple(zip(statement.tables, (r, s), strict=True))
        listed = tables if given is None else tuple(zip(statement.tables, given, strict=True))
        on, where = (None if tree is None else read_condition(statement, tables, tree, clause)
                     for tree, clause in ((statement.on[0], "ON"), (statement.where, "WHERE")))
        kind: dict[str, Any] = {"how": statement.how}
        times = None if time is None else by_stream(time, statement.tables, "time")
        if statement.nearest is not None:
            k, *times = statement.nearest
            kind |= {"direction": "nearest", "k": k}
            order = "left"
        elif statement.how in ("asof", "asof_left"):
            match = None if statement.match is None else read_condition(statement, tables, statement.match,
                                                                        "MATCH_CONDITION")
            found = as_of(on, match, r, s, times, whole=whole)
            on, times = found.on, found.time
            kind |= {"direction": found.direction, "allow_exact": found.allow_exact}
        projection = project(statement, listed, named_folds(aggregates))
        query = Query.make(r, s, on=conjunction(on, where), time=times, order=order,
                           window=by_stream(window, statement.tables, "window"), whole=whole, **kind)
        if projection.aggregates:
            query = query.aggregated(projection.aggregates)
        return cls(statement, query, projection, on, where)

    @cached_property
    def placement(self) -> Placement:
        """The stage of every term of ON and WHERE. Only explanations need it, and it takes as long as a small join."""
        return place(self.on, self.where, self.query.predicate)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self.projection.schema

    def needed(self, side: Side) -> list[str]:
        """The columns of stream ``side`` that condition, result and time need (pre-projection), in their order."""
        return needed_columns(self.query, side, self.projection.gathered, self.query.schema(side).names)

    def explain(self, *, windowed: bool = True, **options: Any) -> str:
        """Explain, as text, the stages before, in and after the join.

        ``windowed``: False if the user gave no window, so that those of the query are only what a circuit holds.
        ``options`` are those of circuits, such as ``cores=8``.
        """
        from ..explain import explain  # here, as it imports circuits and their cost

        lines = [f"statement        {' '.join(self.statement.text.split())}", *self._stages()]
        return "\n".join([*lines, str(explain(self.query, windowed=windowed, **options))])

    def _uses(self, side: Side) -> dict[str, list[str]]:
        """The columns of stream ``side`` that are needed, each with its uses."""
        uses: dict[str, list[str]] = {}
        if self.query.time is not None:
            uses.setdefault(self.query.time.name(side), []).append("time")
        for c in columns(self.query.predicate):
            if c.side == side:
                uses.setdefault(c.name, []).append("condition")
        for o in self.projection.gathered:
            if o.side == side:
                uses.setdefault(o.source, []).append("result")
        for c in dict.fromkeys(c for a in self.query.aggregates for e in a.args for c in columns(e)):
            if c.side == side:
                uses.setdefault(c.name, []).append("aggregate")
        return uses

    def _stages(self) -> Iterator[str]:
        for side, named in zip(SIDES, self.statement.tables, strict=True):
            yield f"{side.upper()}                {named}"
        if not self.query.kind.is_inner:
            yield f"kind             {self.query.kind}, decided on the host from pairs"
        for side in SIDES:
            found = self.placement.pre(side)
            said = " AND ".join(map(text, found)) + ", once per tuple; one that fails keeps its place in the window"
            yield f"pre-selection    {side.upper()}: {said if found else 'none'}"
        for side in SIDES:
            uses, names = self._uses(side), self.query.schema(side).names
            kept = ", ".join(f"{n} ({', '.join(uses.get(n, ['rows']))})" for n in self.needed(side))
            yield (f"pre-projection   {side.upper()}: {kept}; {len(self.needed(side))} of {len(names)} "
                   f"{plural(len(names), 'column')}")
        main = self.placement.main
        yield from self._terms("main predicate   ", [] if main is None else [main])
        yield from self._terms("secondary        ", self.placement.secondary())
        yield from self._terms("post-selection   ", self.placement.post())
        for t in self.placement.terms:
            if t.stage in ("always", "never"):
                yield f"constant         {text(t.condition)} ({t.clause}): " + (
                    "left out" if t.stage == "always" else "no pair is a result")
        folded = {a.name for a in self.query.aggregates}
        for o in self.projection.outputs:
            made = f"{o.text}, folded for each tuple of {self.statement.tables[0].label}" if o.source in folded else (
                f"{o.source}, as it is") if o.expr is None else f"{text(o.expr)}, computed for every pair"
            yield f"post-projection  {o.field.name}: {o.field.type} = {made}"
        ending = self.statement.ordering
        for key in self.projection.keys:
            yield (f"order by         {self.projection.outputs[key.column].field.name}, "
                   f"{'descending' if key.descending else 'ascending'}, NULL "
                   f"{'first' if key.nulls_first else 'last'}; on the result")
        if ending.limit is not None or ending.offset:
            rows = "all rows" if ending.limit is None else f"{ending.limit} {plural(ending.limit, 'row')}"
            yield f"limit            {rows}{f' after the first {ending.offset}' if ending.offset else ''}"

    def _terms(self, label: str, terms: list[PlacedTerm]) -> Iterator[str]:
        post = label.startswith("post")
        for t in terms:
            parts = [f"{text(t.condition)} ({t.clause})"]
            if t.index is not None and not post:
                parts.append(f"by {t.index}" if t is self.placement.main else f"an index could use it, by {t.index}")
            if post and t.stage == "join+post":
                parts.append("of the pairs that its necessary tests let through")
            yield label + "; ".join(parts + (list(t.reasons) if post else []))
        if not terms:
            yield label + "none"


def whole_select(statement: Statement, r: Schema, s: Schema, *, window: WindowSpec, aggregates: Any = None,
                 **how: Any) -> Select:
    """`Select.make` over whole tables of which ``window`` has all rows. A statement carries what was made of it over
    tables of the types that came last.
    """
    key = (r.columns, s.columns, *how.items(), current_zone())
    known = not aggregates and all(of is None or isinstance(of, (str, Order)) for of in how.values())
    found: tuple[Sequence[pa.Schema], Select] | None = statement.plans.get(key) if known else None
    if found is not None and all(a.equals(b.arrow, check_metadata=True) for a, b in zip(found[0], (r, s), strict=True)):
        return replace(found[1], query=found[1].query.with_window(window))
    made = Select.make(statement, r, s, window=window, aggregates=aggregates, whole=True, **how)
    if known:
        keep(statement.plans, key, ((r.arrow, s.arrow), made))
    return made


def by_stream(spec: Any, tables: Sequence[TableName], what: str) -> Any:
    """``spec``, a mapping by the names of two tables made one by ``"r"`` and ``"s"``; others as they are."""
    return dict(zip(SIDES, by_table(spec, tables, what), strict=True)) if isinstance(spec, Mapping) else spec


def by_table(spec: Any, tables: Sequence[TableName], what: str) -> list[Any]:
    """``what`` the ``spec`` gives each table: itself for all, or what a mapping by their names has."""
    if not isinstance(spec, Mapping):
        return [spec] * len(tables)
    found = dict[str, Any]()
    for key, value in spec.items():
        named = [t.label for t in tables if key in (t.label, t.name)]
        found |= {label: value for label in named if len(named) == 1}
    if len(found) < len(tables) or len(spec) > len(tables):
        error = WindowError if what == "window" else SchemaError
        *first, last = (repr(t.label) for t in tables)
        raise error(f"a mapping of {what} must have the keys {', '.join(first)} and {last}, the tables of the "
                    f"statement, not {sorted(map(str, spec))}")
    return [found[t.label] for t in tables]
