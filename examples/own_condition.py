"""From a condition of your own to a circuit: explains how it maps, runs the simulated circuit beside the reference
model, and writes Verilog.

python own_condition.py --on "abs(r.x - s.a) + abs(r.y - s.b) <= 20" --output circuit --testbench verilog
make -C circuit
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import splitjoin
from splitjoin.cli import main as command

SCHEMA_R, SCHEMA_S = "x:int32, y:int32", "a:int32, b:int32"


def main() -> None:
    """Explain, simulate, compare and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", help="the condition")
    parser.add_argument("--rows", type=int, default=200, help="random tuples of each stream (%(default)s)")
    parser.add_argument("--device", default="sim", help="sim (compiled by Verilator) or pysim (%(default)s)")
    parser.add_argument("--output", help="folder for the Verilog")
    parser.add_argument("--testbench", choices=("cocotb", "verilog"),
                        help="also write a testbench that checks itself, and a Makefile that runs it")
    args = parser.parse_args()
    if args.testbench and not args.output:
        parser.error("--testbench needs --output, a folder that stays")
    query = ["--schema-r", SCHEMA_R, "--schema-s", SCHEMA_S, "--on", args.on, "--window", "ROWS 32"]

    if command(["explain", *query, "--cores", "1"]):
        raise SystemExit(1)

    random = np.random.default_rng(1)
    r, s = (pa.table({name: random.integers(0, 100, args.rows).astype(np.int32) for name in names})
            for names in ("xy", "ab"))
    runs = [splitjoin.join(r, s, on=args.on, window="ROWS 32", device=device, cores=1)
            for device in (args.device, "golden")]
    if runs[0].to_arrow() != runs[1].to_arrow():
        raise SystemExit("the circuit and the reference model differ")
    print(f"\n{len(runs[0])} pairs, in the same order from the circuit and from the reference model")
    latencies = runs[0].latencies
    assert latencies is not None
    print(f"{runs[0].counters['comparisons']} comparisons; a probe has its results after {np.median(latencies):.0f} "
          f"cycles in the median")

    with tempfile.TemporaryDirectory() as folder:
        output = Path(args.output or folder)
        testbench = ["--testbench", args.testbench] if args.testbench else []
        if command(["verilog", *query, "--cores", "1", *testbench, "-o", str(output)]):
            raise SystemExit(1)
        print(f"{len((output / 'splitjoin.v').read_text().splitlines()):,} lines of Verilog")


if __name__ == "__main__":
    main()
