"""Write files on a simulated disk that fails, under schedules of faults, kills and power cuts drawn by seeds.

Run: python -m tests.disk [--schedules N] [--seed S] [--every-call] [SUBJECT…]
"""

from __future__ import annotations

import argparse

from ..support.sampling import cut
from .schedules import SUBJECTS, every_call, run


def main() -> None:
    """Run with the arguments of the command line. Exits with 1 at the first failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.disk", description="Writes files on a simulated disk.")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)} (default: all)")
    parser.add_argument("--schedules", type=int, default=25_000, help="of each subject (default: 25000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first schedule (default: 0)")
    parser.add_argument("--every-call", action="store_true", help="a fault at each call instead, one after the other")
    args = parser.parse_args()
    if unknown := set(args.subjects) - set(SUBJECTS):
        parser.error(f"there is no subject {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    for name in args.subjects or SUBJECTS:
        for what, failures in [("every call", every_call(name))] if args.every_call else [
                (f"schedules to {seeds.stop}", run(name, seeds)) for seeds in cut(args.seed, args.schedules)]:
            for failure in failures:
                print("\n".join([*failure.calls, failure.why, f"replay: {failure.replay}"]), flush=True)
                raise SystemExit(1)
            print(f"{name}: {what}", flush=True)


if __name__ == "__main__":
    main()
