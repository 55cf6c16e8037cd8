"""Circuits that fold behind the link: the golden model's rows, whatever the line and the board do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.folded_states import FoldedStates
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.link.items import PackedItems
from splitjoin.link.sidecar import Sidecar

from ..support.linked_circuit import LinkedDevice
from ..support.sampling import at_length
from . import test_deciding as deciding
from .test_folding import AGGREGATES, WINDOWS, query, same, tables
from .test_folding_sessions import SHAPE as SMALL, SOME, R, S, next_time

#: The shape of the circuits of `test_folding` and `test_deciding`, which are built once for all; `SMALL` is that of
#: sessions.
SHAPE: dict[str, Any] = {"cores": 3, "capacity": 64, "lanes": 2, "probes": 2}
OF: dict[str, Any] = {"on": "abs(r.x - s.a) <= 6", "time": "ts", "window": "RANGE 6", "how": "left",
                      "aggregate": AGGREGATES, "select": ["ts", "x"]}


@pytest.mark.parametrize(("window", "pack"), [
    (WINDOWS[0], True), *(at_length(WINDOWS[n], pack) for n, pack in ((1, False), (0, False), (1, True), (2, True)))],
    ids=str)
def test_states_cross_a_line_with_faults(window: Any, pack: bool) -> None:
    """Without tuples of S that come later, pairs of the same time leave beside states."""
    device = LinkedDevice(pack=pack, share=0.01, seed=5, **SHAPE)
    r, s = tables(36, 3)
    assert device.states_circuit(query(r, s, AGGREGATES, window=window))
    same(device, r, s, window=window, how="left")
    (transport,) = device.transports
    assert transport.retransmissions > 0
    assert isinstance(transport._items, PackedItems) == pack
    same(device, r.slice(0, 9), s.slice(0, 0), window=window, how="left")
    same(device, r.slice(0, 0), s.slice(0, 0), window=window, how="left")


@pytest.mark.parametrize(("asked", "how"), [({"count": "count(*)"}, "inner"),
                                            ({"low": "min(s.p)", "n": "count(*)"}, "left")])
def test_a_built_circuit_answers_with_some_of_its_states(asked: dict[str, str], how: str, tmp_path: Path) -> None:
    """In other places than those of the query, which may not have the columns of the others."""
    whole, parameters = query(R, S, SOME), CircuitParameters(**SMALL)
    Sidecar.of(parameters, chosen_circuit(whole, parameters).config, board="none", clock_hz=1, baud=1,
               aggregates=whole.aggregates).write(tmp_path / "design.json")
    board, rows = LinkedDevice(design=str(tmp_path / "design.json"), fold="always"), []
    with splitjoin.open(query(R, S, asked, how=how), device=board, select=["ts"]) as session:
        for at in range(0, 24, 6):
            session.push_r(R.slice(at, 6))
            session.push_s(S.slice(at, 6))
            rows += session.poll().to_pylist()
        rows += session.flush().to_pylist()
    of = {**OF, "aggregate": asked, "how": how, "select": ["ts"]}
    assert rows == splitjoin.join(R, S, device="golden", **of).to_pylist()


@pytest.mark.parametrize(("kind", "pack"), [(deciding.FEW[0], True), *(
    at_length(kind, bool(n % 2)) for n, kind in enumerate(deciding.FEW))])
def test_pairs_that_decide_cross_it(kind: dict[str, Any], pack: bool) -> None:
    device = LinkedDevice(pack=pack, share=0.01, seed=2, **SHAPE)
    deciding.same(device, *deciding.tables(60, 1), 3, window="RANGE 40", **kind)
    assert device.transports[0].retransmissions > 0


def test_a_stream_goes_on_when_the_board_loses_its_state() -> None:
    """In a push, at a barrier, or while states are on their way: those that have come count, and none comes twice.

    The boards of one stream lose their state at the times of ``power``, after each has run that long.
    """
    expected = splitjoin.join(R, S, device="golden", **{**OF, "aggregate": SOME}).table.to_pylist()
    restarts = []
    for run, power in enumerate([(0.034,), (0.05, 0.036, 0.03), (0.065,), (0.076, 0.06)]):
        device = LinkedDevice(power=power, share=0.002, seed=run, pack=run % 2 == 1, **SMALL)
        rows = []
        with splitjoin.open(query(R, S, SOME), device=device, select=["ts", "x"]) as session:
            for at in range(0, 24, 4):
                session.push_r(R.slice(at, 4))
                session.push_s(S.slice(at, 4))
                session.heartbeat(next_time(at + 4))
                rows.append(session.poll())
            rows.append(session.flush())
            restarts.append(session.counters()["restarts"])
        assert pa.Table.from_batches(rows).to_pylist() == expected, power
    assert sum(restarts) > 2


def test_the_cpu_finds_the_pairs_behind_a_state_that_left_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """A circuit that was built to fold gives none."""
    states = CircuitSession.states

    def some_left(session: CircuitSession) -> FoldedStates:
        found = states(session)
        left = np.arange(found.first, found.first + len(found)) % 3 > 0
        return replace(found, fields={**found.fields, "over0": left})

    monkeypatch.setattr(CircuitSession, "states", some_left)
    device = LinkedDevice(**SHAPE)
    same(device, *tables(60, 3), window="RANGE 6", how="left")
    assert len(device.transports) == 1
