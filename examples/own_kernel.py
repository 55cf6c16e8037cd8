"""Typed Python functions in one's own Amaranth design: a sensor's values are smoothed, and runs of alarms are counted.

The script simulates the design, compares it with the same functions in Python, prints the report of each, and writes
the design as Verilog.

python own_kernel.py --clock 100 --output alarms.v
"""

import argparse
import random
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Module, signed as signed_shape
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from splitjoin import hls
from splitjoin.hls import kernel, signed, unsigned

LIMIT = 300


@kernel
class Smoothed:
    """An exponential mean with factor 1/8, in 1/16."""

    mean: signed(16)

    def step(self, x: signed(12)) -> signed(12):
        self.mean: signed(16) = self.mean + (((x << 4) - self.mean) >> 3)
        return self.mean >> 4


@kernel
class Alarms:
    """The length of each run of values beyond the limit, when it ends."""

    length: unsigned(8)

    def step(self, x: signed(12)) -> unsigned(8):
        if abs(x) > LIMIT:
            self.length = min(self.length + 1, 255)
            return None
        ended = self.length
        self.length = 0
        return ended if ended > 0 else None


class Watch(wiring.Component):
    """Values in, lengths of alarms out."""

    i: In(stream.Signature(signed_shape(12)))
    o: Out(stream.Signature(8))

    def __init__(self, clock):
        self._clock = clock
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.smoothed = smoothed = hls.component(Smoothed, clock=self._clock)
        m.submodules.alarms = alarms = hls.component(Alarms, clock=self._clock)
        # A component takes a struct with a field for each parameter.
        m.d.comb += [
            smoothed.i.payload.x.eq(self.i.payload), smoothed.i.valid.eq(self.i.valid),
            self.i.ready.eq(smoothed.i.ready),
            alarms.i.payload.x.eq(smoothed.o.payload), alarms.i.valid.eq(smoothed.o.valid),
            smoothed.o.ready.eq(alarms.i.ready),
        ]
        wiring.connect(m, alarms.o, wiring.flipped(self.o))
        return m


def simulated(design, values):
    """The lengths that the design gives for ``values``."""
    found = []

    async def feed(ctx):
        for value in values:
            ctx.set(design.i.payload, value)
            ctx.set(design.i.valid, 1)
            await ctx.tick().until(design.i.ready)
        ctx.set(design.i.valid, 0)
        await ctx.tick().repeat(20)

    async def take(ctx):
        ctx.set(design.o.ready, 1)
        async for _, reset, valid, length in ctx.tick().sample(design.o.valid, design.o.payload):
            if valid and not reset:
                found.append(length)

    simulator = Simulator(design)
    simulator.add_clock(1e-8)
    simulator.add_testbench(feed)
    simulator.add_process(take)
    simulator.run()
    return found


def main() -> None:
    """Simulate, compare, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=400, help="values of the sensor (%(default)s)")
    parser.add_argument("--clock", type=float, default=100, help="in MHz (%(default)s)")
    parser.add_argument("--output", help="file for the Verilog of the whole design")
    args = parser.parse_args()
    chance, level, values = random.Random(1), 0, []
    for _ in range(args.values):
        level = max(min(level + chance.randint(-120, 120), 900), -900)
        values.append(level)
    smoothed, alarms = Smoothed(), Alarms()
    expected = [length for x in values if (length := alarms.step(smoothed.step(x))) is not None]
    if simulated(Watch(args.clock), values) != expected:
        raise SystemExit("the design and Python differ")
    print(f"{len(expected)} alarms, as in Python; the longest took {max(expected, default=0)} values")
    for fn in (Smoothed, Alarms):
        print(hls.report(fn, clock=args.clock).text())
    if args.output:
        text = verilog.convert(Watch(args.clock), name="watch")
        Path(args.output).write_text(text, encoding="utf-8")
        print(f"{len(text.splitlines()):,} lines of Verilog")


if __name__ == "__main__":
    main()
