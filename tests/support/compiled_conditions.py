"""Runs the code that the CPU engine generates for a condition as plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from splitjoin.engines.compiled.atoms import Atom
from splitjoin.engines.compiled.expression_source import Code


def holds(code: Code, row: dict[str, Any]) -> bool:
    """Run the generated code for one pair, and return whether the condition holds.

    The code runs on NumPy's scalars, which warn of an overflow where compiled code would wrap around.

    ``row``: the values of the names in ``code``, those of `lanes_of` for both sides.
    """
    names = dict(row)
    for line in code.lines:
        exec(line, {"np": np, "popcount": lambda word: int(word).bit_count()}, names)
    return bool(eval(code.truth, {"np": np}, names))


def lanes_of(atoms: tuple[Atom, ...], side: str, arrays: list[Any], row: int) -> dict[str, Any]:
    """The names of the atoms of ``side`` in generated code, and their values and validity in row ``row``."""
    mine = [a for a in atoms if a.side == side]
    found = {f"{side}{a.number}": arrays[a.number][row] for a in mine}
    return found | {f"{side}{a.number}v": bool(arrays[len(mine) + a.number][row]) for a in mine}
