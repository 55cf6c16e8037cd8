"""Sum tests of one pair: squared or absolute differences, or numbers of differing bits, are added up and compared."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from splitjoin.circuit.wire import Axis, Sum
from splitjoin.hls.delays import FACTOR

#: Bits of which the differing ones are counted before the first register; `_count` takes as many.
_COUNTED = 8


def sum_test(m: Module, name: str, test: Sum, keys: list[Value], places: list[Value], rest: Value | None,
             limit: Value | None, *, apart: bool = False) -> Value:
    """The outcome of ``test``, `SUM_STAGES` cycles after keys and places. ``apart`` adds `Sum.further` cycles, as each
    addition has a cycle of its own, and the comparison another.

    ``keys``, ``places``: one per axis. ``rest``: the key to be added, in the cycle of the axes' terms. ``limit``: that
    of the probe, in the cycle of the comparison.
    """
    values: list[Value] = []
    inside: list[Value] = []
    for n, (axis, key, place) in enumerate(zip(test.axes, keys, places, strict=True)):
        value, fits = _axis(m, f"{name}_{n}", axis, test.kept(axis), key, place, apart=apart, wide=test.wide)
        values.append(value)
        if fits is not None:
            inside.append(fits)
    values += [] if rest is None else [rest]
    for n in range(test.additions if apart else 0):
        values = [_registered(m, f"{name}_added{n}_{at}", value) for at, value in enumerate(_pairs(values))]
        inside = [_registered(m, f"{name}_inside{n}", reduce(and_, inside))] if inside else []
    total = _added(values)
    below = total <= test.limit if limit is None else total < limit
    outcome = Signal(name=f"{name}_holds")
    met = reduce(and_, [*inside, below])
    m.d.sync += outcome.eq(~met if test.above else met)
    return outcome


def _axis(m: Module, name: str, axis: Axis, kept: int, key: Value, place: Value, *, apart: bool,
          wide: bool) -> tuple[Value, Value | None]:
    """The term of one axis, two cycles later, and a flag that it fits into the kept bits, or None.

    With ``apart`` the term of a ``wide`` sum is three cycles late, and the bits that are not kept are checked in the
    cycle after that of the difference.
    """
    def later(value: Value, part: str) -> Value:
        return _registered(m, f"{name}_{part}", value) if apart and wide else value

    if axis.kind == "differing":
        return later(_differing(m, name, axis, key ^ place), "later") << axis.shift, None
    whole = Signal(axis.bits, name=f"{name}_whole")
    m.d.comb += whole.eq(key - place)
    difference = _registered(m, f"{name}_difference", whole[:kept])
    signed = difference.as_signed()
    if axis.kind == "square" and apart and kept > FACTOR:
        value = _square(m, name, signed)
    elif axis.kind == "square":
        value = Signal(2 * kept - 1, name=f"{name}_value")
        m.d.sync += value.eq(signed * signed)
        value = later(value, "later")
    else:
        value = Signal(kept, name=f"{name}_value")
        m.d.sync += value.eq(Mux(difference[-1], -signed, signed))
        value = later(value, "later")
    if kept == axis.bits:
        return value << axis.shift, None
    if apart:
        upper = Cat(difference[-1], _registered(m, f"{name}_upper", whole[kept:]))
        return value << axis.shift, later(_registered(m, f"{name}_fits", _alike(upper)), "fitted")
    fits = _registered(m, f"{name}_fits", _alike(whole[kept - 1:]))
    return value << axis.shift, _registered(m, f"{name}_fitted", fits)


def _alike(bits: Value) -> Value:
    return (bits == 0) | bits.all()


def _differing(m: Module, name: str, axis: Axis, differing: Value) -> Value:
    """The number of 1 bits in ``differing``, two cycles later."""
    counts: list[Value] = []
    for at in range(0, axis.bits, _COUNTED):
        part = differing[at:at + _COUNTED]
        count = Signal(range(len(part) + 1), name=f"{name}_count{at}")
        m.d.sync += count.eq(_count(m, f"{name}_{at}", part))
        counts.append(count)
    value = Signal(range(axis.bits + 1), name=f"{name}_value")
    m.d.sync += value.eq(_added(counts))
    return value


def _square(m: Module, name: str, signed: Value) -> Value:
    """The square of a number with more bits than a multiplier takes, two cycles later.

    (u · 2^h + v)² = u² · 2^2h + v² + u · v · 2^(h + 1), of which the first two terms do not overlap.
    """
    half = FACTOR - 1
    lower, upper = Cat(signed[:half], Const(0, 1)).as_signed(), signed[half:].as_signed()
    squares = Cat(_registered(m, f"{name}_lower", (lower * lower)[:2 * half]),
                  _registered(m, f"{name}_upper_square", (upper * upper)[:2 * len(upper) - 1]))
    product = _registered(m, f"{name}_product", lower * upper).as_signed()
    value = Signal(2 * len(signed) - 1, name=f"{name}_value")
    m.d.sync += value.eq(squares + (product << half + 1))
    return value


def _registered(m: Module, name: str, value: Value) -> Value:
    register = Signal(len(value), name=name)
    m.d.sync += register.eq(value)
    return register


def _added(values: list[Value]) -> Value:
    """The sum of ``values``, by a tree of adders."""
    while len(values) > 1:
        values = _pairs(values)
    return values[0]


def _pairs(values: list[Value]) -> list[Value]:
    """The sums of each two of ``values``; an odd last one is left as it is."""
    pairs = [values[n] + values[n + 1] for n in range(0, len(values) - 1, 2)]
    return pairs + values[2 * len(pairs):]


def _count(m: Module, name: str, bits: Value) -> Value:
    """The number of 1 bits among up to eight, by functions of four signals each."""
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
