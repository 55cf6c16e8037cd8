"""Delays of routed wires of an ECP5 by the columns and rows that they cross: the estimates of the ECP5 placer.

Run: python -m bench.wires, which places and routes the 16 regions of bench/synthesis.py, annealed with the present
estimates, and writes boards/splitjoin_boards/flow/ecp5_placer/wire_delays.json anew (an hour). The delays depend on
router and speed grade, and little on the design.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.synthesis import ANNEAL_MHZ, WHOLE, WIDTHS, band
from splitjoin_boards.flow import ecp5
from splitjoin_boards.flow.design import whole_design
from splitjoin_boards.flow.ecp5_placer import fit_wire_delays
from splitjoin_boards.flow.tools import NEXTPNR


def main() -> None:
    """Route, fit, write."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    circuit = WHOLE[0]
    config = replace(band(cores=circuit.cores, lanes=circuit.lanes, probes=circuit.probes), widths=WIDTHS)
    with TemporaryDirectory() as folder:
        result = ecp5.run_placer(whole_design(config, "ecp5"), Path(folder), anneal_mhz=ANNEAL_MHZ)
    print(f"{fit_wire_delays(result, ANNEAL_MHZ)}: by {NEXTPNR.version}")


if __name__ == "__main__":
    main()
