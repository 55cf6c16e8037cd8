"""numba's compiler sees the same variables and flags with the tests' faster methods and with its own."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from numba.core import ir
from numba.core.compiler import Flags, run_frontend

from .quick_numba import EQUAL, LIST_VARS, quicken


def compiled(rows: Any, limit: int = 9) -> Any:
    """Loops, calls, tuples, slices and branches."""
    found, pair = 0, (limit, rows)
    for n, row in enumerate(rows[1:limit]):
        if row > n or not row:
            found += max(row, n, -row)
        else:
            found = min(found, *pair[:1])
    return {"found": found, "rest": [rows[0], found]}, f"{found}"


def test_instructions_list_the_same_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    quicken()
    made = [one for block in run_frontend(compiled).blocks.values() for one in block.body]
    found = [one.list_vars() for one in made]
    monkeypatch.setattr(ir.Inst, "_rec_list_vars", LIST_VARS)
    assert found == [one.list_vars() for one in made]
    assert sum(map(len, found)) > len(made) > 50


def test_flags_are_equal_if_their_values_are() -> None:
    quicken()
    every = [Flags() for _ in range(4)]
    every[1].nrt = every[1].nrt  # its default
    every[2].nrt, every[3].boundscheck = not every[2].nrt, True
    equal = [(a == b, EQUAL(a, b)) for a, b in product(every, repeat=2)]
    assert all(one is own for one, own in equal)
    assert sum(one for one, _ in equal) == 6
    assert hash(every[0]) == hash(every[1])
    assert every[0] != "flags"
