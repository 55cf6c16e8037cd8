"""Comparators for keys and bounds, and the order-preserving codes that they compare, one for each FPGA family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from amaranth.hdl import Module, Value

from .carry import CarryOrder
from .carry8 import Carry8Order

__all__ = ["GenericOrder", "Order", "order_of"]


class Order(Protocol):
    """A comparator for unsigned integers of one width.

    The comparator takes codes of the integers, so that a family may choose codes that its cells compare cheaply.
    A bound is coded once, when a probe is loaded; a key once for all of its comparators.
    """

    #: Bits of a code.
    bits: int

    def key(self, value: Value) -> Value:
        """The code of a key."""

    def bound(self, value: Value) -> Value:
        """The code of a bound."""

    def above(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        """True if the key is greater than or equal to the bound; both coded, combinational."""

    def below(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        """True if the key is less than or equal to the bound; both coded, combinational."""


class GenericOrder:
    """The definition: uncoded integers, and Amaranth's operators."""

    def __init__(self, width: int):
        self.bits = width

    def key(self, value: Value) -> Value:
        return value

    def bound(self, value: Value) -> Value:
        return value

    def above(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return key >= bound

    def below(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return key <= bound


def order_of(family: str, width: int) -> Order:
    """The comparator of ``family`` for integers of ``width`` bits."""
    kinds: dict[str, Callable[[int], Order]] = {"ecp5": CarryOrder, "ultrascale": Carry8Order}
    return kinds.get(family, GenericOrder)(width)
