"""Circuits have equal values in every cycle, and equal RTLIL, with the tests' faster methods and Amaranth's own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator, _pyrtl

from splitjoin.engines.arrival import arrivals
from splitjoin_sim.pysim import PysimDevice

from ..support.quick_amaranth import OWN, quicken
from ..support.scenarios import SCENARIOS


@contextmanager
def own_methods() -> Iterator[None]:
    """Have this process simulate as Amaranth does."""
    names = vars(_pyrtl)
    try:
        for (of, name), method in OWN.items():
            setattr(of, name, method)
        del names["compile"], names["exec"]
        yield
    finally:
        quicken()


def expression(rng: random.Random, of: list[Signal], depth: int) -> Value:
    """A value of any kind that Amaranth has."""
    if not depth:
        return rng.choice([*of, Const(rng.randrange(-9, 9)), Const(rng.randrange(9), 4)])
    a, b, c = (expression(rng, of, depth - 1 if rng.random() < 0.7 else 0) for _ in range(3))
    first, last = sorted(rng.sample(range(len(a) + 1), 2)) if len(a) else (0, 0)
    narrow = Cat(b, c)[:2]
    return Value.cast(rng.choice([
        lambda: a + b, lambda: a - b, lambda: a[:6] * b[:6], lambda: a & b, lambda: a | b, lambda: a ^ b, lambda: ~a,
        lambda: -a, lambda: a << narrow, lambda: a >> narrow, lambda: a == b, lambda: a < b, lambda: a >= b,
        lambda: a // b[:3], lambda: a % b[:3], lambda: a.any(), lambda: a.all(), lambda: a.xor(), lambda: a.bool(),
        lambda: Mux(a, b, c), lambda: Cat(a, b, b), lambda: a[first:last], lambda: a[first:last].replicate(3),
        lambda: a.as_signed() if len(a) else a, lambda: a.as_unsigned(), lambda: a.bit_select(narrow, 2),
        lambda: a.word_select(narrow, 2)])())


def made(seed: int) -> tuple[Module, list[Signal]]:
    """A circuit with registers, wires, and a memory with write enables that feeds them."""
    rng = random.Random(seed)
    m = Module()
    shapes = [Shape(rng.randint(1, 9), rng.random() < 0.4) for _ in range(12)]
    signals = [Signal(shape, init=rng.randrange(2) * (-1) ** shape.signed, name=f"s{n}")
               for n, shape in enumerate(shapes)]
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[1, 2])
    write, read = memory.write_port(granularity=4), memory.read_port()
    m.d.comb += [port.eq(expression(rng, signals[:6], 1)) for port in (write.addr, write.en, write.data, read.addr)]
    m.d.comb += [signal.eq(expression(rng, [*signals[:6], read.data], 3)) for signal in signals[6:]]
    for signal in signals[:6]:
        value = expression(rng, signals, 3)
        with m.If(expression(rng, signals, 1).any()):
            m.d.sync += signal.eq(value)
        with m.Else():
            m.d.sync += signal[0].eq(~signal[0])
    return m, signals


def traced(seed: int) -> tuple[list[list[int]], str]:
    """The values of a circuit's signals in each cycle, and its RTLIL."""
    m, signals = made(seed)
    found = []

    async def watch(ctx):  # type: ignore[no-untyped-def]
        for _ in range(12):
            await ctx.tick()
            found.append([ctx.get(signal) for signal in signals])

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(watch)
    simulator.run()
    return found, rtlil.convert(made(seed)[0], ports=[], emit_src=False)


@pytest.mark.parametrize("seed", range(12))
def test_random_circuits_have_the_same_values(seed: int) -> None:
    quick = traced(seed)
    with own_methods():
        assert traced(seed) == quick


def test_a_circuit_with_memories_takes_the_same_cycles() -> None:
    query, runs = (scenario := next(case for case in SCENARIOS if case.name == "single-pair")).query(), []
    for own in (False, True):
        device = PysimDevice(cores=1, capacity=8, stall_in=0.3, stall_out=0.3)

        def run(device: PysimDevice = device) -> None:
            with device.open(query) as session:
                session.push(arrivals(query, scenario.r, scenario.s))
                runs.append((session.flush().tolist(), session.counters()))

        if own:
            with own_methods():
                run()
        else:
            run()
    assert runs[0] == runs[1]
