"""`make formal`: all proofs and all planted faults, with the seconds that each took. Names given: those proofs only."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from .proofs import alive, check, find
from .table import ALL, table


def main(names: list[str]) -> int:
    """Returns the number of proofs and faults with a wrong outcome. With ``--table``: prints the table of the docs."""
    if names == ["--table"]:
        print(table(), end="")
        return 0
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
                start = time.monotonic()
                if fault is None:
                    broken = check(proof, Path(folder)) + ([] if alive(proof, Path(folder)) else ["nothing leaves"])
                else:
                    broken = find(proof, fault, Path(folder))
                seconds = time.monotonic() - start
            good = broken == ([] if fault is None else [fault.breaks])
            failures += not good
            what = "" if fault is None else f", with a fault: {fault.breaks}"
            verdict = ("proved" if fault is None else "breaks") if good else f"NOT AS IT SHOULD BE: {broken} broke"
            print(f"{verdict:8} {seconds:6.1f} s  {proof.name}{what}", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
