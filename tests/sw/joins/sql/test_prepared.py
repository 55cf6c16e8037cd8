"""A statement that comes again is answered by the steps that were taken before: over other rows, with their answer."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest
from bench.writings import STATEMENTS, stated

import splitjoin
from splitjoin import InputError
from splitjoin.base import recent
from splitjoin.joins.sql import database, from_clause, prepared
from splitjoin.joins.sql.select import Select

TEXTS = [text for texts in STATEMENTS.values() for text in texts]
EXISTS = "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.t <= r.t)"
SUMS = "SELECT r.id, (SELECT sum(s.v) FROM s WHERE s.k = r.k AND s.t <= r.t) AS n FROM r"


def answered(text: str, tables: dict[str, pa.Table]) -> list[str]:
    return sorted(map(repr, splitjoin.sql(text, tables=tables).to_pylist()))


def anew(text: str, tables: dict[str, pa.Table]) -> list[str]:
    recent.forget()
    return answered(text, tables)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("this was made before")


def other(rows: int, *, nulls: bool = False) -> dict[str, pa.Table]:
    """Other rows than those of `stated`, of the same types."""
    return {name: table.take(pa.array(range(len(table) - 1, -1, -1))).slice(7) if not nulls else table
            for name, table in stated(rows, nulls=nulls).items()}


@pytest.mark.parametrize("text", TEXTS)
def test_the_second_time_nothing_is_read_or_planned(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later = other(150)
    wanted = anew(text, later)
    asked, opened = list[bool](), database.connection
    recent.forget()
    with monkeypatch.context() as patched:
        patched.setattr(database, "connection", lambda: (asked.append(True), opened())[1])
        answered(text, stated(90))
    assert answered(text, later) == wanted
    if not asked:
        monkeypatch.setattr(prepared, "statement_tree", never)
        monkeypatch.setattr(from_clause, "qualified", never)
        monkeypatch.setattr(Select, "make", never)
        assert answered(text, later) == wanted


@pytest.mark.parametrize("text", TEXTS)
def test_tables_with_null_or_of_other_types_have_steps_of_their_own(text: str) -> None:
    wide = stated(60)
    narrow = {name: table.set_column(table.schema.get_field_index("t"), "t", table["t"].cast(pa.int32()))
              for name, table in wide.items()}
    cases = [wide, stated(60, nulls=True), narrow, wide]
    wanted = [anew(text, tables) for tables in cases]
    recent.forget()
    assert [answered(text, tables) for tables in cases] == wanted


def test_one_table_under_two_names_is_not_two_tables() -> None:
    tables = stated(60)
    both = dict.fromkeys(("r", "s"), tables["r"])
    text = "SELECT r.id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.t < r.t)"
    split = {"r": tables["r"], "s": tables["r"].slice(30)}
    wanted = [anew(text, both), anew(text, split)]
    recent.forget()
    assert [answered(text, both), answered(text, split), answered(text, both)] == [*wanted, wanted[0]]


@pytest.mark.parametrize("text", [
    "SELECT r.id FROM r LEFT JOIN (SELECT * FROM s WHERE id < 3) q ON r.v <> q.id WHERE q.v IS NULL",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.id = r.id AND s.id < 3) AND v NOT IN (SELECT v FROM s "
    "WHERE s.v > r.id)",
    "WITH c AS (SELECT * FROM s WHERE id < 3) SELECT id FROM r WHERE EXISTS (SELECT 1 FROM c WHERE c.id = r.id) AND "
    "id NOT IN (SELECT v FROM c WHERE c.id < r.id)",
])
def test_null_in_rows_between_steps_is_looked_for_each_time(text: str) -> None:
    """The second tables have NULL in the same columns as the first, but in other rows."""
    cases = [{name: pa.table({"id": range(5), "v": [None if n == at else n for n in range(5)]}) for name in "rs"}
             for at in (4, 1)]
    wanted = [anew(text, tables) for tables in cases]
    recent.forget()
    assert wanted[0] != wanted[1]
    assert [answered(text, tables) for tables in cases] == wanted


def test_rows_of_joins_that_nothing_asks_for() -> None:
    tables = stated(20)
    text = "WITH q AS (SELECT r.id FROM r JOIN s ON r.k = s.k) SELECT v FROM s"
    assert [answered(text, tables) for _ in range(2)] == [sorted(map(repr, tables["s"].select(["v"]).to_pylist()))] * 2


def test_no_rows_are_kept() -> None:
    tables = stated(60)
    kept = [weakref.ref(table) for table in tables.values()]
    for text in TEXTS:
        answered(text, tables)
    database.close_idle()
    del tables
    gc.collect()
    assert [of() for of in kept] == [None, None]


def test_steps_that_fail_give_the_error_of_the_statement() -> None:
    tables = stated(60)
    large = {"r": tables["r"], "s": tables["s"].set_column(2, "v", pa.array([2**62] * 60))}
    answered(SUMS, tables)
    with pytest.raises(InputError, match="must fit int64") as again:
        answered(SUMS, large)
    with pytest.raises(InputError) as first:
        anew(SUMS, large)
    assert str(again.value) == str(first.value)


def test_texts_that_came_last_are_kept_and_errors_are_raised_each_time() -> None:
    tables = stated(20)
    known = prepared.prepared(EXISTS)
    assert prepared.prepared(EXISTS) is known
    for n in range(20):
        answered(EXISTS, {name: table.append_column(f"c{n}", table["k"]) for name, table in tables.items()})
    assert len(known.answers) <= recent.MOST_PLANS
    for _ in range(2):
        with pytest.raises(splitjoin.SplitJoinError, match="nothing"):
            splitjoin.sql("SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.nothing = r.k)", tables=tables)
