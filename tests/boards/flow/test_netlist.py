"""The mapped netlist of a whole circuit, carry chains and block RAM included, has the golden model's results. Mappings
of single parts are tested in `tests/hw/tech`, netlists of whole boards in `tests/boards`.
"""

import json
import random
import re

import pyarrow as pa
import pytest
from bench.place_and_route.design import bare_design, part_design
from bench.place_and_route.ecp5 import netlist, utilization

from splitjoin.circuit.driver import Transport
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_hw.gather.merger import Merger
from splitjoin_sim.build import library_of
from splitjoin_sim.device import ModelTransport, SimDevice
from tests.testbench.netlists import mapped_verilog

from ...support.conformance import assert_conforms, run


class NetlistDevice(SimDevice):
    def _connect(self, config: Configuration) -> Transport:
        verilog = mapped_verilog(bare_design(config, "ecp5"))
        return ModelTransport(library_of(verilog, config), config, seed=self.seed, stall_in=self.stall_in,
                              stall_out=self.stall_out, patience=100_000)


def stream(seed: int, name: str, n: int) -> pa.Table:
    random_ = random.Random(seed)
    ts = sorted(random_.randrange(4 * n) for _ in range(n))
    return pa.table({"ts": pa.array(ts, pa.int32()),
                     name: pa.array([random_.randint(-128, 127) for _ in range(n)], pa.int8())})


@pytest.mark.long
def test_a_netlist_has_the_results_of_the_golden_model():
    r, s = stream(1, "x", 150), stream(2, "a", 170)
    for order in ("total", "outer(2)", "inner(3)"):  # one circuit: a netlist takes long to compile
        query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="abs(r.x - s.a) <= 20",
                           window="ROWS 14 RANGE 40", order=order, time="ts")
        device = NetlistDevice(cores=2, capacity=16, lanes=1, probes=2, stall_in=0.2, stall_out=0.2)
        wanted = run(GoldenDevice(cores=2), query, r, s)
        assert len(wanted) > 300
        assert_conforms(run(device, query, r, s), wanted, order)
    assert utilization(bare_design(device.configuration(query), "ecp5"))["splitjoin_core"].block_ram > 0


def test_a_comparison_leads_to_each_outcome_of_a_merger():
    design = part_design(Merger(2, 12), "ecp5")
    modules = json.loads(netlist(design, wide=False).read_text())["modules"]
    gates = gates_behind_comparisons(modules[design.top]["cells"])
    assert len(gates) == 4, "two inputs, with registers of two bits for the outcome"
    assert min(gates) >= 1, "a comparison's carry chain leads to every register"
    assert max(gates) <= 2


def gates_behind_comparisons(cells):
    """The most LUTs between a comparison's carry chain and each register of a merger that holds its outcome."""
    drivers = {bit: cell for cell in cells.values() for port, bits in cell["connections"].items()
               if cell["port_directions"][port] == "output" for bit in bits}

    def behind(bit, passed):
        cell = drivers.get(bit, {"type": None})
        if cell["type"] == "CCU2C":
            return passed
        if cell["type"] in ("PFUMX", "L6MUX21"):  # multiplexers of LUTs within a slice or tile
            return max(behind(bits[0], passed) for port, bits in cell["connections"].items()
                       if cell["port_directions"][port] == "input")
        if cell["type"] != "LUT4":
            return -1  # a register or a constant
        return max(behind(b, passed + 1) for port in "ABCD" for b in cell["connections"][port])

    return [behind(cell["connections"]["DI"][0], 0) for name, cell in cells.items()
            if cell["type"] == "TRELLIS_FF" and re.search(r"\.precedes\d+_\d+_TRELLIS_FF", name)]
