"""Two joins in one Amaranth design: a near and a far join of the same two sensors, without a host.

The gateware packs the records itself, writes the settings, and gives the pairs of both joins. The script simulates the
design, checks the pairs against the reference model, and writes the whole design as Verilog.

python two_joins.py --output two_joins.v
"""

import argparse
import random
from pathlib import Path

import pyarrow as pa
from amaranth.back import verilog
from amaranth.hdl import Array, Cat, Const, Module, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import splitjoin

#: A column that may be NULL would have a key of 17 bits.
SENSOR_R, SENSOR_S = (pa.schema([pa.field(name, pa.int16(), nullable=False)]) for name in ("x", "a"))
WINDOW = "ROWS 16"
#: The band of each join.
REACH = {"near": 2, "far": 9}
SAMPLE = data.StructLayout({"sensor": unsigned(1), "value": signed(16)})  # sensor 0 is stream R, 1 is S
PAIR = data.StructLayout({"r": unsigned(32), "s": unsigned(32)})


class Records(wiring.Component):
    """Makes a join's input records of samples, as a host would do (docs/wire.md)."""

    def __init__(self, join, reach: int):
        self._layouts, self._reach = join.layouts, reach
        super().__init__({"i": In(stream.Signature(SAMPLE)), "o": Out(join.i.signature.flip())})

    def elaborate(self, platform):
        m = Module()
        record = Signal(self._layouts["input"])
        key = self.i.p.value.as_unsigned() ^ 0x8000  # the distance from the least value
        bodies = []
        for name in ("body_r", "body_s"):
            body = Signal(self._layouts[name], name=name)
            # A band of constant width needs the low end alone, modulo twice the key's range.
            m.d.comb += [body.key0.eq(key), body.lo0.eq(key - self._reach)]
            bodies.append(body.as_value())
        m.d.comb += [
            record.op.eq(0), record.stream.eq(self.i.p.sensor), record.body.eq(Array(bodies)[self.i.p.sensor]),
            self.o.payload.eq(record), self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready),
        ]
        return m


class Settings(wiring.Component):
    """Writes a join's settings after the reset, a word a cycle; ``done`` is high from then on."""

    def __init__(self, description):
        words = {reg["name"]: reg for reg in description["registers"]}
        self._writes = [(words[name]["address"] + n, value >> 32 * n & 0xFFFFFFFF)
                        for name, value in description["settings"].items() for n in range(words[name]["bits"] // 32)]
        super().__init__({"addr": Out(5), "w_stb": Out(1), "w_data": Out(32), "done": Out(1)})

    def elaborate(self, platform):
        m = Module()
        number = Signal(range(len(self._writes) + 1))
        m.d.comb += [self.done.eq(number == len(self._writes)), self.w_stb.eq(~self.done),
                     self.addr.eq(Array(Const(address, 5) for address, _ in self._writes)[number]),
                     self.w_data.eq(Array(Const(word, 32) for _, word in self._writes)[number])]
        m.d.sync += number.eq(number + ~self.done)
        return m


class TwoJoins(wiring.Component):
    """Both joins take every sample; ``near`` and ``far`` give their pairs."""

    def __init__(self):
        super().__init__({"i": In(stream.Signature(SAMPLE)),
                          **{name: Out(stream.Signature(PAIR)) for name in REACH}})

    def elaborate(self, platform):
        m = Module()
        makers = []
        for name, reach in REACH.items():
            query = splitjoin.query(SENSOR_R, SENSOR_S, on=f"abs(r.x - s.a) <= {reach}", window=WINDOW, order="none")
            join = m.submodules[name] = splitjoin.component(query, cores=1, capacity=16)
            records = m.submodules[f"{name}_records"] = Records(join, reach)
            settings = m.submodules[f"{name}_settings"] = Settings(join.description)
            wiring.connect(m, records.o, join.i)
            m.d.comb += [join.addr.eq(settings.addr), join.w_stb.eq(settings.w_stb), join.w_data.eq(settings.w_data)]
            layout = join.layouts["output"]
            out, item = getattr(self, name), data.View(layout, join.o.payload[:layout.size])
            m.d.comb += [out.p.r.eq(item.r), out.p.s.eq(item.s), out.valid.eq(join.o.valid),
                         join.o.ready.eq(out.ready)]
            makers.append((records, settings))
        # A sample goes to both joins; it leaves when each has taken it, now or in a cycle before.
        taken = []
        for (records, settings), name in zip(makers, REACH, strict=True):
            has_taken = Signal(name=f"{name}_has_taken")
            done = has_taken | records.i.valid & records.i.ready
            m.d.comb += [records.i.p.eq(self.i.p), records.i.valid.eq(self.i.valid & settings.done & ~has_taken)]
            m.d.sync += has_taken.eq(done & ~self.i.ready)
            taken.append(done)
        m.d.comb += self.i.ready.eq(Cat(taken).all())
        return m


def simulated(design: TwoJoins, samples: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
    """The pairs of each join for ``samples``, which are (sensor, value)."""
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in REACH}

    async def feed(ctx):
        for sensor, value in samples:
            ctx.set(design.i.payload, {"sensor": sensor, "value": value})
            ctx.set(design.i.valid, 1)
            await ctx.tick().until(design.i.ready)
        ctx.set(design.i.valid, 0)
        await ctx.tick().repeat(100)  # the last results are under way

    def take(name):
        async def process(ctx):
            out = getattr(design, name)
            ctx.set(out.ready, 1)
            async for _, reset, valid, pair in ctx.tick().sample(out.valid, out.payload):
                if valid and not reset:
                    found[name].append((pair.r, pair.s))
        return process

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(feed)
    for name in REACH:
        simulator.add_process(take(name))
    simulator.run()
    return found


def main() -> None:
    """Simulate, compare and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100, help="samples of each sensor (%(default)s)")
    parser.add_argument("--output", help="file for the Verilog of the whole design")
    args = parser.parse_args()
    chance = random.Random(1)
    values = {sensor: [chance.randrange(-40, 40) for _ in range(args.samples)] for sensor in (0, 1)}
    # Without event times, tuples arrive in turn: the first of R, the first of S, the second of R …
    samples = [(sensor, values[sensor][n]) for n in range(args.samples) for sensor in (0, 1)]
    found = simulated(TwoJoins(), samples)
    r, s = pa.table({"x": values[0]}, SENSOR_R), pa.table({"a": values[1]}, SENSOR_S)
    for name, reach in REACH.items():
        rows = splitjoin.join(r, s, on=f"abs(r.x - s.a) <= {reach}", window=WINDOW, device="golden", select=["x", "a"])
        expected = sorted((row["x"], row["a"]) for row in rows.to_pylist())
        if sorted((values[0][at], values[1][other]) for at, other in found[name]) != expected:
            raise SystemExit(f"the {name} join and the reference model differ")
        print(f"{name}: {len(found[name])} pairs, as from the reference model")
    if args.output:
        text = verilog.convert(TwoJoins(), name="two_joins")
        Path(args.output).write_text(text, encoding="utf-8")
        print(f"{len(text.splitlines()):,} lines of Verilog")


if __name__ == "__main__":
    main()
