"""The interval tests of a plan, as compiled loops take them (``tests.hpp``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from splitjoin.base.arrays import Array, Rows
from splitjoin.plan.plan import Plan, Tree

from ..loops import address_of


def used_slots(plan: Plan, side: str) -> list[int]:
    """The slots of stream ``side`` that the tests read, in order."""
    return sorted({test.slot(side) for test in plan.tests})


def conditions(plan: Plan, decided: Collection[int] = ()) -> tuple[list[int], Rows]:
    """The tests of ``plan`` beside those ``decided``, which all matches meet, and how their values are joined: for each
    step 1 for OR and 0 for AND, and the numbers of two values, of which it makes one behind those of the tests,
    (3 · steps,). Without a step all of these tests must hold.

    There are as many steps as the tree has distinct parts, which may be far fewer than its nodes.
    """
    parts = plan.tree[1:] if isinstance(plan.tree, tuple) and plan.tree[0] == "and" else (plan.tree,)
    parts = tuple(part for part in parts if not isinstance(part, int) or part not in decided)
    if all(isinstance(part, int) for part in parts):
        return list(parts), np.empty(0, np.int64)
    steps: list[tuple[int, int, int]] = []
    numbers: dict[Tree, int] = {}  # those of the plan of tests, and from −1 down of steps

    def number(tree: Tree) -> int:
        if tree not in numbers:
            numbers[tree] = tree if isinstance(tree, int) else joined(*tree)
        return numbers[tree]

    def joined(op: str, first: Tree, *others: Tree) -> int:
        found = number(first)
        for other in others:
            steps.append((int(op == "or"), found, number(other)))
            found = -len(steps)
        return found

    number(parts[0] if len(parts) == 1 else ("and", *parts))
    tests = sorted(tree for tree in numbers if isinstance(tree, int))
    values = np.array(steps, np.int64)[:, 1:]
    places = np.where(values < 0, len(tests) - 1 - values, np.searchsorted(tests, values))
    return tests, np.column_stack([np.array(steps, np.int64)[:, 0], places]).reshape(-1)


def lanes(arrays: Sequence[Array]) -> Rows:
    """The address of each of ``arrays``, which the caller keeps alive, and the bytes of its elements: (2 · n,)."""
    assert all(array.flags.c_contiguous for array in arrays)
    return np.array([(address_of(array), array.itemsize) for array in arrays], np.int64).reshape(-1)


def test_words(plan: Plan, side: str, keys: Mapping[int, Array], probes: Sequence[Array],
               tests: Collection[int]) -> Rows:
    """Where the keys of stored tuples of stream ``side`` lie, by slot, and the bounds of ``probes``, which the caller
    keeps alive: of each of ``tests`` three addresses and the bytes of a code, (4 · tests,).

    ``probes``: the low bounds of all tests, then all high bounds.
    """
    return words_of([(keys[plan.tests[j].slot(side)], probes[j], probes[len(plan.tests) + j]) for j in tests])


def words_of(tests: Sequence[tuple[Array, Array, Array]]) -> Rows:
    """The same of the keys, the low and the high bounds of each test."""
    assert all(array.itemsize == of[0].itemsize and array.flags.c_contiguous for of in tests for array in of)
    return np.array([(*map(address_of, of), of[0].itemsize) for of in tests], np.int64).reshape(-1)
