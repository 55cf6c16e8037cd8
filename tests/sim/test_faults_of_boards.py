"""Cores that stand still on emulated boards: the host learns of them over the link, and reacts as in simulation."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin.link.daemon.client import DaemonDevice
from splitjoin_sim.device import SimDevice
from splitjoin_sim.emulator import Emulator, Faults

from ..support.conformance import assert_conforms, run
from ..support.frozen import Freeze, FrozenUart, check_isolated, frozen_top, session_run
from ..support.scenarios import SCENARIOS
from ..sw.link.daemon.conftest import serving

# The model takes a minute to compile, and boards are emulated in real time.
pytestmark = pytest.mark.long

ROWS = next(s for s in SCENARIOS if s.name == "band-rows-17")
SMALL = {"cores": 3, "capacity": 16}
TIMEOUT = 2 * SimDevice(**SMALL).configuration(ROWS.query()).longest_silence
#: A busy machine may take long to simulate an answer.
BOARD = {**SMALL, "fault_timeout": TIMEOUT, "timeout": 60}


def board(faults: Faults | None = None) -> Emulator:
    return Emulator(frozen_top(device("uart:none", **BOARD).configuration(ROWS.query())), faults)


@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_that_of_the_other_cores(seed: int) -> None:
    """Any cores but one, from any cycle on, wholly or one of its regions, also behind a line with faults."""
    chance = random.Random(seed)
    order = chance.choice(["none", "outer(1)", "outer(3)", "inner(1)", "total"])
    line = Faults(drop=0.002, flip=0.002, double=0.002, seed=seed) if seed % 2 else None
    freezes = tuple(Freeze(core, chance.randrange(900), regions=chance.choice([1, 2, 3]))
                    for core in chance.sample(range(3), chance.randint(1, 2)))
    query = ROWS.query(order)
    with board(line) as emulated, FrozenUart(target=emulated.path, freezes=(freezes,), **BOARD).open(query) as session:
        session.push(arrivals(query, ROWS.r, ROWS.s))
        items, faults = np.concatenate([session.poll(), session.flush()]), session.faults
    assert faults
    check_isolated(items, run(GoldenDevice(cores=3), query, ROWS.r, ROWS.s), order, faults)


@pytest.mark.parametrize(("on_fault", "reset"), [("continue", 0), ("restart", 0), ("restart", 3000)])
def test_sessions_go_on_without_the_core_or_begin_anew(on_fault: Any, reset: int) -> None:
    golden, _, _ = session_run(ROWS, GoldenDevice(cores=3), "total")
    freezes = ((Freeze(1, 100),), (Freeze(0, 250, regions=1),))
    with board(Faults(reset=reset, seed=3)) as emulated:
        of = FrozenUart(target=emulated.path, freezes=freezes, **BOARD)
        items, faults, counters = session_run(ROWS, of, "total", on_fault=on_fault)
    assert reset or (faults[0].core, faults[0].lost_r, faults[0].lost_s) == (1, 1, 1)
    if on_fault == "continue":
        assert check_isolated(items, golden, "total", faults) > 0
    else:
        assert counters["restarts"] >= len(faults)
        assert_conforms(items, golden, "total")


def test_a_client_of_the_daemon_learns_of_the_core(tmp_path: Any) -> None:
    golden, _, _ = session_run(ROWS, GoldenDevice(cores=3), "total")
    with board() as emulated, serving(tmp_path, [FrozenUart(target=emulated.path, freezes=((Freeze(1, 100),),),
                                                           **BOARD)]) as server:
        items, faults, counters = session_run(ROWS, DaemonDevice(socket=server.path, wait=0), "total",
                                              on_fault="restart")
        assert [fault.core for fault in faults] == [1]
        assert counters["restarts"] == 1
        assert_conforms(items, golden, "total")
