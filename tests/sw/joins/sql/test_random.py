"""Random statements over random tables: every engine gives DuckDB's rows, in its order, and streams give the same."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings, strategies as st

import splitjoin
from splitjoin import InputError, PredicateError
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.cpu.search import ExpressionSearch
from splitjoin.engines.cpu.session import CpuSession
from splitjoin.engines.device import Device
from splitjoin.lang.query import Query
from tests.support.oracle import NS_PER_TICK
from tests.support.predicates import conditions, durations, terms, times
from tests.support.sampling import examples
from tests.support.shapes import shapes
from tests.support.statements import exactly, selected
from tests.support.strategies import COLUMN_TYPES, TIME_TYPES, RandomWindows, schemas, tables, windows
from tests.support.terms import NUMBERS, Condition, Term, column, literals


@dataclass(frozen=True)
class Value:
    """An item of a SELECT list: ``sql`` for us, ``oracle`` for DuckDB."""

    sql: str
    oracle: str


@dataclass(frozen=True)
class Case:
    """A statement with its tables."""

    r: pa.Table
    s: pa.Table
    items: tuple[Value, ...]
    on: Condition
    where: Condition | None
    comma: bool
    windows: RandomWindows
    time: str | None

    @property
    def text(self) -> str:
        """The statement for us."""
        items = ", ".join(f"{v.sql} AS v{n}" for n, v in enumerate(self.items))
        if self.comma:
            where = self.on.sql if self.where is None else f"({self.on.sql}) AND ({self.where.sql})"
            return f"SELECT {items} FROM left_one r, right_one s WHERE {where}"
        where = "" if self.where is None else f" WHERE {self.where.sql}"
        return f"SELECT {items} FROM left_one r JOIN right_one s ON {self.on.sql}{where}"


@st.composite
def values(draw: st.DrawFn, pool: Sequence[Term]) -> Value:
    """A column, an expression of one or both streams, a condition, or a literal."""
    shape = draw(st.sampled_from(["column", "number", "number", "time", "duration", "condition", "choice", "literal"]))
    if shape == "number" and any(t.kind in NUMBERS for t in pool):
        t = draw(terms(pool))
        # Constants that need more than int64 are DuckDB's, as floats, or are refused.
        assume(all(int(digits) < 2**63 for digits in re.findall(r"\d+", t.sql + t.oracle)))
        return Value(t.sql, t.oracle)
    kinds = sorted({t.kind for t in pool} & {"timestamp", "timestamptz"})
    if shape == "time" and "date" in {t.kind for t in pool} | set(kinds):
        t = draw(times(pool, draw(st.sampled_from(sorted({t.kind for t in pool} & {"date", *kinds})))))
        return Value(t.sql, t.oracle)
    if shape == "duration" and kinds:
        t = draw(durations(pool, draw(st.sampled_from(kinds))))
        return Value(t.sql, t.oracle)
    if shape == "condition":
        c = draw(shapes(pool))
        return Value(f"({c.sql})", c.oracle)
    if shape == "choice":
        kind = draw(st.sampled_from(pool)).kind
        same = [t for t in pool if t.kind == kind]
        a, b = draw(st.sampled_from(same)), draw(st.sampled_from(same))
        if a.arrow == b.arrow and kind != "wide":
            c = draw(shapes(pool))
            return draw(st.sampled_from([
                Value(f"CASE WHEN {c.sql} THEN {a.sql} ELSE {b.sql} END",
                      f"CASE WHEN {c.oracle} THEN {a.oracle} ELSE {b.oracle} END"),
                Value(f"coalesce({a.sql}, {b.sql})", f"coalesce({a.oracle}, {b.oracle})")]))
    if shape == "literal":
        t = draw(literals(draw(st.sampled_from(pool)).kind))
        return Value(t.sql, t.oracle)
    t = draw(st.sampled_from(pool))
    return Value(t.sql, t.oracle)


@st.composite
def cases(draw: st.DrawFn, type_: pa.DataType | None = None) -> Case:
    r, s = draw(schemas("x")), draw(schemas("a"))
    if type_ is not None:
        r, s = {"x0": type_}, {"a0": type_}
    time = draw(st.one_of(st.none(), st.sampled_from(TIME_TYPES)))
    left = draw(tables(r, time=time and ("ts", time[0]), max_rows=8))
    right = draw(tables(s, time=time and ("ts", time[1]), max_rows=8))
    pool = [column(side, name, t) for side, of in (("r", r), ("s", s)) for name, t in of.items()]
    return Case(left, right, tuple(draw(st.lists(values(pool), min_size=1, max_size=4))), draw(conditions(r, s)),
                draw(st.one_of(st.none(), conditions(r, s), conditions(r, {}), conditions({}, s))),
                draw(st.booleans()), draw(windows(time and time[0])), time and "ts")


class WithoutKernels(CpuDevice):
    """The CPU engine on expressions by NumPy: kernels for each random condition would take seconds to compile."""

    def open(self, query: Query) -> CpuSession:
        return CpuSession(query, ExpressionSearch(query.predicate, compiling=False))


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@settings(max_examples=examples(40))
@given(case=cases(), cuts=st.lists(st.integers(0, 4), max_size=5))
def test_random_statements_equal_duckdb(db: duckdb.DuckDBPyConnection, case: Case, cuts: list[int]) -> None:
    want = answer(db, case)
    check(case, "golden", want)
    check(case, WithoutKernels(), want)
    if case.time is not None:  # else rows arrive as they are pushed
        stream(case, cuts, want)


@pytest.mark.parametrize("type_", COLUMN_TYPES, ids=str)
@settings(max_examples=4)
@given(data=st.data())
def test_values_of_one_type_equal_duckdb(db: duckdb.DuckDBPyConnection, data: st.DataObject,
                                         type_: pa.DataType) -> None:
    case = data.draw(cases(type_))
    check(case, "golden", answer(db, case))


def answer(db: duckdb.DuckDBPyConnection, case: Case) -> list[tuple[Any, ...]]:
    """DuckDB's rows; times as nanoseconds (dates as days)."""
    on = case.on.oracle if case.where is None else f"({case.on.oracle}) AND ({case.where.oracle})"
    found = selected(db, case.r, case.s, [v.oracle for v in case.items], on=on, window_r=case.windows.r,
                     window_s=case.windows.s, time=case.time, integer_times=True)
    return [tuple(map(exactly, row)) for row in found]


