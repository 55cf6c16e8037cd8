"""Sum tests of one pair: differences, their squares or absolute values or differing bits, the sum, and its limit."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from splitjoin.device.wire import Axis, Sum
from splitjoin.lang.sums import kept_bits

__all__ = ["sum_test"]

#: Bits whose differing ones are counted before the first register; `_count` is made for so many.
_COUNTED = 8


def sum_test(m: Module, name: str, test: Sum, keys: list[Value], places: list[Value], rest: Value | None,
             limit: Value | None) -> Value:
    """Whether ``test`` holds, `SUM_STAGES` cycles after keys and places.

    ``keys``, ``places``: of each axis. ``rest``: the key that is added, a cycle behind the keys but one (it comes with
    what the axes add); ``limit``: the probe's, at the same time.
    """
    values: list[Value] = []
    inside: list[Value] = []
    for n, (axis, key, place) in enumerate(zip(test.axes, keys, places, strict=True)):
        value, fits = _axis(m, f"{name}_{n}", axis, kept_bits(axis.kind, axis.bits, axis.shift, test.limit), key, place)
        values.append(value)
        if fits is not None:
            inside.append(fits)
    total = _added(values if rest is None else [*values, rest])
    below = total <= test.limit if limit is None else total < limit
    outcome = Signal(name=f"{name}_holds")
    met = reduce(and_, [*inside, below])
    m.d.sync += outcome.eq(~met if test.above else met)
    return outcome


def _axis(m: Module, name: str, axis: Axis, kept: int, key: Value, place: Value) -> tuple[Value, Value | None]:
    """What the axis adds, two cycles later, and whether it is no more than bits have been kept for."""
    if axis.kind == "differing":
        differing = key ^ place
        counts: list[Value] = []
        for at in range(0, axis.bits, _COUNTED):
            part = differing[at:at + _COUNTED]
            count = Signal(range(len(part) + 1), name=f"{name}_count{at}")
            m.d.sync += count.eq(_count(m, f"{name}_{at}", part))
            counts.append(count)
        value = Signal(range(axis.bits + 1), name=f"{name}_value")
        m.d.sync += value.eq(_added(counts))
        return value << axis.shift, None
    whole = Signal(axis.bits, name=f"{name}_whole")
    m.d.comb += whole.eq(key - place)
    difference = Signal(kept, name=f"{name}_difference")
    m.d.sync += difference.eq(whole)
    signed = difference.as_signed()
    if axis.kind == "square":
        value = Signal(2 * kept - 1, name=f"{name}_value")
        m.d.sync += value.eq(signed * signed)
    else:
        value = Signal(kept, name=f"{name}_value")
        m.d.sync += value.eq(Mux(difference[-1], -signed, signed))
    if kept == axis.bits:
        return value << axis.shift, None
    fits, later = Signal(name=f"{name}_fits"), Signal(name=f"{name}_fitted")
    upper = whole[kept - 1:]
    m.d.sync += [fits.eq((upper == 0) | upper.all()), later.eq(fits)]
    return value << axis.shift, later


def _added(values: list[Value]) -> Value:
    """Their sum, added up in pairs."""
    while len(values) > 1:
        pairs = [values[n] + values[n + 1] for n in range(0, len(values) - 1, 2)]
        values = pairs + values[2 * len(pairs):]
    return values[0]


def _count(m: Module, name: str, bits: Value) -> Value:
    """How many of up to eight bits are 1, in functions of four signals: of pairs, of what pairs make, of both."""
    bits = Cat(bits, Const(0, _COUNTED - len(bits)))
    pairs = [(bits[n], bits[n + 1]) for n in range(0, _COUNTED, 2)]
    ones, twos = Signal(3, name=f"{name}_ones"), Signal(3, name=f"{name}_twos")
    for n, (count, of) in enumerate(((ones, [a ^ b for a, b in pairs]), (twos, [a & b for a, b in pairs]))):
        four = Signal(4, name=f"{name}_four{n}")
        m.d.comb += [four.eq(Cat(of)), count.eq(_of_four(list(four)))]
    carry = ones[1] & twos[0]
    return Cat(ones[0], ones[1] ^ twos[0], ones[2] ^ twos[1] ^ carry,
               twos[2] | (ones[2] & twos[1]) | (carry & (ones[2] | twos[1])))


def _of_four(bits: list[Value]) -> Value:
    a, b, c, d = bits
    pairs = [x & y for n, x in enumerate(bits) for y in bits[n + 1:]]
    every = a & b & c & d
    return Cat(a ^ b ^ c ^ d, reduce(or_, pairs) & ~every, every)
