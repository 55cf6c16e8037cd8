"""The pairs that a query of a common join chooses as its own: by its condition, and up to where it ends."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import DeviceError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.sessions import CommonJoin, SharedQuery, SharedStreams
from splitjoin.sessions.shared.chosen_pairs import PairTest, WindowSince
from tests.support.lagging import LaggingDevice

from .test_common_join import fill
from .test_shared import R, S, rows


def test_a_query_that_was_flushed_while_the_device_failed_ends_where_it_was_flushed() -> None:
    """Also where other streams go on from a snapshot of then."""
    def added(hub: SharedStreams, device: Any) -> tuple[CommonJoin, SharedQuery, SharedQuery]:
        join = hub.common_join(on="r.x = s.y", window="RANGE 3", device=device)
        return join, join.query(on="r.x = s.y"), join.query(on="r.x = s.y")

    # The last tuple of S is not ready, as R may bring one of its time.
    alone = splitjoin.join(rows("r", 20), rows("s", 19), on="r.x = s.y", window="RANGE 3", time="t").to_arrow()
    with splitjoin.share(R, S, time="t") as hub, splitjoin.share(R, S, time="t") as other:
        (join, early, late), (_, again, _) = added(hub, LaggingDevice(fails=2)), added(other, "golden")
        fill(hub, 10)
        before = early.poll().num_rows
        fill(hub, 10, 10)
        with pytest.raises(DeviceError, match="the cable is out"):
            early.flush()
        other.restore(hub.snapshot())
        for to in (hub, other):
            fill(to, 10, 20)
        join.restart("golden")
        every = late.poll().num_rows
        assert early.poll().to_pylist() == again.poll().to_pylist() == alone.to_pylist()[before:]
        assert before < len(alone) < every
        assert early.poll().num_rows == again.poll().num_rows == 0
        assert early.finished and again.finished


def test_a_longer_window_brings_no_tuple_back_that_a_shorter_one_has_let_go() -> None:
    """Nor does a second one that is longer still."""
    r, s = (Schema.from_arrow(side, schema) for side, schema in (("r", R), ("s", S)))
    asked = Query.make(r, s, on="r.x = s.y", window="RANGE 3", time="t")
    test = PairTest(asked, asked)
    for place, first in ((5, 4), (8, 2), (9, 3)):
        test.change(WindowSince((place, place), (first, first + 1), (9, 9)))
    assert [window.first for window in test.windows] == [(0, 0), (4, 5), (4, 5), (4, 5)]


def test_a_pair_whose_condition_is_null_is_no_row() -> None:
    """Also where the value that stands for NULL would make it true."""
    with splitjoin.share(R, S, time="t") as hub:
        query = hub.common_join(on="r.x = s.y", window="RANGE 3").query(on="r.x = s.y AND r.name <> 'b'")
        hub.push_r(pa.table({"t": [1, 1, 1], "x": [0, 0, 0], "name": ["a", "b", None]}, schema=R))
        hub.push_s(pa.table({"t": [2], "y": [0]}, schema=S))
        hub.close()
        assert query.poll()["name"].to_pylist() == ["a"]