def check(case: Case, device: str | Device, want: list[tuple[Any, ...]]) -> None:
    """The rows of whole tables."""
    with refused():
        table = splitjoin.sql(case.text, left_one=case.r, right_one=case.s, window=case.windows.spec, time=case.time,
                              device=device).table
        assert plainly(table) == want


def stream(case: Case, cuts: list[int], want: list[tuple[Any, ...]]) -> None:
    """The same from a session that gets the tables in pieces of these sizes, by turns."""
    with refused():
        made = splitjoin.sql(case.text, left_one=case.r.schema, right_one=case.s.schema, window=case.windows.spec,
                             time=case.time)
        with splitjoin.open(made, "golden") as session:
            found, left = [], [case.r, case.s]
            for n, cut in enumerate([*cuts, 100, 100]):
                push = session.push_s if n % 2 else session.push_r
                push(left[n % 2].slice(0, cut))
                left[n % 2] = left[n % 2].slice(cut)
                found.append(session.poll())
            found.append(session.flush())
        assert plainly(pa.Table.from_batches(found)) == want


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Allow the refusal of values that do not fit 64 bits or 38 digits, here or in DuckDB, and of nothing else."""
    try:
        yield
    except (InputError, PredicateError) as error:
        if not any(said in str(error) for said in ("in the result must fit", "digits behind the point",
                                                   "gives no rows: Out of Range Error",
                                                   "^ is XOR in a condition and a power in DuckDB")):
            raise


def plainly(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as DuckDB has them: times as integers."""
    made = []
    for data in table.columns:
        t = data.type
        if pa.types.is_date(t):
            made.append([exactly(v) for v in data.cast(pa.int32()).to_pylist()])
        elif pa.types.is_timestamp(t) or pa.types.is_duration(t):
            per = NS_PER_TICK[t.unit]
            made.append([None if v is None else Fraction(v * per) for v in data.cast(pa.int64()).to_pylist()])
        else:
            made.append([exactly(v) for v in data.to_pylist()])
    return list(zip(*made, strict=True))
