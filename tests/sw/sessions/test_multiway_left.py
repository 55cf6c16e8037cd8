"""A LEFT JOIN at the end of a join of several streams: rows of the definition, once none can come that they meet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.engines.golden import GoldenDevice
from splitjoin.joins.sql import MultiwaySelect
from splitjoin.sessions import MultiwayJoin
from tests.support.multiway import combinations, fed
from tests.support.sampling import examples

from ...support.lagging import LaggingDevice
from .test_multiway import SCHEMA

TEXT = ("SELECT a.t AS at, b.t AS bt, c.t AS ct, a.v AS av, b.v AS bv, c.v AS cv FROM a JOIN b ON a.v = b.v "
        "LEFT JOIN c ON c.v <= a.v AND b.v > 0 WHERE a.v < 3")


def made(lengths: list[int], text: str = TEXT) -> MultiwaySelect:
    found = splitjoin.sql(text, window={name: f"RANGE {n}" for name, n in zip("abc", lengths, strict=True)}, time="t",
                          tables=dict.fromkeys("abc", SCHEMA))
    assert isinstance(found, MultiwaySelect)
    return found


def key(row: dict[str, Any]) -> list[tuple[bool, int]]:
    return [(value is None, value or 0) for value in row.values()]


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_however_it_is_fed(data: st.DataObject) -> None:
    streams = {}
    for name in "abc":
        times = sorted(data.draw(st.lists(st.integers(0, 12), max_size=8)))
        values = data.draw(st.lists(st.integers(0, 3), min_size=len(times), max_size=len(times)))
        streams[name] = pa.table([times, values], schema=SCHEMA)
    lengths = data.draw(st.lists(st.integers(0, 8), min_size=3, max_size=3))
    select = made(lengths)

    def fresh() -> MultiwayJoin:
        lag = data.draw(st.sampled_from([None, None, 0, 3]))
        return MultiwayJoin(select, [GoldenDevice() if lag is None else LaggingDevice(lag) for _ in select.steps])

    rows = fed(data, streams, fresh)
    full = combinations(streams, lambda a, b, c: a["v"] == b["v"] < 3 and c["v"] <= a["v"] and b["v"] > 0, lengths, "t")
    pairs = combinations({name: streams[name] for name in "ab"}, lambda a, b: a["v"] == b["v"] < 3, lengths[:2], "t")
    wanted = [{f"{n}{column}": of[column] for column in "tv" for n, of in zip("abc", row, strict=True)} for row in full]
    assert [row for row in rows if row["ct"] is not None] == wanted, "in order"
    left = [{"at": a["t"], "bt": b["t"], "ct": None, "av": a["v"], "bv": b["v"], "cv": None} for a, b in pairs]
    for chosen in full:  # equal tuples meet the same
        left = [row for row in left if (row["at"], row["av"], row["bt"], row["bv"]) != (
            chosen[0]["t"], chosen[0]["v"], chosen[1]["t"], chosen[1]["v"])]
    assert sorted((row for row in rows if row["ct"] is None), key=key) == sorted(left, key=key)


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
