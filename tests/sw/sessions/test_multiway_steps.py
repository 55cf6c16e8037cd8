"""What stands between the steps of a join of several streams: the order in which rows go on."""

from __future__ import annotations

import pyarrow as pa

import splitjoin

from .test_multiway import SCHEMA
from .test_multiway_left import made


def test_rows_of_one_time_wait_for_those_that_are_decided_later() -> None:
    """A row of a alone is known by the last time at which b could meet it; until then it holds pairs of its time up."""
    text = "SELECT a.t AS at, b.t AS bt FROM a LEFT JOIN b ON a.v = b.v JOIN c ON c.v >= 0"
    with splitjoin.open_multiway(made([20, 20, 20], text), "golden") as session:
        session.push("a", pa.table([[0, 5], [1, 2]], schema=SCHEMA))
        session.push("b", pa.table([[5], [1]], schema=SCHEMA))
        session.push("c", pa.table([[3], [0]], schema=SCHEMA))
        found = []
        for now in range(6, 60):
            session.heartbeat(now)
            found += session.poll().to_pylist()
        assert found == [{"at": 5, "bt": None}, {"at": 0, "bt": 5}]
