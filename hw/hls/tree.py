"""The Boolean tree over the outcomes of one pair, in as many cycles as a clock needs it to be."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Module, Value
from splitjoin.circuit.schedule import Gate

from .delays import Delays

__all__ = ["combined"]


def combined(m: Module, name: str, root: Gate | int, outcomes: list[Delays]) -> Value:
    """The value of ``root`` at its stage; ``outcomes``: of the tests, at stage 0."""
    made: dict[int, Delays] = {}
    numbers = iter(range(10**6))

    def at(node: Gate | int, stage: int) -> Value:
        if isinstance(node, int):
            return outcomes[node].at(stage)
        if id(node) not in made:
            inputs = [at(part, node.stage) for part in node.inputs]
            value = reduce(and_ if node.op == "and" else or_, inputs)
            made[id(node)] = Delays(m, value, f"gate{next(numbers)}_{name}")
        return made[id(node)].at(stage - node.stage)

    return at(root, root.stage if isinstance(root, Gate) else 0)
