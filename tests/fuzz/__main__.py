"""Read inputs that were damaged at random, and compare random joins, in other processes.

Reports what ends one, raises an error that is not splitjoin's, or gets another answer than golden's.

Run: python -m tests.fuzz [--cases N] [--seed N] [INPUT…]
"""

from __future__ import annotations

import argparse
from functools import partial

from .run import names, run


def main() -> None:
    """Run with the arguments of the command line. Exits with 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Reads damaged inputs, and compares "
                                     "joins with golden.")
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help=f"of {', '.join(names())} (default: all)")
    parser.add_argument("--cases", type=int, default=12_500, help="of each input (default: 12500)")
    parser.add_argument("--seed", type=int, default=0, help="of what is random (default: 0)")
    args = parser.parse_args()
    if unknown := set(args.inputs) - set(names()):
        parser.error(f"there is no input {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    found = run(args.inputs or names(), args.cases, args.seed, partial(print, flush=True))
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
