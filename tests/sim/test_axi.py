"""The circuit's AXI ports under third-party agents: the answer of the golden model, whatever stalls and resets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from splitjoin.circuit.export.vectors import vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import pairs_circuit
from splitjoin.engines.arrival import arrivals
from splitjoin_hw.verilog import AXI_TOP, to_axi_verilog, to_verilog
from tests.testbench.axi_masters import APART, MASTERS, cases
from tests.testbench.runner import run_bench
from tests.testbench.sampling import every_value

from ..support.scenarios import SCENARIOS

#: Scenarios of one circuit, and the orders that they run in; circuits without AXI ports run in others.
NAMES = ("band-range", "band-rows-and-range")
#: cocotbext-axi 0.1.28 calls what cocotb 2.1 has deprecated.
WARNINGS = "error,ignore::DeprecationWarning"
ORDERS = ("total", "outer(3)")
#: Runs of the bench's tests of registers.
REGISTERS = 2 * len(APART)


@pytest.mark.parametrize(("parameters", "names", "orders", "also"), [
    pytest.param(CircuitParameters(cores=2, capacity=64, lanes=1, probes=2), NAMES, ORDERS, REGISTERS,
                 id="bram"),
    *(pytest.param(CircuitParameters(capacity=64, memory="axi", core="bucket", contexts=4, memory_width=bits),
                   NAMES[1:], ORDERS[:1], 0, id=f"memory of {bits} bits", marks=[] if bits == 256 else pytest.mark.long)
      for bits in (64, 128, 256))])
def test_scenarios_through_axi_ports(parameters: CircuitParameters, names: Sequence[str], orders: Sequence[str],
                                     also: int, tmp_path: Path) -> None:
    jobs, configs = [], set()
    for scenario in SCENARIOS:
        if scenario.name in names:
            for order in orders:
                query = scenario.query(order)
                circuit = pairs_circuit(query, parameters)
                configs.add(circuit.config)
                jobs.append(vectors(query, circuit, arrivals(query, scenario.r[:16], scenario.s[:12])))
    assert len(jobs) == len(names) * len(orders)
    config, = configs
    (tmp_path / "vectors.json").write_text(f"[{','.join(job.json() for job in jobs)}]")
    assert json.loads((tmp_path / "vectors.json").read_text())[0]["abi"] == f"{config.abi_hash:016x}"
    built = to_verilog(config) + to_axi_verilog(config), AXI_TOP
    environment = {"SPLITJOIN_VECTORS": str(tmp_path / "vectors.json"), "PYTHONWARNINGS": WARNINGS}
    if not also:
        environment["COCOTB_TEST_FILTER"] = "same_answer|mid_stream|memory"
    ran = run_bench("axi", tmp_path / "bench", built=built, environment=environment)
    assert ran == ran_for(len(names), len(orders), also)


def ran_for(scenarios: int, orders: int, also: int = REGISTERS) -> int:
    """The number of runs of the bench, for so many scenarios and orders; ``also``: of what memory has no part in."""
    return len(cases(scenarios, orders)) + len(every_value(range(3), range(2), list(MASTERS))) + 1 + also
