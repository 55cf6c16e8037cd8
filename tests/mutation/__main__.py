"""Plant faults and count those that tests find: `python -m tests.mutation --files sw/splitjoin/base/disk.py`.

Each fault is planted by itself in a copy of the tree. The tests that mirror its file, and the machines that drive it,
run there until one fails. A fault that none finds is printed as a diff. Exits with 1 if fewer than 80 of 100 are found.
"""

from __future__ import annotations

import argparse
import random
import subprocess
from collections.abc import Sequence

from .mutators import KINDS, Mutant, mutants
from .planted import planted
from .run import ROOT, run

_ENOUGH = 0.8


def sampled(found: Sequence[Mutant], n: int, seed: int) -> list[Mutant]:
    """``n`` of ``found``, as many of each kind as there are."""
    chooser, by_kind = random.Random(seed), {kind: [one for one in found if one.kind == kind] for kind in KINDS}
    chosen: list[Mutant] = []
    while len(chosen) < n and any(by_kind.values()):
        for kind in chooser.sample(KINDS, len(KINDS)):
            if by_kind[kind] and len(chosen) < n:
                chosen.append(by_kind[kind].pop(chooser.randrange(len(by_kind[kind]))))
    return sorted(chosen, key=lambda one: (one.file, one.start))


def _changed() -> list[str]:
    """The product files that differ from the branch main."""
    said = subprocess.run(["git", "diff", "--name-only", "--diff-filter=d", "main"], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    return [name for name in said.split() if name.endswith(".py") and name.split("/")[0] in ("sw", "hw", "sim",
                                                                                             "boards")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--files", nargs="+", default=[], metavar="FILE", help="product files with mutants")
    parser.add_argument("--changed", action="store_true", help="those that differ from the branch main")
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="faults of planted.py: all, or these")
    parser.add_argument("--sample", type=int, default=50, help="the most mutants (default: 50), evenly of all kinds")
    parser.add_argument("--seed", type=int, default=0, help="of the choice among them (default: 0)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="kinds of mutants (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that are tested at a time")
    parser.add_argument("--tests", nargs="+", default=[], metavar="TEST", help="run these, not those of the files")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    args = parser.parse_args()
    files = [*args.files, *(_changed() if args.changed else [])]
    every = [one for file in files for one in mutants(file, (ROOT / file).read_text()) if one.kind in args.kinds]
    chosen = sampled(every, args.sample, args.seed)
    if args.planted is not None:
        chosen += [one for name, one in planted(ROOT).items() if name in args.planted or not args.planted]
    if not chosen:
        parser.error("there is nothing to plant; give --files, --changed or --planted")
    if args.list:
        print("\n\n".join(f"# {one.kind}\n{one.diff()}" for one in chosen))
        return 0
    found = 0
    for outcome in run(chosen, args.jobs, args.tests):
        found += bool(outcome.found)
        said = f"found in {outcome.seconds:.1f} CPU s by {outcome.found}" if outcome.found else "NOT FOUND"
        print(f"{outcome.mutant.kind}: {said}\n{outcome.mutant.diff()}\n", flush=True)
    share = found / len(chosen)
    print(f"{found} of {len(chosen)} faults found, {share:.0%}")
    return 0 if share >= _ENOUGH else 1


if __name__ == "__main__":
    raise SystemExit(main())
