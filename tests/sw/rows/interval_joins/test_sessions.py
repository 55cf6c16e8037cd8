"""Sessions on engines that make no pairs, however they are fed, moved to other devices, and restored from snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.engines.arrival import interleave
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin.rows.aggregates import reference_aggregates
from splitjoin.rows.interval_joins.choice import interval_choice
from splitjoin.rows.interval_joins.encoding import EncodedRows
from splitjoin.sessions import StreamJoin

from ....support.feeding import feed, feeds, whole
from ....support.lagging import LaggingDevice
from ....support.sampling import examples
from ....support.scenarios import SCENARIOS
from ...sessions.test_feeding import rows_of

CASES = {c.name: c for c in SCENARIOS if c.name in ("band-range", "band-rows-and-range", "rows-and-range-different",
                                                    "null-band", "ties", "burst", "equal-rows-different")}


@pytest.mark.parametrize("devices", [[CpuDevice(engine="sliding", threads=1), GoldenDevice()],
                                     [CpuDevice(engine="scale-oij", threads=2), LaggingDevice(3),
                                      CpuDevice(engine="key-oij", threads=1)]], ids=["sliding", "oij"])
@settings(max_examples=examples(10))
@given(data=st.data())
def test_sessions(devices: list[Device], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(sorted(CASES.values(), key=str)))
    window: Any = case.window
    if isinstance(devices[0], CpuDevice) and devices[0].engine == "scale-oij":
        if case.time is None:
            return
        window = data.draw(st.sampled_from(["RANGE 4", ("RANGE 0", "RANGE 20"), ("RANGE 9", "RANGE 0")]))
    query = splitjoin.query(
        case.r.schema, case.s.schema, on=data.draw(st.sampled_from(["r.x = s.a", "TRUE", "r.x = s.a AND s.b > 3"])),
        window=window, time=case.time, by="r", how=data.draw(st.sampled_from(["inner", "left"])),
        aggregate={"n": "count(*)", "low": "min(s.a)", "total": "sum(s.b)", "late": "last(s.b)",
                   "d": "count(DISTINCT s.b)"})
    how = data.draw(feeds(len(case.r), len(case.s)))
    makers = [lambda d=d: StreamJoin(query, d, punctuation=True) for d in devices]
    with feed(how, makers, case.r, case.s, case.time) as session:
        arrived = whole(query, how, case.r, case.s)
        with GoldenDevice().open(query.pairs) as golden:
            golden.push(arrived)
            items, values = reference_aggregates(query, arrived, golden.flush())
        expected = arrived.r.take(pa.array(items["r"][items["kind"] == 0]))
        for field, column in zip(list(session.schema)[-5:], values, strict=True):
            expected = expected.append_column(field, column)
        assert rows_of(pa.Table.from_batches(how.rows, session.schema)) == rows_of(expected)
        assert np.concatenate(how.items).tolist() == items.tolist()


def test_a_session_forgets_what_no_later_base_tuple_meets() -> None:
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64())])
    for engine in ("sliding", "key-oij", "scale-oij"):
        query = splitjoin.query(schema, schema, on="r.k = s.k", window=("RANGE 2", "RANGE 50"), time="ts",
                                aggregate={"n": "count(*)", "high": "max(s.v)"}, how="left")
        with splitjoin.open(query, engine=engine, threads=1) as session:
            counts = []
            for first in range(0, 30_000, 300):
                ts = np.arange(first, first + 300)
                table = pa.table([ts, ts % 3, ts * 0.5], schema=schema)
                session.push_s(table)
                session.push_r(table)
                counts += session.poll().column("n").to_pylist()
            assert set(counts[100:]) == {17}  # itself and 50 before, of which a third has the key
            assert session.counters()["retained_s"] < 700
            assert session.counters()["device_matches"] == sum(counts)
            snapshot = session.snapshot()
        with splitjoin.open(query, "golden") as other:
            other.restore(snapshot)
            assert other.flush().column("n").to_pylist() == [17, 17, 17]


def test_pairs_of_a_snapshot_are_of_equal_keys_however_many_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes count all keys that ever came: here some that differ in the bits beyond the 24th alone."""
    table = pa.table({"ts": [1, 1, 1, 1], "k": [5, 2**24 + 5, 2**24 - 1, -1]})
    query = splitjoin.query(table.schema, table.schema, on="r.k = s.k", window="RANGE 4", time="ts", by="r",
                            aggregate={"n": "count(*)"})
    asked = CpuDevice(engine="sliding", threads=1).host_folds
    assert asked is not None
    choice = interval_choice(query, asked)
    assert choice is not None
    folder = choice.folder()
    monkeypatch.setattr(folder._encoder, "encode", lambda side, given: EncodedRows(
        given["k"].to_numpy(), np.empty((0, 4), np.int64), np.empty((0, 4), np.uint8)))
    folder.arrive(interleave(table, table, (np.ones(4, np.int64),) * 2, np.zeros(4, np.int64)))
    r, s = folder.pairs()
    assert (r.tolist(), s.tolist()) == ([0, 1, 2], [0, 1, 2])
    folder.close()
