"""What kernels compare: the numbers of a stored tuple with those of a probe, by interval tests or by an expression."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from splitjoin.lang.schema import SIDES
from splitjoin.plan.plan import Plan

from ..compiled.atoms import Atom
from ..compiled.expression_source import Code
from ..cpu.codes import lane
from ..cpu.pair_tests import used_slots

#: Functions of NumPy, of which numba-cuda has none for a GPU: kernels call those of ``math`` by the same name, which
#: give floats there (`kernel_source`).
_OF_MATH = re.compile(r"\bnp\.(floor|ceil|sqrt)\(")
#: The difference of two numbers of 32 bits, modulo 2**32.
_WORD = "(np.int64({}) - np.int64({})) & np.int64(0xFFFFFFFF)"


@dataclass(frozen=True)
class TestSource:
    """Code of a plan's whole condition on one stored tuple.

    Attributes:
        lines: Assignments that come before ``truth``: one for each part of the condition that occurs more than once.
        truth: An expression that is true if the condition holds.
    """

    lines: tuple[str, ...]
    truth: str


@dataclass(frozen=True)
class KernelComparison:
    """The condition on a stored tuple and a probe.

    Attributes:
        stored, probe: Names and types of the numbers of each; a ``bool`` travels as a number of 32 bits.
        exact: The condition on those names.
        kept: Names, and the code, of what is computed once for each probe.
        survey: A condition on those names that holds for all matches, and for few other pairs.
    """

    stored: tuple[tuple[str, str], ...]
    probe: tuple[tuple[str, str], ...]
    exact: TestSource
    kept: tuple[tuple[str, str], ...]
    survey: TestSource

    def of_probe(self, code: str, q: int) -> str:
        """``code`` for the probe whose numbers have names that end in ``_q``."""
        names = "|".join(re.escape(name) for name, _ in self.probe + self.kept)
        return re.sub(rf"\b({names})\b", rf"\1_{q}", code) if names else code


@dataclass(frozen=True)
class Layout:
    """Where the numbers of tuples are among the arrays of a batch.

    Attributes:
        stored: Per stream the name and type of each number that is stored, and its place in `Batch.stored`.
        probe: Per stream the place in `Batch.probes` of each number that a probe has, by name.
    """

    stored: Mapping[str, Sequence[tuple[str, str, int]]]
    probe: Mapping[str, Mapping[str, int]]


def plan_layout(plan: Plan) -> Layout:
    """The keys of ``plan``, and its bounds: the low ones of all tests, then all high ones."""
    tests = len(plan.tests)
    bounds = {f"{end}{j}": j + skipped for j in range(tests) for end, skipped in (("lo", 0), ("hi", tests))}
    return Layout({side: [(f"x{slot}", lane(plan.slots(side)[slot].key).__name__, slot)
                          for slot in used_slots(plan, side)] for side in SIDES}, dict.fromkeys(SIDES, bounds))


def of_plan(plan: Plan, side: str) -> KernelComparison:
    """The tests of ``plan`` on stored tuples of stream ``side``: keys against a low and a high bound for each test."""
    keys = tuple((f"x{slot}", lane(plan.slots(side)[slot].key).__name__) for slot in used_slots(plan, side))
    kinds = dict(keys)
    bounds = tuple((f"{end}{j}", kinds[f"x{test.slot(side)}"])
                   for j, test in enumerate(plan.tests) for end in ("lo", "hi"))
    slots = {j: test.slot(side) for j, test in enumerate(plan.tests)}
    short = [j for j, slot in slots.items() if kinds[f"x{slot}"] == "uint32"]

    def test(j: int) -> str:
        """By one comparison, of key − low with the width. An empty interval has none, and is left to `exact`."""
        if j in short:
            return f"(np.uint32({_WORD.format(f'x{slots[j]}', f'lo{j}')}) <= width{j})"
        return f"(x{slots[j]} >= lo{j}) & (x{slots[j]} <= hi{j})"

    kept = tuple((f"width{j}", f"np.uint32({_WORD.format(f'hi{j}', f'lo{j}')} if lo{j} <= hi{j} else 0)")
                 for j in short)
    return KernelComparison(keys, bounds, test_source(plan, side, "x{}", "lo{}", "hi{}"), kept, tree_source(plan, test))


def kind_of(atom: Atom) -> str:
    """The type of the lane of ``atom``."""
    return atom.dtype.__name__.rstrip("_")


def of_expression(code: Code, side: str) -> KernelComparison:
    """The expression of ``code`` on stored tuples of stream ``side``: its lanes."""
    lanes = [(f"{a.side}{a.number}", kind_of(a), a.side) for a in code.values]
    lanes += [(f"{a.side}{a.number}v", "bool", a.side) for a in code.valids]
    stored, probe = (tuple((name, kind) for name, kind, of in lanes if (of == side) == mine) for mine in (True, False))
    # On a GPU, bits are counted by an instruction of its own.
    lines, truth = ([_OF_MATH.sub(r"\1(", re.sub(r"\bpopcount\(", "cuda.popc(", line)) for line in of]
                    for of in (code.lines, [code.truth]))
    made = TestSource(tuple(lines), truth[0])
    return KernelComparison(stored, probe, made, (), made)


def test_source(plan: Plan, side: str, key: str, low: str, high: str) -> TestSource:
    """The whole condition on a stored tuple of stream ``side``; the names are formats of a slot or a test."""
    def test(j: int) -> str:
        k = key.format(plan.tests[j].slot(side))
        return f"({k} >= {low.format(j)}) & ({k} <= {high.format(j)})"

    return tree_source(plan, test)


def tree_source(plan: Plan, test: Callable[[int], str]) -> TestSource:
    """The whole condition, in which ``test`` gives the code of each test.

    The length is linear in the number of distinct parts of ``plan.tree``, which may be far fewer than its nodes.
    """
    uses: Counter[Any] = Counter()

    def count(tree: Any) -> None:
        uses[tree] += 1
        if uses[tree] == 1 and not isinstance(tree, int):
            for a in tree[1:]:
                count(a)

    count(plan.tree)
    names: dict[Any, str] = {}
    lines: list[str] = []

    def text(tree: Any) -> str:
        if tree in names:
            return names[tree]
        if isinstance(tree, int):
            code = test(tree)
        else:
            op, *args = tree
            code = (" & " if op == "and" else " | ").join(f"({text(a)})" for a in args)
        if uses[tree] == 1:
            return code
        names[tree] = f"c{len(names)}"
        lines.append(f"{names[tree]} = {code}")
        return names[tree]

    truth = text(plan.tree)
    return TestSource(tuple(lines), truth)
