"""Formula tests: the conjuncts of a condition that no other test decides, computed in the circuit for each pair.

The parts of a conjunct that read one stream are values of its tuples: the host computes them once for each tuple, and
they are stored as keys. A probe brings its own keys in place of bounds. What reads both streams is a pipeline, one for
each lane and probe (`splitjoin.hls.condition`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import UnsupportedError
from splitjoin.hls.condition import condition_graph
from splitjoin.hls.graph import Graph, Node, width_of
from splitjoin.hls.pipeline import ScheduledGraph, scheduled
from splitjoin.lang import build
from splitjoin.lang.ir import And, Col, Expr, UnitNumber, UnitStart, columns, sides, text
from splitjoin.lang.properties import denominator, value_range
from splitjoin.lang.schema import Side
from splitjoin.lang.types import BOOL, Bool, Float, is_text
from splitjoin.plan.forms import OneSided
from splitjoin.plan.keys import FloatKey, PrefixKey, TextKey, Texts, UnitKey, float_codes
from splitjoin.plan.linear import ExactKey, LinearTerm
from splitjoin.plan.plan import KeySlot

#: Widest value in bits: record fields have at most 64.
_BITS = 64


@dataclass(frozen=True)
class Formula:
    """A condition that the circuit computes.

    Attributes:
        condition: The condition.
        slots_r, slots_s: The keys of which the inputs are.
        pipeline: Its operations. An input ``key3`` of stream r is the fourth of ``slots_r``, a number in two's
            complement, if it can be negative, whose sign is inverted; the output is 1 where the condition is true.
        exact: False if it is 1 where two texts begin alike, too, whose order the keys do not tell.
    """

    condition: Expr
    slots_r: tuple[KeySlot, ...]
    slots_s: tuple[KeySlot, ...]
    pipeline: ScheduledGraph
    exact: bool = True


def input_slot(node: Node) -> int:
    """The number of the key that input ``node`` of a formula reads."""
    return int(node.name.removeprefix("key"))


def conjuncts(e: Expr | None) -> tuple[Expr, ...]:
    """The parts of condition ``e`` that must all be true; none for None."""
    return () if e is None else e.args if isinstance(e, And) else (e,)


def joined(parts: Iterable[Expr]) -> Expr | None:
    """The condition that all ``parts`` are true; None for no parts."""
    found = tuple(parts)
    return None if not found else found[0] if len(found) == 1 else And(BOOL, found)


def formula_of(condition: Expr, slots_r: tuple[KeySlot, ...], slots_s: tuple[KeySlot, ...],
               clock: float | None) -> Formula:
    """``condition`` as a formula beside the keys ``slots_r`` and ``slots_s``, with the registers that ``clock`` in MHz
    needs. Raises `UnsupportedError`, with the reason, if no circuit computes it.
    """
    inputs = _Inputs(slots_r, slots_s)
    graph, exact = condition_graph(condition, inputs)
    slots: dict[Side, list[KeySlot]] = {"r": list(slots_r), "s": list(slots_s)}
    nodes = []
    for node in graph.nodes:  # of the keys that were added, those that the graph needs
        if node.kind == "input":
            side: Side = "r" if node.side == "r" else "s"
            slot = list(inputs.slots[side])[input_slot(node)]
            if slot not in slots[side]:
                slots[side].append(slot)
            node = replace(node, name=f"key{slots[side].index(slot)}")
        nodes.append(node)
    pipeline = scheduled(Graph(tuple(nodes), graph.outputs), clock)
    return Formula(condition, tuple(slots["r"]), tuple(slots["s"]), pipeline, exact)


def computed(condition: Expr) -> tuple[bool, str]:
    """True if a circuit computes ``condition``; and the reason why it does not decide it, empty if it does."""
    try:
        _, exact = condition_graph(condition, _Inputs((), ()))
    except UnsupportedError as error:
        return False, str(error)
    return True, "" if exact else "texts that begin alike and are longer than what is compared are candidates"


class _Inputs:
    """The inputs of a formula: keys of both streams, to which it adds those that are not there yet."""

    def __init__(self, slots_r: tuple[KeySlot, ...], slots_s: tuple[KeySlot, ...]):
        self.slots: dict[Side, dict[KeySlot, None]] = {"r": dict.fromkeys(slots_r), "s": dict.fromkeys(slots_s)}

    def number(self, e: Expr) -> tuple[Node, int] | None:
        side: Side = next(iter(sides(e)), "r")
        if isinstance(e.type, Float):
            return self._input(side, FloatKey(side, e, e.type.bits, False, False), 0, 2**e.type.bits - 1), 1
        if is_text(e.type):
            texts = TextKey(side, e, False)
            return self._input(side, texts, 0, 2**texts.width - 1), 1
        per = denominator(e)
        low, high = (int(end * per) for end in value_range(e))
        width = width_of(low, high)
        if not isinstance(e, (Col, UnitNumber, UnitStart)) and width > min(_BITS, sum(map(_width, columns(e)))):
            return None
        if width > _BITS:
            raise UnsupportedError(f"{text(e)} needs {width} bits, and circuits store up to {_BITS}")
        least = -(2**(width - 1)) if low < 0 else 0
        key = ExactKey(side, (LinearTerm(1, e, per),), least, least + 2**width - 1, False)
        return self._input(side, key, low, high), per

    def ordered(self, e: Expr, length: int | None) -> tuple[Node, bool | None]:
        side: Side = next(iter(sides(e)), "r")
        key = PrefixKey(side, e, length, False)
        alone = True if key.exact else None if length is None else False
        if not sides(e):
            code = int(key.values(pa.table({"": [0]}), Texts()).values[0])
            return Node("constant", (), code, code), alone
        return self._input(side, key, 0, 2**key.width - 1), alone

    def code(self, value: Any, e: Expr) -> int | None:
        if not isinstance(e.type, Float):
            return None
        of = np.array([value], np.float32 if e.type.bits == 32 else np.float64)
        return int(float_codes(of, e.type.bits, nan_low=False)[0])

    def flag(self, e: Expr, value: Any) -> Node:
        side: Side = next(iter(sides(e)))
        guard = OneSided(side, build.is_null(e, str(e)), frozenset(("false",))) if value == "present" else OneSided(
            side, e, frozenset((value,)))
        return self._input(side, UnitKey(side), 0, 1, (guard,))

    def _input(self, side: Side, key: Any, low: int, high: int, guards: tuple[OneSided, ...] = ()) -> Node:
        slots = self.slots[side]
        slot = KeySlot(key, guards)
        slots.setdefault(slot)
        return Node("input", (), low, high, side, f"key{list(slots).index(slot)}")


def _width(c: Col) -> int:
    """Bits of the values of column ``c``."""
    if isinstance(c.type, Bool):
        return 1
    if isinstance(c.type, Float) or is_text(c.type):
        return _BITS
    per = denominator(c)
    low, high = (int(end * per) for end in value_range(c))
    return width_of(low, high)
