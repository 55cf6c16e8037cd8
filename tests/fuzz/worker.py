"""The process that reads damaged inputs and compares joins: it may end in a crash, which `tests.fuzz.run` then notes.

Run: python -m tests.fuzz.worker CASES SEED FOLDER INPUT=FIRST… Before it runs a case, it writes its input and number
to the file "at" in FOLDER. It prints them for a case that raised anything but an error of splitjoin, with the error.
An input is one of `tests.fuzz.inputs`, or one of `tests.fuzz.comparisons`.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from splitjoin.base.errors import SplitJoinError

from .comparisons import COMPARISONS, DIFFER, Comparison
from .inputs import INPUTS, PLANTED, Input, damaged
from .joins import Difference

#: Bytes of address space: a length of 2^40 must be an error before the machine runs out of memory.
_MEMORY = 12 << 30


def case(of: Input, valid: Sequence[bytes], number: int, seed: int) -> bytes:
    """The damaged bytes of case ``number``, made of one of ``valid``."""
    chance = random.Random(f"{of.name} {seed} {number}")
    data = damaged(chance.choice(valid), chance)
    return of.sealed(data) if chance.random() < 0.9 else data


def reading(of: Input, folder: Path, seed: int) -> Callable[[int], None]:
    """What reads case ``number`` of ``of``, whose valid bytes it has read: else the fuzzer would test nothing."""
    valid, path = list(of.valid()), folder / (of.name if "." in of.name else "input")
    for data in valid:
        path.write_bytes(data)
        of.read(path)

    def read(number: int) -> None:
        path.write_bytes(case(of, valid, number, seed))
        with contextlib.suppress(SplitJoinError):
            of.read(path)

    return read


def comparing(of: Comparison, seed: int) -> Callable[[int], None]:
    """What runs case ``number`` of ``of``."""
    return lambda number: of.run(random.Random(f"{of.name} {seed} {number}"))


def main(cases: int, seed: int, folder: Path, todo: Sequence[tuple[Input | Comparison, int]]) -> None:
    """Run the cases before ``cases`` of the inputs ``todo``, each from a number on."""
    runs = [(of.name, reading(of, folder, seed) if isinstance(of, Input) else comparing(of, seed), first)
            for of, first in todo]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    at = os.open(folder / "at", os.O_WRONLY | os.O_CREAT)
    for name, run, first in runs:
        for number in range(first, cases):
            os.pwrite(at, f"{name} {number}".ljust(64).encode(), 0)
            try:
                run(number)
            except Exception as error:
                text = str(error) if isinstance(error, Difference) else repr(str(error)[:200])
                print(f"{name} {number} {type(error).__name__}: {text}", flush=True)


if __name__ == "__main__":
    known: dict[str, Input | Comparison] = {one.name: one for one in (*INPUTS, *PLANTED, *COMPARISONS, *DIFFER)}
    given = [argument.split("=") for argument in sys.argv[4:]]
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), [(known[name], int(first)) for name, first in given])
