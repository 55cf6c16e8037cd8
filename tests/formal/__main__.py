"""`make formal`: all proofs and all planted faults, with the CPU seconds of each. Names given: those proofs only."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

from .proofs import alive, check, find
from .table import ALL, listed, table

#: CPU minutes that all proofs and faults take: 13 as measured in one run, and 3 of the cascade in another.
ALL_MINUTES = 16


def _cpu_seconds() -> float:
    """CPU seconds of this process so far, and of the programs that it ran."""
    return sum(use.ru_utime + use.ru_stime for use in (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main(arguments: list[str]) -> int:
    """Returns the number of proofs and faults with a wrong outcome."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.formal", description="Proves all properties of the circuits, and plants every fault: all "
        f"of them take about {ALL_MINUTES} CPU minutes. Prints a line for each, with its CPU seconds; the exit status "
        "is 0 if every proof closes and every fault is found.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a proof, as --list names it; without any, all")
    parser.add_argument("--list", action="store_true", help="print the names of all proofs, those that take longer "
                        "than the tests may with an asterisk, and end")
    parser.add_argument("--table", action="store_true", help="print the table of docs/formal.md, and end")
    parser.add_argument("--properties", action="store_true", help="print docs/proofs.csv, and end")
    options = parser.parse_args(arguments)
    if options.table:
        print(table(), end="")
    if options.properties:
        print(listed(), end="")
    if options.list:
        print("\n".join(proof.name + ("" if proof.quick else " *") for proof in ALL))
    if options.table or options.properties or options.list:
        return 0
    names = options.names
    known = [proof.name for proof in ALL]
    if wrong := [name for name in names if name not in known]:
        print(f"there is no proof {wrong[0]!r}; there are: {'; '.join(known)}", file=sys.stderr)
        return 1
    failures = 0
    for proof in ALL:
        if names and proof.name not in names:
            continue
        for fault in (None, *proof.faults):
            with tempfile.TemporaryDirectory() as folder:
                start = _cpu_seconds()
                if fault is None:
                    broken = check(proof, Path(folder)) + ([] if alive(proof, Path(folder)) else ["nothing leaves"])
                else:
                    broken = find(proof, fault, Path(folder))
                seconds = _cpu_seconds() - start
            good = broken == ([] if fault is None else [fault.breaks])
            failures += not good
            what = "" if fault is None else f", with a fault: {fault.breaks}"
            verdict = ("proved" if fault is None else "breaks") if good else f"NOT AS IT SHOULD BE: {broken} broke"
            print(f"{verdict:8} {seconds:6.1f} s  {proof.name}{what}", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
