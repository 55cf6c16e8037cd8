# amaranth: UnusedElaboratable=no
"""The cost model of states beside stored tuples against what synthesis maps: as committed, and for some mapped anew."""

import json
from pathlib import Path

import pytest
from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design

from splitjoin.circuit.cost.folding import stored_states
from splitjoin.circuit.fold_parts import FoldPart, FoldValue, count_part, extreme_part, sum_part
from splitjoin.circuit.geometry import outcome_latency
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.stored_states import StoredStates

from ....support.sampling import at_length

RESULTS = Path(__file__).parents[4] / "bench" / "results"
MOST = 2**32 - 1
_PLAIN, NULLABLE = FoldValue(16, True, False), FoldValue(16, True, True)
COUNT = count_part((), MOST)
SUM = sum_part(0, -(2**15), 2**15 - 1, MOST)
_HIGH = extreme_part(0, -(2**15), 2**15 - 1, "max")


def test_committed_predictions_are_near_what_synthesis_reported() -> None:
    rows = [row for row in json.loads((RESULTS / "states.json").read_text())["rows"]
            if row["metric"] == "stored_states_ff"]
    assert len(rows) >= 12
    for row in rows:
        found = row["config"]
        assert found["ff_model"] == pytest.approx(row["value"], rel=0.1), found
        assert found["lut4_model"] == pytest.approx(found["lut4"], rel=0.2), found
        assert found["block_ram_model"] == found["block_ram"]


def states(folds: tuple[FoldPart, ...], value: FoldValue | None, lanes: int, probes: int) -> Configuration:
    """A circuit of which the stored tuples have states."""
    return Configuration(keys_r=(16,), keys_s=(16,), tests=((0, 0),), tree=0, cores=2, capacity=256, lanes=lanes,
                         probes=probes, values=() if value is None else (value,), folds=folds, whole_states=True)


@pytest.mark.parametrize(("folds", "value", "lanes", "probes"), [
    ((COUNT, SUM, _HIGH), _PLAIN, 1, 2), at_length((SUM, count_part((0,), MOST)), NULLABLE, 2, 1),
    at_length((SUM, count_part((0,), MOST)), NULLABLE, 2, 2), at_length((COUNT,), None, 2, 4),
    at_length((SUM,), _PLAIN, 4, 4), at_length((_HIGH,), NULLABLE, 1, 1)])
def test_states_mapped_anew(folds: tuple[FoldPart, ...], value: FoldValue | None, lanes: int, probes: int) -> None:
    config = states(folds, value, lanes, probes)
    found = ecp5.utilization(part_design(StoredStates(config, latency=outcome_latency(config)), "ecp5"))["part"]
    predicted = stored_states(config, "ecp5")
    assert predicted.ff == pytest.approx(found.ff, rel=0.1)
    # A state is chosen from the memory or from two on their way there; mapping shares these choices, or does not.
    assert predicted.lut == pytest.approx(found.lut4, rel=0.3)
    assert predicted.block_ram == found.block_ram
