"""Sessions on real threads of the papers' architectures: golden's answer, and what they refuse."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import DeviceError, OrderError, UnsupportedError
from splitjoin.engines.cpu.device import CpuDevice
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.threads import ARCHITECTURES

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


def test_more_results_than_fit_at_once() -> None:
    t = pa.table({"ts": pa.array(range(400)), "x": pa.array([0] * 400)})
    expected = splitjoin.join(t, t, on="r.x = s.x", window="ROWS 99", time="ts", order="total", device="golden")
    found = splitjoin.join(t, t, on="r.x = s.x", window="ROWS 99", time="ts", order="total", engine="threads",
                           threads=3)
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
    with (CpuDevice(engine="threads", architecture="handshake", threads=2).open(scenario.query("none")) as session,
          pytest.raises(UnsupportedError, match="gives a pair when its tuples meet")):
        session.settle()
