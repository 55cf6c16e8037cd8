"""Sessions on real threads of the papers' architectures: golden's answer, and what they refuse."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import CapacityError, DeviceError, OrderError, UnsupportedError
from splitjoin.base.threads import thread
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu.device import CpuDevice
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.threads import ARCHITECTURES, session

from ....support.conformance import assert_conforms, run
from ....support.sampling import at_length
from ....support.scenarios import SCENARIOS, Scenario

ORDERS = ("none", "outer(1)", "outer(3)", "inner(1)", "inner(3)", "total")
NAMED = {scenario.name: scenario for scenario in SCENARIOS}
#: With a rest that tests do not decide, a junction of tests, both kinds of windows, and extremes.
CHOSEN = ("not-equal", "or", "rows-and-range-different", "int64-extremes", "float-band-special", "all-match")


@pytest.mark.parametrize("scenario", [one if one.name in CHOSEN else at_length(one) for one in SCENARIOS], ids=str)
def test_scenarios(scenario: Scenario) -> None:
    n = SCENARIOS.index(scenario)
    for name, of in ARCHITECTURES.items():
        device = CpuDevice(engine="threads", architecture=name, threads=n % 3 + 2)
        for order in ORDERS:
            if order.partition("(")[0] in of.orders:
                query = scenario.query(order)
                assert_conforms(run(device, query, scenario.r, scenario.s, [len(scenario.r) // 2, len(scenario.r)]),
                                run(GoldenDevice(cores=device.workers), query, scenario.r, scenario.s), order)


@pytest.mark.parametrize("name", ["splitjoin", "celljoin"])
def test_more_results_than_fit_at_once(name: str) -> None:
    t = pa.table({"ts": pa.array(range(400)), "x": pa.array([0] * 400)})
    expected = splitjoin.join(t, t, on="r.x = s.x", window="ROWS 99", time="ts", order="total", device="golden")
    found = splitjoin.join(t, t, on="r.x = s.x", window="ROWS 99", time="ts", order="total", engine="threads",
                           architecture=name, threads=3)
    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(("kind", "options", "said"), [
    (OrderError, {"architecture": "handshake", "order": "outer(2)"},
     "engine='threads' with architecture='handshake' keeps the order none, not outer\\(2\\)"),
    (OrderError, {"architecture": "celljoin", "order": "inner(2)"},
     "keeps the order none or outer or total, not inner"),
    (DeviceError, {"architecture": "handshakes"}, "architecture must be 'splitjoin', .*, not 'handshakes'"),
])
def test_what_is_refused(kind: Any, options: dict[str, Any], said: str) -> None:
    t = pa.table({"x": pa.array([1])})
    with pytest.raises(kind, match=said):
        splitjoin.join(t, t, on="r.x = s.x", window="ROWS 9", engine="threads", **options)


def test_a_chain_settles_only_at_the_end() -> None:
    scenario = NAMED["all-match"]
    with (CpuDevice(engine="threads", architecture="handshake", threads=2).open(scenario.query("none")) as opened,
          pytest.raises(UnsupportedError, match="gives a pair when its tuples meet")):
        opened.settle()


def test_threads_that_cannot_be_started_leave_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*args: Any, **options: Any) -> threading.Thread:
        one = thread(*args, **options)
        made.append(one)
        if len(made) == 3:
            monkeypatch.setattr(one, "start", no_thread)
        return one

    def no_thread() -> None:
        raise RuntimeError("can't start new thread")

    made: list[threading.Thread] = []
    monkeypatch.setattr(session, "thread", started)
    with pytest.raises(CapacityError, match=r"only 2 of 4 threads could be started \(can't start .*\); use fewer"):
        CpuDevice(engine="threads", threads=4).open(NAMED["all-match"].query("none"))
    assert not any(one.is_alive() for one in made)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_flush_that_is_stopped_loses_nothing_silently(monkeypatch: pytest.MonkeyPatch, error: type) -> None:
    def stopped(self: session.ThreadSession, words: int) -> Any:
        taken(self, words)
        raise error

    scenario, taken = NAMED["all-match"], session.ThreadSession._taken
    query = scenario.query("none")
    with CpuDevice(engine="threads", architecture="handshake", threads=2).open(query) as opened:
        opened.push(arrivals(query, scenario.r, scenario.s))
        monkeypatch.setattr(session.ThreadSession, "_taken", stopped)
        with pytest.raises(CapacityError if error is MemoryError else error):
            opened.flush()
        monkeypatch.undo()
        with pytest.raises(DeviceError, match="stopped in the middle of a push or a flush"):
            opened.flush()
