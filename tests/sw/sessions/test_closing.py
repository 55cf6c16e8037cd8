"""The end of a stream and of a session: what is refused then, and with what advice."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import DeviceError, InputError, StreamJoin
from splitjoin.engines.golden import GoldenDevice

from ...support.sessions import FINISHED, query, r, s


@pytest.mark.parametrize("time", ["ts", None])
def test_advice_after_the_end_can_be_followed(time: str | None) -> None:
    def refused(call: Any) -> str:
        with pytest.raises(InputError) as caught:
            call()
        return str(caught.value)

    with StreamJoin(query(time=time, window="ROWS 9"), GoldenDevice()) as session:
        early = session.source("s")
        early.close()
        assert refused(lambda: early.push(s(1))) == "source s[0] is closed and takes no more; add a new one"
        session.source("s").push(s(1))
        session.push_r(r(1))
        session.close_r()
        session.close_s()
        for push in (lambda: session.push_r(r(2)), lambda: session.source("r"),
                     lambda: session.source_at("r", 0).push(r(2))):
            assert refused(push) == FINISHED
        assert "stream s is finished" in refused(lambda: early.push(s(1)))
        assert "stream s is finished" in refused(lambda: session.push_s(s(1)))


def test_a_stream_that_ends_without_a_tuple_has_no_more_heartbeats() -> None:
    with StreamJoin(query(how="full"), GoldenDevice()) as session:
        session.close_r()
        session.idle("r")
        session.push_s(s(1))
        session.heartbeat(1002)
        assert len(session.poll()) == 1 and session.sources("r") == 0


def test_a_heartbeat_that_is_refused_binds_no_stream() -> None:
    def schema(unit: str) -> pa.Schema:
        return pa.schema([("ts", pa.timestamp(unit)), ("x", pa.int32())])

    made = splitjoin.query(schema("ms"), schema("us"), on="r.x = s.x", window="RANGE 1 SECOND", time="ts")
    rows = pa.table([[dt.datetime(1970, 1, 1)], [1]], schema=schema("ms"))
    late = pa.scalar(9000, pa.timestamp("ms"))
    with StreamJoin(made, GoldenDevice()) as session:
        with pytest.raises(InputError, match=r"a time of stream s must be a timestamp\[us\]"):
            session.heartbeat(late)
        session.push_r(rows)


def test_a_closed_session_refuses_everything() -> None:
    session = StreamJoin(query(), GoldenDevice())
    source = session.source("r")
    session.close()
    session.close()
    for call in (lambda: session.push_r(r(1)), lambda: source.push(r(1)), session.poll, session.flush, session.snapshot,
                 lambda: session.restore(b""), session.restart, lambda: session.heartbeat(1), session.close_r,
                 lambda: session.source("r"), lambda: list(session)):
        with pytest.raises(DeviceError) as caught:
            call()
        assert str(caught.value) == "the session is closed"
    source.close()
