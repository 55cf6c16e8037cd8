"""The CPU makes no stars for a session whose items nobody reads, and the rows are the same, whatever the kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.engines.device import STAR
from splitjoin.rows.numbered import NumberedSession

R, S = (pa.schema([("ts", pa.int64()), (key, pa.int64()), ("name", pa.string())]) for key in ("x", "a"))


@pytest.mark.parametrize(("kind", "order"), [
    ({}, "total"), ({}, "outer(3)"), *(({"how": how}, "total") for how in ("left", "full", "semi", "anti")),
    ({"how": "asof", "direction": "nearest"}, "total")], ids=str)
def test_rows_without_stars(kind: dict[str, Any], order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stars, poll = 0, NumberedSession.poll

    def counted(self: NumberedSession) -> Any:
        nonlocal stars
        items = poll(self)
        stars += int(np.count_nonzero(items["kind"] == STAR))
        return items

    monkeypatch.setattr(NumberedSession, "poll", counted)
    chance, found = np.random.default_rng(1), []
    r, s = (pa.table([np.sort(chance.integers(0, 300, 300)), chance.integers(0, 40, 300),
                      pa.array(chance.choice(["a", "b", None], 300))], schema=schema) for schema in (R, S))
    query = splitjoin.query(R, S, on="abs(r.x - s.a) <= 1", window="RANGE 20", time="ts", order=order, **kind)
    for punctuation in (False, True):
        stars, rows = 0, []
        with splitjoin.open(query, punctuation=punctuation) as session:
            for at in range(0, 300, 50):
                session.push_s(s[at:at + 50])
                session.push_r(r[at:at + 50])
                rows += session.poll().to_pylist()
            session.close_r()
            session.close_s()
            found.append(rows + session.poll().to_pylist())
        assert bool(stars) == punctuation
    assert len(found[0]) > 10
    assert found[0] == found[1]
