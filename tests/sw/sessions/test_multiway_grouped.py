"""GROUP BY in joins of several streams: a row for each combination of all but the last, beside its definition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import signed, unsigned
from splitjoin.base.errors import InputError, StatementError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.joins.sql import MultiwaySelect
from splitjoin.sessions import MultiwayJoin
from tests.support.multiway import combinations, fed
from tests.support.sampling import examples

from ...support.lagging import LaggingDevice

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int32())])
ITEMS = ("a.t AS at, b.t AS bt, b.v - a.v AS d, count(*) AS n, count(c.t) AS met, sum(c.v + a.v) AS total, "
         "last(c.t) AS late")


def made(how: str, lengths: list[int], items: str = ITEMS, group: str = "a, b", **options: Any) -> MultiwaySelect:
    found = splitjoin.sql(f"SELECT {items} FROM a JOIN b ON abs(a.v - b.v) <= 1 {how} c ON c.v <= a.v GROUP BY {group}",
                          window={name: f"RANGE {length}" for name, length in zip("abc", lengths, strict=True)},
                          time="t", tables=dict.fromkeys("abc", SCHEMA), **options)
    assert isinstance(found, MultiwaySelect)
    return found


def wanted(how: str, streams: dict[str, pa.Table], lengths: list[int]) -> list[tuple[Any, ...]]:
    def near(a: Any, b: Any) -> bool:
        return abs(a["v"] - b["v"]) <= 1

    numbered = {name: table.append_column("n", pa.array(range(len(table)), pa.int64()))
                for name, table in streams.items()}
    bases = combinations({name: numbered[name] for name in "ab"}, near, lengths[:2], "t")
    rows = []
    triples = combinations(numbered, lambda a, b, c: near(a, b) and c["v"] <= a["v"], lengths, "t")
    for a, b in bases:
        of = sorted((c["n"], c) for x, y, c in triples if (x["n"], y["n"]) == (a["n"], b["n"]))
        if of or how == "LEFT JOIN":
            rows.append((a["t"], b["t"], b["v"] - a["v"], max(len(of), 1), len(of),
                         sum(c["v"] + a["v"] for _, c in of) if of else None, of[-1][1]["t"] if of else None))
    return rows


@settings(max_examples=examples(15))
@given(st.data())
def test_however_it_is_fed(data: st.DataObject) -> None:
    how = data.draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
    streams = {}
    for name in "abc":
        times = sorted(data.draw(st.lists(st.integers(0, 12), max_size=8)))
        streams[name] = pa.table([times, data.draw(st.lists(
            st.integers(0, 2), min_size=len(times), max_size=len(times)))], schema=SCHEMA)
    lengths = data.draw(st.lists(st.integers(0, 8), min_size=3, max_size=3))
    select = made(how, lengths)

    def fresh() -> MultiwayJoin:
        lag = data.draw(st.sampled_from([None, 0, 3]))
        return MultiwayJoin(select, [GoldenDevice() if lag is None else LaggingDevice(lag) for _ in select.steps])

    rows = fed(data, streams, fresh)
    assert [tuple(row.values()) for row in rows] == wanted(how, streams, lengths)


@pytest.mark.parametrize("group", ["a", "a, b, c", "a.t, b.t", "ALL"])
def test_other_groups_are_refused(group: str) -> None:
    with pytest.raises(StatementError, match="so write GROUP BY a, b, and aggregates over c"):
        made("JOIN", [3, 3, 3], group=group)


def test_what_else_is_refused() -> None:
    with pytest.raises(StatementError, match="not over those of a SEMI JOIN; change the last join"):
        made("SEMI JOIN", [3, 3, 3], "a.t AS at, count(*) AS n")
    with pytest.raises(StatementError, match="needs an aggregate"):
        made("JOIN", [3, 3, 3], "a.t AS at")
    with pytest.raises(StatementError, match="write an aggregate of it"):
        made("JOIN", [3, 3, 3], "a.t AS at, c.v AS v, count(*) AS n")


@splitjoin.aggregate
class Squares:
    """The sum of squares."""

    value: unsigned(32)  # type: ignore[valid-type]

    def add(self, x: signed(32)) -> None:  # type: ignore[valid-type]
        self.value += x * x  # type: ignore[operator]

    def result(self) -> signed(64):  # type: ignore[valid-type]
        return self.value


def test_aggregates_of_ones_own() -> None:
    select = made("JOIN", [9, 9, 9], "a.t AS at, squares(c.v) AS most", aggregates={"squares": Squares})
    table = pa.table([[1, 2], [2, 2]], schema=SCHEMA)
    with splitjoin.open_multiway(select, "golden") as session:
        for name in "abc":
            session.push(name, table)
        assert session.flush().to_pylist() == [{"at": at, "most": 8} for at in (1, 2, 1, 2)]
    with pytest.raises(InputError, match="aggregates of one's own are for joins of two tables"):
        splitjoin.sql("SELECT a.t AS at FROM a JOIN b ON a.v = b.v JOIN c ON c.v = a.v",
                      aggregates={"squares": Squares}, tables=dict.fromkeys("abc", table))
