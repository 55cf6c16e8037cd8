"""The kernels of the suite in Amaranth by hand: an output register behind the logic, state with enables, streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .typed import C1, C2, C3, C5, C6, C7, KERNELS, NEXT, TAPS

#: The logic of a kernel: the results of operands and of the state, what the state becomes, and whether there is one.
Logic = Callable[..., Any]
_MADE: dict[str, tuple[dict[str, Any], Any, dict[str, Any], Logic]] = {}


class ByHand(wiring.Component):
    """A kernel of one stage."""

    def __init__(self, inputs: dict[str, Any], shape: Any, state: dict[str, Any], logic: Logic):
        self._state, self._logic = state, logic
        super().__init__({"i": In(stream.Signature(data.StructLayout(inputs))), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        go = Signal()
        state = {name: Signal(shape, init=init, name=name) for name, (shape, init) in self._state.items()}
        args = [self.i.payload[name] for name in self.i.payload.shape().members]
        value, present, new = self._logic(m, *args, **state)
        m.d.comb += [go.eq(~self.o.valid | self.o.ready), self.i.ready.eq(go)]
        result = Signal(self.o.payload.shape(), reset_less=True)
        m.d.comb += self.o.payload.eq(result)
        with m.If(go):
            m.d.sync += [self.o.valid.eq(self.i.valid & present),
                         Value.cast(result).eq(Cat(*value) if isinstance(value, (list, tuple)) else value)]
            with m.If(self.i.valid):
                m.d.sync += [state[name].eq(v) for name, v in new.items()]
        return m


class BinsByHand(wiring.Component):
    """Counts in block RAM: read, add and write, with the last write beside what is read."""

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(data.StructLayout({"x": unsigned(12)}))),
                          "o": Out(stream.Signature(unsigned(16)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rows = rows = memory.Memory(shape=16, depth=4096, init=[], attrs={"no_rw_check": True})
        read, write = rows.read_port(domain="comb"), rows.write_port()
        clear, go, loads, equal = Signal(13), Signal(), Signal(), Signal()
        found, last, new = (Signal(16, reset_less=True) for _ in range(3))
        x, before = Signal(12, reset_less=True), Signal(12)
        with m.If(~clear[-1]):
            m.d.sync += clear.eq(clear + 1)
        m.d.comb += [go.eq(~self.o.valid | self.o.ready), self.i.ready.eq(go & clear[-1]),
                     read.addr.eq(self.i.payload.x), new.eq((Mux(equal, last, found) + 1)[:16]),
                     write.en.eq(Mux(clear[-1], go & loads, 1)), write.addr.eq(Mux(clear[-1], x, clear)),
                     write.data.eq(Mux(clear[-1], new, 0))]
        with m.If(go):
            m.d.sync += [loads.eq(self.i.valid & clear[-1]), self.o.valid.eq(loads), found.eq(read.data),
                         x.eq(self.i.payload.x), equal.eq(self.i.payload.x == before), self.o.payload.eq(new)]
            with m.If(self.i.valid & clear[-1]):
                m.d.sync += before.eq(self.i.payload.x)
            with m.If(loads):
                m.d.sync += last.eq(new)
        return m


def by_hand(name: str) -> wiring.Component:
    """The kernel ``name``, of `typed.KERNELS`."""
    return BinsByHand() if name == "Bins" else ByHand(*_MADE[name.lower()])


def _kernel(inputs: dict[str, Any], shape: Any, **state: Any) -> Callable[[Logic], Logic]:
    def add(logic: Logic) -> Logic:
        slots = {n: s if isinstance(s, tuple) else (s, 0) for n, s in state.items()}
        _MADE[logic.__name__.replace("_", "")] = inputs, shape, slots, logic
        return logic
    return add


def _less(m: Module, a: Value, b: Value) -> Value:
    """``a < b`` by the carry chain of a difference, which Yosys maps to fewer LUTs than a comparison."""
    difference = Signal(signed(max(len(a), len(b)) + (a.shape().signed == b.shape().signed or 2)), src_loc_at=1)
    m.d.comb += difference.eq(a - b)
    return difference[-1]


def _both(m: Module, a: Value, b: Value) -> tuple[Value, Value]:
    less = _less(m, a, b)
    return Mux(less, a, b), Mux(less, b, a)


@_kernel({"x": unsigned(8)}, unsigned(8))
def crc8(m, x):
    # x^8 = x^2 + x + 1 modulo the polynomial: the product with 7, and its two upper bits times 7 once more.
    made = x ^ (x << 1) ^ (x << 2)
    upper = made[8:10]
    return (made[:8] ^ upper ^ (upper << 1) ^ (upper << 2))[:8], 1, {}


@_kernel({"x": unsigned(8)}, unsigned(32), crc=(unsigned(32), 0xFFFFFFFF))
def crc32(m, x, crc):
    bits = list(crc ^ x)
    for _ in range(8):
        low = bits[0]
        bits = [b ^ low if 0xEDB88320 >> n & 1 else b for n, b in enumerate([*bits[1:], Const(0)])]
    return ~Cat(bits), 1, {"crc": Cat(bits)}


@_kernel({"x": unsigned(8)}, unsigned(32), a=(unsigned(16), 1), b=unsigned(16))
def adler32(m, x, a, b):
    def modulo(total: Value, name: str) -> Value:
        over = Signal(signed(19), name=name)
        m.d.comb += over.eq(total - 65521)
        return Mux(over[-1], total, over)[:16]

    new_a = modulo(a + x, "over_a")
    new_b = modulo(b + new_a, "over_b")
    return Cat(new_a, new_b), 1, {"a": new_a, "b": new_b}


@_kernel({"x": unsigned(32)}, unsigned(16))
def isqrt(m, x):
    root, rest = Const(0, 1), Const(0, 1)
    for n in range(16):
        taken = Cat(x[30 - 2 * n:32 - 2 * n], rest)[:n + 3]
        less = Signal(n + 4, name=f"less{n}")
        m.d.comb += less.eq(taken - Cat(Const(1, 2), root))
        rest = Mux(less[-1], taken, less)[:n + 2]
        root = Cat(~less[-1], root)[:n + 1]
    return root, 1, {}


@_kernel({n: signed(32) for n in "abc"}, signed(32))
def median(m, a, b, c):
    up, on, to_c = _less(m, a, b), _less(m, b, c), _less(m, a, c)
    return Mux(up == on, b, Mux(up == to_c, c, a)), 1, {}


@_kernel({n: signed(16) for n in "ab"}, signed(16))
def product(m, a, b):
    made = Signal(signed(32))
    m.d.comb += made.eq(a * b)
    sign, upper = made[-1], made[23:]
    return Mux((upper == 0) | upper.all(), made[8:24], Cat((~sign).replicate(15), sign)), 1, {}


@_kernel({n: unsigned(8) for n in "ab"}, data.StructLayout({"a": unsigned(8), "b": unsigned(8)}))
def gcd(m, a, b):
    for _ in range(4):
        less, difference = _less(m, b, a), Signal(8, name="difference")
        a, b = Mux(less, b, a), Mux(less, a, b)
        m.d.comb += difference.eq(b - a)
        b = difference  # of a, or of 0
    return [a, b], 1, {}


@_kernel({"x": data.ArrayLayout(unsigned(8), 8)}, unsigned(64))
def sorted8(m, x):
    v = [x[n] for n in range(8)]
    for size in (2, 4, 8):
        step = size // 2
        while step:
            for n in range(8):
                if n ^ step > n:
                    v[n], v[n ^ step] = _both(m, v[n], v[n ^ step])[::-1 if n & size else 1]
            step //= 2
    return v, 1, {}


@_kernel({"x": data.ArrayLayout(signed(12), 8)}, data.ArrayLayout(signed(14), 8))
def idct(m, x):
    s04, d04 = (x[0] + x[4]) * 724, (x[0] - x[4]) * 724
    e, o = x[2] * C2 + x[6] * C6, x[2] * C6 - x[6] * C2
    even = s04 + e, d04 + o, d04 - o, s04 - e
    odd = (x[1] * C1 + x[3] * C3 + x[5] * C5 + x[7] * C7, x[1] * C3 - x[3] * C7 - x[5] * C1 - x[7] * C5,
           x[1] * C5 - x[3] * C1 + x[5] * C7 + x[7] * C3, x[1] * C7 - x[3] * C5 + x[5] * C3 - x[7] * C1)
    pairs = list(zip(even, odd, strict=True))
    sums = [a + b for a, b in pairs] + [a - b for a, b in reversed(pairs)]
    return [(s >> 11).as_signed()[:14] for s in sums], 1, {}


@_kernel({**{n: signed(18) for n in ("lat", "lon", "lat2", "lon2")}, "cos": unsigned(16)}, unsigned(38))
def distance(m, lat, lon, lat2, lon2, cos):
    x, y = Signal(signed(19)), Signal(signed(19))
    m.d.comb += [x.eq((lon - lon2) * cos >> 16), y.eq(lat - lat2)]
    return x * x + y * y, 1, {}


@_kernel({"x": signed(12)}, signed(22), **{f"past{n}": signed(12) for n in range(15)})
def fir16(m, x, **past):
    taps = [x, *past.values()]
    # The filter is symmetric: one product for two taps.
    total = sum((taps[n] + taps[15 - n]) * TAPS[n] for n in range(8))
    return total, 1, {f"past{n}": taps[n] for n in range(15)}


@_kernel({"x": unsigned(16)}, unsigned(32), total=unsigned(32))
def prefix_sum(m, x, total):
    made = (total + x)[:32]
    return made, 1, {"total": made}


@_kernel({"x": unsigned(8)}, unsigned(28), value=unsigned(28), place=unsigned(3))
def varint(m, x, value, place):
    parts = [Mux(place == n, value[7 * n:7 * n + 7] | x[:7], value[7 * n:7 * n + 7]) for n in range(4)]
    made, last = Cat(parts), ~x[7]
    return made, last, {"value": Mux(last, 0, made), "place": Mux(last, 0, Mux(place[2], 4, place + 1))}


@_kernel({"x": unsigned(8)}, unsigned(16), value=unsigned(8), length=unsigned(8))
def runs(m, x, value, length):
    goes_on = (x == value) & ~length.all()
    return [value, length], ~goes_on, {"value": x, "length": Mux(goes_on, length + 1, 1)}


@_kernel({"x": unsigned(8)}, unsigned(1), matched=unsigned(4))
def kmp(m, x, matched):
    new = Signal(4)
    for code, row in zip(b"abc", NEXT, strict=True):
        with m.If(x == code), m.Switch(matched):
            for n, following in enumerate(row):
                with m.Case(n):
                    m.d.comb += new.eq(following)
    return new == 8, 1, {"matched": new}


@_kernel({"x": unsigned(16)}, unsigned(16), last=unsigned(16), run=unsigned(16), best=unsigned(16))
def rise(m, x, last, run, best):
    new = Mux(_less(m, last, x), run + 1, 1)[:16]
    more = Mux(_less(m, best, new), new, best)
    return more, 1, {"last": x, "run": new, "best": more}


@_kernel({"x": unsigned(8)}, unsigned(32), hash=unsigned(32))
def rolling(m, x, hash):  # noqa: A002  # the state's name in the typed kernel
    new = ((hash << 5) - hash + x)[:32]
    return new, 1, {"hash": new}


@_kernel({"x": unsigned(16)}, unsigned(16), **{f"v{n}": unsigned(16) for n in range(3)})
def top3(m, x, v0, v1, v2):
    # x takes the place of the first one that is less.
    l0, l1, l2 = (_less(m, v, x) for v in (v0, v1, v2))
    third = Mux(l1, v1, Mux(l2, x, v2))
    return third, 1, {"v0": Mux(l0, x, v0), "v1": Mux(l0, v0, Mux(l1, x, v1)), "v2": third}


@_kernel({"x": unsigned(32)}, unsigned(32), seen=unsigned(32))
def flags(m, x, seen):
    return seen | x, 1, {"seen": seen | x}


@_kernel({"x": signed(16)}, unsigned(96), n=unsigned(16), total=signed(32), squares=unsigned(48))
def squares(m, x, n, total, squares):
    new = (n + 1)[:16], (total + x)[:32], (squares + (x * x).as_unsigned()[:31])[:48]
    return new, 1, dict(zip(("n", "total", "squares"), new, strict=True))


@_kernel({"x": unsigned(8)}, unsigned(64), **{f"c{n}": unsigned(16) for n in range(4)})
def histogram(m, x, **counts):
    new = [(c + (x[6:] == n))[:16] for n, c in enumerate(counts.values())]
    return new, 1, dict(zip(counts, new, strict=True))


@_kernel({"price": unsigned(16), "volume": unsigned(16)}, unsigned(80), money=unsigned(48), total=unsigned(32))
def vwap(m, price, volume, money, total):
    new = (money + price * volume)[:48], (total + volume)[:32]
    return new, 1, {"money": new[0], "total": new[1]}


@_kernel({"x": signed(16)}, data.ArrayLayout(signed(16), 2), low=(signed(16), 32767), high=(signed(16), -32768))
def extent(m, x, low, high):
    new = Mux(_less(m, x, low), x, low)[:16], Mux(_less(m, high, x), x, high)[:16]
    return new, 1, {"low": new[0], "high": new[1]}


@_kernel({"x": signed(16)}, signed(12), total=signed(12))
def saturated(m, x, total):
    made = Signal(signed(17))
    m.d.comb += made.eq(total + x)
    sign, upper = made[-1], made[11:]
    new = Mux((upper == 0) | upper.all(), made[:12], Cat((~sign).replicate(11), sign))
    return new, 1, {"total": new}


@_kernel({"x": signed(16)}, signed(16), first=(signed(16), -32768), second=(signed(16), -32768))
def second_best(m, x, first, second):
    best = _less(m, first, x)
    new = Mux(best, first, Mux(_less(m, second, x), x, second))[:16]
    return new, 1, {"first": Mux(best, x, first), "second": new}


@_kernel({"price": unsigned(16), "volume": unsigned(16)}, unsigned(48), best=unsigned(16), total=unsigned(48))
def best_volume(m, price, volume, best, total):
    better, equal = _less(m, best, price), best == price
    new = (Mux(better, 0, total) + Mux(better | equal, volume, 0))[:48]
    return new, 1, {"best": Mux(better, price, best), "total": new}


@_kernel({"x": signed(16)}, signed(28), mean=signed(28))
def smoothed(m, x, mean):
    new = (mean + ((x << 12) - mean >> 3))[:28]
    return new, 1, {"mean": new}


assert {*_MADE, "bins"} == {k.__name__.lower() for k in KERNELS}
