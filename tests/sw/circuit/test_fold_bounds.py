"""Bounds of states through choices: which classes circuits fold, and what the others are told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import UnsupportedError, signed, unsigned
from splitjoin.circuit.lowering import folding_of, plan_for
from splitjoin.circuit.parameters import CircuitParameters

from ...support.user_aggregates import BestVolume

S = pa.schema([pa.field("p", pa.uint16(), nullable=False), pa.field("v", pa.uint16(), nullable=False)])
R = pa.schema([pa.field("x", pa.uint16(), nullable=False)])


def folded(call: Any, capacity: int = 64) -> list[tuple[int, bool]]:
    """Bits of each slot of the state, and whether the circuit checks it. Partners: up to 2 · ``capacity``. Raises what
    keeps regions from folding.
    """
    query = splitjoin.query(R, S, on="r.x <= s.p", window=f"ROWS {capacity}", how="left", aggregate={"a": call})
    parameters = CircuitParameters(cores=2, capacity=capacity)
    choice = folding_of(query, plan_for(query, parameters), parameters)
    if choice.in_order:
        raise UnsupportedError(choice.in_order)
    part, = choice.parts
    return [(slot.bits, slot.checked) for slot in part.slots]


def test_bounds_go_through_choices() -> None:
    assert folded(BestVolume("s.p", "s.v")) == [(16, False), (48, False)]


def best_volume(bits: int) -> Any:
    @splitjoin.aggregate
    class Best:
        price: unsigned(16)
        volume: unsigned(bits)

        def add(self, price: unsigned(16), volume: unsigned(16)):
            if price > self.price:
                self.price, self.volume = price, volume
            elif price == self.price:
                self.volume += volume

        def merge(self, other):
            if other.price > self.price:
                self.price, self.volume = other.price, other.volume
            elif other.price == self.price:
                self.volume += other.volume

        def result(self) -> unsigned(bits):
            return self.volume

    return Best("s.p", "s.v")


def test_the_hint_names_the_width_that_cures() -> None:
    with pytest.raises(UnsupportedError, match=r"volume may leave unsigned\(20\) .* of up to 128 partners .* "
                                               r"from 0 to 8,388,480; state at least 23 bits"):
        folded(best_volume(20))
    assert folded(best_volume(23)) == [(16, False), (23, False)]
    with pytest.raises(UnsupportedError, match="state at least 23 bits"):
        folded(best_volume(22))


@splitjoin.aggregate
class Product:
    """Modulo nothing: no width holds the product of all partners."""

    product: unsigned(64)

    def init(self):
        self.product = 1

    def add(self, x: unsigned(16)):
        self.product *= x

    def merge(self, other):
        self.product *= other.product

    def result(self) -> unsigned(64):
        return self.product


@splitjoin.aggregate
class Capped:
    """A sum that stays at 1000, and a count beside a sum that stops at it."""

    total: unsigned(10)
    n: unsigned(12)

    def add(self, x: unsigned(9)):
        self.total = min(self.total + x, 1000)
        self.n += 1

    def merge(self, other):
        self.total = min(self.total + other.total, 1000)
        self.n += other.n

    def result(self) -> unsigned(10):
        return self.total


@splitjoin.aggregate
class Signed:
    """The sum of the values on the side of zero that the greatest magnitude is on."""

    most: unsigned(16)
    total: signed(32)

    def add(self, x: unsigned(16), y: unsigned(16)):
        if max(x, y) > self.most:
            self.most, self.total = max(x, y), x - y
        elif max(x, y) == self.most:
            self.total += x - y

    def merge(self, other):
        if other.most > self.most:
            self.most, self.total = other.most, other.total
        elif other.most == self.most:
            self.total += other.total

    def result(self) -> signed(32):
        return self.total


def test_others_of_the_kind() -> None:
    """No width cures a product; a cap is a bound; sums may fall; a sum that only rises is checked."""
    with pytest.raises(UnsupportedError, match="no bound of it is known") as error:
        folded(Product("s.p"))
    assert "state at least" not in str(error.value)
    assert folded(Capped("s.p & 511")) == [(10, False), (12, True)]
    assert folded(Signed("s.p", "s.v")) == [(16, False), (32, False)]
