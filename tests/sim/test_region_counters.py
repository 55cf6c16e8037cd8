"""Counters of every region of every core, against the golden model and the effects of stalls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitjoin import DeviceError, join
from splitjoin.circuit.registers import REGION_COUNTERS
from splitjoin.cli import DONE, FAILURE, main
from splitjoin.engines.device import PAIR
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS

LESS = next(s for s in SCENARIOS if s.name == "less-than")
CORES = 3


def counted(device: Any) -> tuple[Any, dict[str, Any]]:
    result = join(LESS.r, LESS.s, on=LESS.on, window="ROWS 20", device=device)
    assert result.region_counters is not None
    return result, result.region_counters


@pytest.mark.parametrize(("make", "lanes", "probes"), [at_length(PysimDevice, 1, 2), (SimDevice, 2, 4)])
def test_comparisons_and_matches_of_each_region(make: Any, lanes: int, probes: int) -> None:
    result, found = counted(make(cores=CORES, capacity=64, lanes=lanes, probes=probes, region_counters=True))
    assert list(found) == [c.name for c in REGION_COUNTERS]
    pairs = result.items[result.items["kind"] == PAIR]
    for side, name in enumerate("rs"):
        # A region that stores R is probed by S.
        mine = pairs[pairs["side"] == 1 - side]
        for core in range(CORES):
            assert found["matches"][core, side] == (mine[name] % CORES == core).sum()
    # Tuples arrive alternately: the n-th probe of S sees n + 1 tuples of R, that of R sees n of S, up to 20.
    for side, ahead in ((0, 1), (1, 0)):
        wanted = np.zeros(CORES, np.int64)
        for n in range(60):
            for row in range(max(0, n + ahead - 20), n + ahead):
                wanted[row % CORES] += 1
        assert found["comparisons"][:, side].tolist() == wanted.tolist()
    assert found["comparisons"].sum() == result.counters["comparisons"]
    assert (found["reads"] * lanes * probes >= found["comparisons"]).all()
    assert (found["stores_high"] <= 16).all()
    assert (found["list_high"] >= 1).all()


def test_what_waits_for_a_slow_host() -> None:
    fast, slow = (counted(SimDevice(cores=CORES, capacity=64, lanes=2, probes=4, region_counters=True,
                                    stall_out=share))[1] for share in (0.0, 0.9))
    for name in ("stall_output", "stall_results", "stall_probe"):
        assert slow[name].sum() > 2 * fast[name].sum(), name
    assert slow["list_high"].max() >= fast["list_high"].max()
    assert (slow["comparisons"] == fast["comparisons"]).all()


def test_what_waits_for_expiry() -> None:
    scenario = next(s for s in SCENARIOS if s.name == "band-range")
    device = PysimDevice(cores=1, capacity=64, region_counters=True)
    found = join(scenario.r[:40], scenario.s[:40], on=scenario.on, window="RANGE 20", time="ts", device=device)
    assert found.region_counters is not None
    assert (found.region_counters["stall_expiry"] > 0).all()


def test_a_circuit_without_them_has_none() -> None:
    device = PysimDevice(cores=1, capacity=64)
    assert join(LESS.r, LESS.s, on=LESS.on, window="ROWS 6", device=device).region_counters is None
    with pytest.raises(DeviceError, match="region_counters must be True or False, not 1"):
        PysimDevice(region_counters=1)  # type: ignore[arg-type]  # wrong on purpose


def test_the_command_line_shows_them(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "R.csv").write_text("x\n" + "\n".join(map(str, range(20))) + "\n")
    (tmp_path / "S.csv").write_text("a\n" + "\n".join(map(str, range(20))) + "\n")
    arguments = ["join", "R.csv", "S.csv", "--on", "r.x = s.a", "--window", "ROWS 4", "-o", "out.csv",
                 "--region-counters"]
    assert main([*arguments, "--device", "pysim", "--cores", "1"]) == DONE
    shown = capsys.readouterr().out
    for counter in REGION_COUNTERS:
        assert counter.description in shown
    assert main([*arguments, "--device", "golden"]) == FAILURE
    assert "no regions that count" in capsys.readouterr().err
