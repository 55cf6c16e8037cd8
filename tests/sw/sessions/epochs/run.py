"""A program that joins two streams, or three, into a folder of epochs, and goes on where an earlier run was killed.

Run: python -m tests.sw.sessions.epochs.run FOLDER [three]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import splitjoin

__all__ = ["ROWS", "THREE", "A", "B", "offers", "orders", "query"]

A = pa.schema([("ts", pa.int64()), ("x", pa.int32())])
B = pa.schema([("ts", pa.int64()), ("a", pa.int32())])
ROWS = 1500
#: The arguments of `splitjoin.sql` for three streams, of which the third one is the first one again.
THREE: dict[str, Any] = {"window": "RANGE 20", "time": "ts", "text": (
    "SELECT o.ts, f.ts AS other, p.ts AS last, o.x FROM o JOIN f ON abs(o.x - f.a) <= 5 JOIN p ON p.x >= f.a + 70")}


def orders() -> pa.Table:
    return pa.table({"ts": range(ROWS), "x": [i * 7 % 90 for i in range(ROWS)]}, schema=A)


def offers() -> pa.Table:
    return pa.table({"ts": range(ROWS), "a": [i * 11 % 90 for i in range(ROWS)]}, schema=B)


def query() -> splitjoin.Query:
    return splitjoin.query(A, B, on="abs(r.x - s.a) <= 5", window="RANGE 40", time="ts", how="full")


def three(folder: Path) -> None:
    tables = {"o": orders(), "f": offers(), "p": orders()}
    select: Any = splitjoin.sql(**THREE, tables={name: table.schema for name, table in tables.items()})
    with splitjoin.open_multiway(select) as session, session.write_to(folder, rows=200) as epochs:
        at = {name: sum(epochs.delivered.get(name, ())) for name in tables}
        while max(at.values()) < ROWS:
            for name, table in tables.items():
                session.push(name, table.slice(at[name], 10))
            at = {name: min(n + 10, ROWS) for name, n in at.items()}
            epochs.write()
            time.sleep(0.002)
        for name in tables:
            session.finish(name)
        epochs.run()


def main(folder: Path) -> None:
    with splitjoin.open(query()) as session, session.write_to(folder, rows=200) as epochs:
        at = {side: sum(epochs.delivered.get(side, ())) for side in "rs"}
        while not session.finished and max(at.values()) < ROWS:
            session.push_r(orders().slice(at["r"], 10))
            session.push_s(offers().slice(at["s"], 10))
            at = {side: min(n + 10, ROWS) for side, n in at.items()}
            epochs.write()
            time.sleep(0.002)
        session.close_r()
        session.close_s()
        epochs.run()


if __name__ == "__main__":
    (three if "three" in sys.argv[2:] else main)(Path(sys.argv[1]))
