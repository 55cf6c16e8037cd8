"""The cost model's figures for designs that only `make test-long` maps anew.

A change of one of them is to be compared with synthesis: run the long tests of this folder, and change it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from splitjoin.circuit.cost import Resources, circuit_cost, datapath_cost
from splitjoin.circuit.cost.folding import stored_states
from splitjoin.circuit.cost.region import region_cost
from splitjoin.circuit.fold_parts import count_part
from splitjoin.circuit.wire import Configuration

from .test_cost import HASH, SMALL, SUMS
from .test_stored_states import COUNT, MOST, NULLABLE, SUM, states
from .test_tables import BAND, EVERY


def region(config: Configuration, side: str) -> Resources:
    return sum(region_cost(config, side, "ecp5").values(), Resources())


PREDICTED: dict[str, tuple[Callable[[], Resources], Resources]] = {
    "a circuit of two cores": (lambda: circuit_cost(SMALL).total,
                               Resources(lut=7086, ff=6222, block_ram=12, ram_bits=20256)),
    "Kang's circuit": (lambda: circuit_cost(replace(SMALL, cores=1, architecture="kang")).total,
                       Resources(lut=3608, ff=3770, block_ram=6, ram_bits=9056)),
    "a region with a hash index": (lambda: region(HASH, "s"),
                                   Resources(lut=1416, ff=1315, block_ram=5, ram_bits=29388)),
    "a region with tables": (lambda: region(BAND, "r"), Resources(lut=1756, ff=1786, block_ram=5, ram_bits=22704)),
    "tables for UltraScale+": (lambda: datapath_cost(EVERY, "s", "ultrascale").total,
                               Resources(lut=1516, ff=1759, ram_bits=4224)),
    "sums for UltraScale+": (lambda: datapath_cost(SUMS, "r", "ultrascale").total,
                             Resources(lut=1128, ff=1442, dsp=8)),
    "states of counts": (lambda: stored_states(states((COUNT,), None, 2, 4), "ecp5"),
                         Resources(lut=686, ff=398, block_ram=2, ram_bits=17440)),
    "states of values that may be NULL": (
        lambda: stored_states(states((SUM, count_part((0,), MOST)), NULLABLE, 2, 2), "ecp5"),
        Resources(lut=1540, ff=862, block_ram=6, ram_bits=43840)),
}


@pytest.mark.parametrize("name", PREDICTED)
def test_predictions_are_those_that_were_compared_with_synthesis(name: str) -> None:
    predict, compared = PREDICTED[name]
    assert predict() == compared
