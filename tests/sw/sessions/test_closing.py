"""The end of a stream and of a session: what is refused then, and with what advice."""

from __future__ import annotations

from typing import Any

import pytest

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
