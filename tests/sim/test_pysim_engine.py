"""The code of our engine gives the values that Amaranth's own gives, for every operation on any shapes."""

from __future__ import annotations

import random
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Shape, Signal, Value
from amaranth.sim import Simulator
from hypothesis import given, settings, strategies as st
from splitjoin.sim.pysim_engine import Engine

from ..support.sampling import examples

_CYCLES = 12


def shape(rng: random.Random) -> Shape:
    signed = rng.random() < 0.4
    return Shape(rng.choice([1, 1, 2, 3, 7, 16, 33]) + signed, signed)


def expression(rng: random.Random, leaves: list[Any], depth: int) -> Value:
    """A random expression over ``leaves``, of every operation that Amaranth has."""
    def inner() -> Value:
        return expression(rng, leaves, depth - 1)

    def bits(most: int) -> Value:
        value: Value = inner()[:rng.randint(1, most)]
        return value

    if depth == 0 or rng.random() < 0.1:
        return Value.cast(rng.choice([*leaves, *leaves, rng.choice([0, 1, 5, -1, -6])]))
    a = inner()
    kind = rng.randrange(9)
    if kind == 0:
        return rng.choice([lambda: ~a, lambda: -a, a.bool, a.any, a.all, a.xor, a.as_signed, a.as_unsigned])()
    if kind in (1, 2):
        b = inner()
        return rng.choice([lambda: a + b, lambda: a - b, lambda: a & b, lambda: a | b, lambda: a ^ b,
                           lambda: a[:20] * b[:20]])()
    if kind == 3:
        b = inner()
        return rng.choice([lambda: a == b, lambda: a != b, lambda: a < b, lambda: a <= b, lambda: a > b,
                           lambda: a >= b])()
    if kind == 4:
        b = inner()
        return rng.choice([lambda: a << bits(3), lambda: a >> bits(3), lambda: a // b, lambda: a % b])()
    if kind == 5:
        low = rng.randrange(len(a))
        part = a[low:rng.randint(low + 1, len(a))]
        return part[rng.randrange(len(part)):] if rng.random() < 0.5 else part
    if kind == 6:
        return a.bit_select(bits(3), min(3, len(a))) if rng.random() < 0.5 else a.word_select(bits(2), min(2, len(a)))
    if kind == 7:
        same = rng.random() < 0.5
        return a[:8].replicate(rng.randint(1, 4)) if same else Cat(a, inner(), rng.choice([0, 1]), inner())
    if rng.random() < 0.3:
        return Value.cast(Array([a, inner(), inner()])[bits(2)])
    return Mux(inner(), a, inner())


def circuit(seed: int) -> tuple[Module, list[Signal], list[Signal]]:
    """A random circuit, its inputs, and all other signals."""
    rng = random.Random(seed)
    m = Module()
    inputs = [Signal(shape(rng), name=f"i{n}") for n in range(4)]
    known, made = list(inputs), []
    for n in range(10):
        target = Signal(shape(rng), name=f"s{n}", init=1)
        domain = m.d.sync if rng.random() < 0.5 else m.d.comb
        if rng.random() < 0.5:
            domain += target.eq(expression(rng, known, 3))
        else:
            with m.If(expression(rng, known, 2).as_unsigned()):
                domain += target.eq(expression(rng, known, 2))
            with m.Elif(rng.choice(known).as_unsigned()):
                domain += target[:rng.randint(1, len(target))].eq(expression(rng, known, 2))
            with m.Else(), m.Switch(expression(rng, known, 1)[:2]):
                with m.Case(0):
                    domain += target.bit_select(rng.choice(known)[:2], 1).eq(rng.choice(known))
                with m.Default():
                    domain += Cat(target, Signal(2)).eq(expression(rng, known, 2))
        known.append(target)
        made.append(target)
    return m, inputs, made


def values(seed: int, engine: Any) -> list[list[int]]:
    """The values of all signals of a random circuit in every cycle."""
    m, inputs, made = circuit(seed)
    found = []

    async def testbench(ctx: Any) -> None:
        rng = random.Random(seed)
        for _ in range(_CYCLES):
            for signal in inputs:
                low, high = (-(1 << len(signal) - 1), 1 << len(signal) - 1) if signal.shape().signed else (
                    0, 1 << len(signal))
                ctx.set(signal, rng.choice([low, high - 1, 0, rng.randrange(low, high)]))
            found.append([ctx.get(signal) for signal in made])
            await ctx.tick()

    simulator = Simulator(m, engine=engine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return found


@settings(max_examples=examples(40))
@given(st.integers(0, 10**9))
def test_the_values_are_those_of_amaranth(seed: int) -> None:
    found = values(seed, Engine)
    assert found == values(seed, "pysim")
    assert {type(value) for cycle in found for value in cycle} == {int}
