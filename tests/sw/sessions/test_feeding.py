"""However a session is fed, interrupted and moved, it gives the golden answer, row for row and star for star."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import BackPressure, InputError
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin.rows.device_times import is_unordered
from splitjoin.sessions import Limit, StreamJoin
from tests.support.conformance import assert_conforms
from tests.support.sampling import at_length
from tests.support.scenarios import SCENARIOS
from tests.support.strategies import scenario

from ...support.feeding import answer, feed, feeds, stream_query, whole
from ...support.lagging import LaggingDevice
from ...support.sessions import R, S, query, r, s


def same_rows(found: pa.Table, expected: pa.Table) -> None:
    """Equal, NaN to NaN, in order."""
    assert found.schema.equals(expected.schema)
    assert rows_of(found) == rows_of(expected)


def rows_of(table: pa.Table) -> list[str]:
    """Each row as text; dates and times as numbers, as Python has no such years as may occur."""
    plain = {pa.date32(): pa.int32()}
    columns = [c.cast(pa.int64() if pa.types.is_timestamp(c.type) else plain.get(c.type, c.type)).to_pylist()
               for c in table.columns]
    return [repr(row) for row in zip(*columns, strict=True)]


def check(data: st.DataObject, devices: list[Device], r: pa.Table, s: pa.Table, **query: Any) -> None:
    made = stream_query(r, s, **query)
    how = data.draw(feeds(len(r), len(s)))
    session = feed(how, [lambda d=d: StreamJoin(made, d, punctuation=True) for d in devices], r, s, query["time"])
    with session:
        items, rows = answer(made, whole(made, how, r, s))
        if not is_unordered(made):  # else row ids count the tuples as they became ready
            assert_conforms(np.concatenate(how.items), items, query["order"])
        got = pa.Table.from_batches(how.rows, session.schema)
        if all(d.immediate for d in devices) and not is_unordered(made):
            same_rows(got, rows)
        else:
            assert sorted(rows_of(got)) == sorted(rows_of(rows))
        if query["order"] == "total":
            same_rows(got, rows)
        counters = session.counters()
        assert (counters["rows"], counters["unread_rows"], counters["waiting"]) == (len(rows), 0, 0)
        assert (counters["tuples_r"], counters["tuples_s"]) == (len(r), len(s))


@given(scenario(max_rows=14), st.data())
def test_golden(case: Any, data: st.DataObject) -> None:
    check(data, [GoldenDevice()], case.r, case.s, on=case.on.sql, window=case.windows.spec, time=case.time,
          order=case.order)


@given(scenario(max_rows=14, type_=pa.int32()), st.data())
def test_lagging_device(case: Any, data: st.DataObject) -> None:
    lag = data.draw(st.integers(0, 9))
    devices: list[Device] = [LaggingDevice(lag), GoldenDevice()]
    check(data, data.draw(st.permutations(devices)), case.r, case.s, on=case.on.sql, window=case.windows.spec,
          time=case.time, order=case.order)


@pytest.mark.parametrize("case", SCENARIOS, ids=str)
@settings(max_examples=3)
@given(data=st.data())
def test_shared_scenarios_moving_between_golden_and_cpu(case: Any, data: st.DataObject) -> None:
    devices: list[Device] = [CpuDevice(), GoldenDevice()]
    order = data.draw(st.sampled_from(["none", "total", "outer(1)", "outer(3)", "inner(2)"]))
    check(data, data.draw(st.permutations(devices)), case.r, case.s, on=case.on, window=case.window, time=case.time,
          order=order)


MOVES = [("band-range", "none"), ("band-rows-and-range", "total"), ("null-band", "outer(3)")]


@pytest.mark.parametrize(("name", "order"), [MOVES[0], at_length(*MOVES[1]), MOVES[2], *(
    at_length(name, order) for name, _ in MOVES for _, order in MOVES if (name, order) not in MOVES)])
def test_moving_between_the_circuit_and_cpu(name: str, order: str) -> None:
    from splitjoin_sim import SimDevice

    case = next(c for c in SCENARIOS if c.name == name)

    @settings(max_examples=4)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        circuit = SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4)  # that of `test_conformance`
        check(data, data.draw(st.permutations([circuit, CpuDevice()])), case.r, case.s, on=case.on,
              window=case.window, time=case.time, order=order)

    run()


@given(scenario(max_rows=14, type_=pa.int32()), st.data())
def test_a_full_session_loses_nothing(case: Any, data: st.DataObject) -> None:
    """With tiny limits, a batch that is refused is pushed again after a poll."""
    made = stream_query(case.r, case.s, on=case.on.sql, window=case.windows.spec, time=case.time, order="total")
    limit = Limit(rows=data.draw(st.integers(1, 4)), waiting=data.draw(st.integers(1, 3)))
    left = {"r": case.r, "s": case.s}
    rows, refused = [], 0
    with StreamJoin(made, GoldenDevice(), limit=limit) as session:
        order = []
        while len(left["r"]) or len(left["s"]):
            side = data.draw(st.sampled_from([side for side in ("r", "s") if len(left[side])]))
            n = data.draw(st.integers(1, 3))
            try:
                (session.push_r if side == "r" else session.push_s)(left[side].slice(0, n))
            except BackPressure as error:
                refused += 1
                if "poll first" in str(error):
                    rows.append(session.poll())
                    continue
                side = re.split(" waits? for ", str(error))[1][0]  # the stream that is behind
                if not len(left[side]):
                    (session.close_r if side == "r" else session.close_s)()
                    continue
                (session.push_r if side == "r" else session.push_s)(left[side].slice(0, n))
            order += [side == "s"] * len(left[side].slice(0, n))
            left[side] = left[side].slice(n)
        rows.append(session.flush())
        if made.time is None:
            arrived = Arrivals(np.array(order, np.uint8), None, case.r, case.s)
        else:
            arrived = arrivals(made, case.r, case.s)
        same_rows(pa.Table.from_batches(rows, session.schema), answer(made, arrived)[1])


@pytest.mark.parametrize("time", [None, "ts"])
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_session_takes_tuples_as_shared_streams_do(is_shared: bool, time: str | None) -> None:
    made = query(time=time, window="ROWS 9")
    join: Any = splitjoin.share(R, S, time=time, waiting=3) if is_shared else StreamJoin(
        made, GoldenDevice(), limit=Limit(waiting=3))
    with join:
        first, second = join.source("r"), join.source("r")
        first.push(r(1, 2, 3))
        assert join.delivered == {"r": (3, 0), "s": ()}
        join.push_s(s(1))
        assert (join.sources("r"), join.sources("s"), join.source_at("r", 1).index) == (2, 1, 1)
        if time is not None:
            with pytest.raises(BackPressure, match=r"full: 4 tuples wait for r\[1\], and the limit is 3; push"):
                first.push(r(4))
        second.close()
        with pytest.raises(InputError, match=r"source r\[1\] is closed and takes no more; add a new one"):
            second.idle()
        assert join.delivered == {"r": (3, 0), "s": (1,)}
