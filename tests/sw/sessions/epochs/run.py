"""A program that joins two streams into a folder of epochs, and goes on where an earlier run of it was killed.

Run: python -m tests.sw.sessions.epochs.run FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa

import splitjoin

__all__ = ["ROWS", "A", "B", "offers", "orders", "query"]

A = pa.schema([("ts", pa.int64()), ("x", pa.int32())])
B = pa.schema([("ts", pa.int64()), ("a", pa.int32())])
ROWS = 1500


def orders() -> pa.Table:
    return pa.table({"ts": range(ROWS), "x": [i * 7 % 90 for i in range(ROWS)]}, schema=A)


def offers() -> pa.Table:
    return pa.table({"ts": range(ROWS), "a": [i * 11 % 90 for i in range(ROWS)]}, schema=B)


def query() -> splitjoin.Query:
    return splitjoin.query(A, B, on="abs(r.x - s.a) <= 5", window="RANGE 40", time="ts", how="full")


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
    main(Path(sys.argv[1]))
