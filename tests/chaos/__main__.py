"""Kill a streaming join again and again, and compare what it gave with the right rows.

Run: python -m tests.chaos [--kills N] [--seed N] [--device NAME] [--options JSON]
"""

import argparse
import json
import tempfile
from pathlib import Path

from .kills import run


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Kills a streaming join at random.")
    parser.add_argument("--kills", type=int, default=20, help="how often something is killed (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and of what is killed (default: 0)")
    parser.add_argument("--device", default="cpu", help="the device of the join (default: cpu)")
    parser.add_argument("--options", type=json.loads, default={}, help="options of the device, as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done = run(Path(folder), kills=args.kills, seed=args.seed, device=args.device, options=args.options, say=print)
    print(f"{done.pairs} pairs, all of them right, after {done.jvms} kills of the JVM and {done.workers} of Python "
          f"workers, in {done.batches} micro-batches")


if __name__ == "__main__":
    main()
