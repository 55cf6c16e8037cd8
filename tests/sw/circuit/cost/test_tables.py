# amaranth: UnusedElaboratable=no
"""The cost model of tests that are looked up, against what synthesis makes of small datapaths and regions."""

from dataclasses import replace

import pytest
from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design

from splitjoin.circuit.cost import datapath_cost
from splitjoin.circuit.cost.constant_width import table_cost
from splitjoin.circuit.schedule import PipelineRegisters
from splitjoin.circuit.wire import Configuration
from splitjoin.cli import main
from splitjoin_hw.hls.matcher import Matcher
from splitjoin_hw.hls.table import TableTest

from ....support.sampling import at_length

#: Tests of every kind: an equality, one and two digits of a low part, a low part that is subtracted, two bounds.
EVERY = Configuration(keys_r=(24,) * 5, keys_s=(24,) * 5, tests=tuple((n, n) for n in range(5)), lanes=2, probes=4,
                      tree=("and", ("or", 0, 1), 2, 3, 4), widths=(0, 2, 20, 300, None), tables=True)
BAND = Configuration(keys_r=(16,), keys_s=(16,), tests=((0, 0),), tree=0, widths=(6,), capacity=64, lanes=2, probes=8,
                     tables=True)


@pytest.mark.parametrize("registers", [at_length(PipelineRegisters()), PipelineRegisters(digits=True)])
def test_a_datapath_mapped_anew(registers: PipelineRegisters) -> None:
    config = replace(EVERY, registers=registers)
    found = ecp5.utilization(part_design(Matcher(config, "s"), "ecp5"))["part"]
    predicted = datapath_cost(config, "s").total
    assert predicted.lut == pytest.approx(found.lut4, rel=0.1)
    assert predicted.ff == pytest.approx(found.ff, rel=0.01)


@pytest.mark.parametrize("above", [0, 1, 2, 3, 4, 7, 8, 31, 32, 255])
@pytest.mark.parametrize("width", [8, 9, 16, 33])
def test_the_tables_are_those_that_circuits_have(width: int, above: int) -> None:
    made, told = TableTest("ecp5", width, above, apart=False), table_cost("ecp5", width, above, apart=False)
    assert told.outputs == tuple(digit.outputs for digit in made.digits)
    assert told.tables("ecp5", 6).ram_bits == 16 * 6 * sum(told.outputs)


def test_tables_take_fewer_luts_with_many_lanes_and_probes() -> None:
    for lanes, probes, fewer in ((1, 4, False), (4, 8, True), (8, 16, True)):
        bands = replace(EVERY, keys_r=(32, 32), keys_s=(32, 32), tests=((0, 0), (1, 1)), tree=("and", 0, 1),
                        widths=(20, 20), lanes=lanes, probes=probes)
        with_tables, without = (datapath_cost(replace(bands, tables=tables), "s").total.lut for tables in (True, False))
        assert (with_tables < 0.9 * without) is fewer


def test_explain_tells_what_tables_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--schema-r", "x:int32", "--schema-s", "a:int32", "--probes", "8", "--lanes", "4",
                 "--on", "abs(r.x - s.a) <= 10", "--tables"]) == 0
    looked_up = datapath_cost(replace(BAND, keys_r=(32,), keys_s=(32,), widths=(20,), lanes=4, probes=8), "s")
    assert (f"\ndatapath    where S is stored: {looked_up.pair.lut} LUT4 a comparison, {looked_up.lane.lut} a lane "
            f"and {looked_up.region.lut} a region for tables and codes; "
            ) in capsys.readouterr().out
