"""Run threads, clients, servers and processes under a scheduler, in a time of their own, with the choices of seeds.

Run: python -m tests.simulation [--seeds N] [--seed S] [SUBJECT…]
"""

from __future__ import annotations

import argparse

from ..support.sampling import cut
from .schedules import SUBJECTS, run


def main() -> None:
    """Run with the arguments of the command line. Exits with 1 at the first failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="Runs what talks in a simulation.")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)} (default: all)")
    parser.add_argument("--seeds", type=int, default=1000, help="how many of each subject (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first one (default: 0)")
    args = parser.parse_args()
    if unknown := set(args.subjects) - set(SUBJECTS):
        parser.error(f"there is no subject {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    for name in args.subjects or SUBJECTS:
        for seeds in cut(args.seed, args.seeds):
            for failure in run(name, seeds):
                print(failure, flush=True)
                raise SystemExit(1)
            print(f"{name}: schedules to {seeds.stop}", flush=True)


if __name__ == "__main__":
    main()
