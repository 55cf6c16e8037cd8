"""Compare random programs, each in Python, numba, Amaranth's simulator, Verilator, and as the netlist mapped for ECP5.

``python -m tests.hls_programs [--first N] [--count N]``; each seed is a typed function, or a class with a state. All
are compared in Python, in the text for numba, and in Verilator, and one of ``--whole`` everywhere.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
from pathlib import Path

from ..support import quick_numba, quick_pysim
from ..support.sampling import cut
from .batch import check_batch

#: Programs of a batch: of one model, and of one run of Yosys.
_BATCH = 400


def _checked(seeds: range, whole: int) -> tuple[dict[int, str], float]:
    """The differences that were found, and the CPU seconds that it took."""
    quick_numba.quicken()
    quick_pysim.quicken()
    with tempfile.TemporaryDirectory() as folder:
        found = check_batch(seeds, Path(folder), whole)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return found, sum(u.ru_utime + u.ru_stime for u in used)


def main() -> int:
    """The exit status: 1 if programs were found that are not the same everywhere."""
    parser = argparse.ArgumentParser(prog="python -m tests.hls_programs", description="Compares random programs.")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--count", type=int, default=10_000, help="the number of seeds (default: 10000)")
    parser.add_argument("--whole", type=int, default=8, help="of so many programs one is also compiled by numba, "
                        "simulated by Amaranth, and mapped (default: 8)")
    arguments = parser.parse_args()
    wrong, total = dict[int, str](), 0.0
    # A process for each batch, as machine code stays in memory.
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for seeds in cut(arguments.first, arguments.count, _BATCH):
            found, seconds = pool.apply(_checked, (seeds, arguments.whole))
            wrong, total = wrong | found, total + seconds
            print(f"{seeds[0]} to {seeds[-1]}: {len(seeds) - len(found)} equal, {total:.0f} CPU s so far",
                  *(f"\n  {seed}: {said}" for seed, said in found.items()), flush=True)
    print(f"{arguments.count - len(wrong)} of {arguments.count} equal{f'; not {sorted(wrong)}' if wrong else ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
