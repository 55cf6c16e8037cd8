"""A LEFT JOIN at the end of a join of several streams: rows of the definition, once none can come that they meet."""

from __future__ import annotations

import pyarrow as pa

import splitjoin
from splitjoin.joins.sql import MultiwaySelect

from .test_multiway import SCHEMA

TEXT = ("SELECT a.t AS at, b.t AS bt, c.t AS ct, a.v AS av, b.v AS bv, c.v AS cv FROM a JOIN b ON a.v = b.v "
        "LEFT JOIN c ON c.v <= a.v AND b.v > 0 WHERE a.v < 3")


def made(lengths: list[int], text: str = TEXT) -> MultiwaySelect:
    found = splitjoin.sql(text, window={name: f"RANGE {n}" for name, n in zip("abc", lengths, strict=True)}, time="t",
                          tables=dict.fromkeys("abc", SCHEMA))
    assert isinstance(found, MultiwaySelect)
    return found


def test_rows_of_null_come_with_time_and_keep_their_order() -> None:
    with splitjoin.open_multiway(made([3, 3, 3]), "golden") as session:
        session.push("a", pa.table([[0, 1, 2], [2, 1, 0]], schema=SCHEMA))
        session.push("b", pa.table([[0, 1, 2], [2, 1, 0]], schema=SCHEMA))
        session.heartbeat(5)
        assert session.poll()["at"].to_pylist() == [2, 0, 1], "0 of b has no partner by itself, the others wait"
        session.push("a", pa.table([[10, 11], [1, 2]], schema=SCHEMA))
        session.push("b", pa.table([[12, 13], [2, 1]], schema=SCHEMA))
        session.push("c", pa.table([[40], [9]], schema=SCHEMA))
        session.heartbeat(41)
        assert session.poll()["at"].to_pylist() == [11, 10], "by the arrival of the latest tuple, which is of b"
        assert not len(session.flush())


def test_rows_at_the_time_that_others_can_still_have_wait_for_these() -> None:
    """At 8, the row of 7 with NULL is not decided yet, and comes before that of 1, which has the same latest time."""
    text = "SELECT a.v AS av, b.v AS bv, c.v AS cv FROM a LEFT JOIN b ON a.v = b.v JOIN c ON c.v >= a.v"
    with splitjoin.open_multiway(made([3, 3, 9], text), "golden") as session:
        session.push("a", pa.table([[5, 5], [7, 1]], schema=SCHEMA))
        session.push("b", pa.table([[5], [1]], schema=SCHEMA))
        session.push("c", pa.table([[4], [9]], schema=SCHEMA))
        for time in (8, 9, 40):
            session.heartbeat(time)
        assert session.poll().to_pylist() == [{"av": 7, "bv": None, "cv": 9}, {"av": 1, "bv": 1, "cv": 9}]
