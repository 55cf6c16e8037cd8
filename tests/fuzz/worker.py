"""The process that reads damaged inputs: it may end in a crash, which `tests.fuzz.run` then notes.

Run: python -m tests.fuzz.worker CASES SEED FOLDER INPUT=FIRST… Before it reads a case, it writes its input and number
to the file "at" in FOLDER. It prints them for a case that raised anything but an error of splitjoin, with the error.
"""

from __future__ import annotations

import os
import random
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from splitjoin.base.errors import SplitJoinError

from .inputs import INPUTS, PLANTED, Input, damaged

#: Bytes of address space: a length of 2^40 must be an error before the machine runs out of memory.
_MEMORY = 12 << 30


def case(of: Input, valid: Sequence[bytes], number: int, seed: int) -> bytes:
    """The damaged bytes of case ``number``, made of one of ``valid``."""
    chance = random.Random(f"{of.name} {seed} {number}")
    data = damaged(chance.choice(valid), chance)
    return of.sealed(data) if chance.random() < 0.9 else data


def main(cases: int, seed: int, folder: Path, todo: Sequence[tuple[Input, int]]) -> None:
    """Read the cases before ``cases`` of the inputs ``todo``, each from a number on."""
    read = [(of, list(of.valid()), folder / (of.name if "." in of.name else "input"), first) for of, first in todo]
    for of, valid, path, _ in read:  # valid bytes must be read, else the fuzzer tests nothing
        for data in valid:
            path.write_bytes(data)
            of.read(path)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    at = os.open(folder / "at", os.O_WRONLY | os.O_CREAT)
    for of, valid, path, first in read:
        for number in range(first, cases):
            os.pwrite(at, f"{of.name} {number}".ljust(64).encode(), 0)
            path.write_bytes(case(of, valid, number, seed))
            try:
                of.read(path)
            except SplitJoinError:
                continue
            except Exception as error:
                print(f"{of.name} {number} {type(error).__name__}: {str(error)[:200]!r}", flush=True)


if __name__ == "__main__":
    known = {one.name: one for one in (*INPUTS, *PLANTED)}
    given = [argument.split("=") for argument in sys.argv[4:]]
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), [(known[name], int(first)) for name, first in given])
