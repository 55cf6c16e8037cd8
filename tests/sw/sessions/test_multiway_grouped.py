"""GROUP BY in joins of several streams: a row for each combination of all but the last; machines have random ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import signed, unsigned
from splitjoin.base.errors import InputError, StatementError
from splitjoin.joins.sql import MultiwaySelect

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int32())])
ITEMS = "a.t AS at, b.v - a.v AS d, count(*) AS n"


def made(how: str, lengths: list[int], items: str = ITEMS, group: str = "a, b", **options: Any) -> MultiwaySelect:
    found = splitjoin.sql(f"SELECT {items} FROM a JOIN b ON abs(a.v - b.v) <= 1 {how} c ON c.v <= a.v GROUP BY {group}",
                          window={name: f"RANGE {length}" for name, length in zip("abc", lengths, strict=True)},
                          time="t", tables=dict.fromkeys("abc", SCHEMA), **options)
    assert isinstance(found, MultiwaySelect)
    return found


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
