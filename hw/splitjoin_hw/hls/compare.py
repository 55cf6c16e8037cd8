"""Comparators of one width, pipelined as deeply as the clock requires."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value

from splitjoin.circuit.schedule import parts

from ..tech.order import order_of

__all__ = ["Comparison"]


class Comparison:
    """Pipelined comparator of keys of ``width`` bits with bounds: ``chain`` bits per cycle, the lowest first.

    Each part but the first takes the outcome of the previous part, a cycle old, as one more bit below its own, which
    decides if its own bits are equal. So key and bound of a part are needed a cycle later than those of the previous
    part.
    """

    ends = ("lo", "hi")

    def __init__(self, built_for: str, width: int, chain: int):
        self._sizes = parts(width, chain)
        self._orders = [order_of(built_for, size + (n > 0)) for n, size in enumerate(self._sizes)]

    @property
    def cycles(self) -> int:
        """Cycles from the codes of the first part to the outcome: one per part."""
        return len(self._sizes)

    def keys(self, value: Value) -> list[Value]:
        """The codes of a key, one per part."""
        return [order.key(part) if n == 0 else order.key(Cat(Const(0), part))[1:]
                for n, (order, part) in enumerate(zip(self._orders, self._split(value), strict=True))]

    def bounds(self, value: Value) -> list[Value]:
        """The codes of a bound, one per part."""
        return [order.bound(part) if n == 0 else order.bound(Cat(Const(0), part))[1:]
                for n, (order, part) in enumerate(zip(self._orders, self._split(value), strict=True))]

    def within(self, m: Module, name: str, keys: list[Value], lows: list[Value], highs: list[Value]) -> Value:
        """True if a key is within its bounds; the AND of two registers."""
        above: Signal | None = None
        below: Signal | None = None
        for n, (order, key, low, high) in enumerate(zip(self._orders, keys, lows, highs, strict=True)):
            place = f"{name}_{n}" if n else name
            over, under = (Signal(name=f"{name}{place}", reset_less=True) for name in ("above", "below"))
            if above is not None and below is not None:
                # The lowest bit of a number is also that of its code, so one bit more below key and bound carries the
                # previous outcome: (key, it) >= (bound, 1), and (key, 1) <= (bound, it).
                key_over, low, key_under, high = Cat(above, key), Cat(Const(1), low), Cat(Const(1), key), Cat(below,
                                                                                                            high)
            else:
                key_over = key_under = key
            m.d.sync += [over.eq(order.above(m, f"ge{place}", key_over, low)),
                         under.eq(order.below(m, f"le{place}", key_under, high))]
            above, below = over, under
        assert above is not None and below is not None
        return above & below

    def _split(self, value: Value) -> list[Value]:
        found, at = [], 0
        for size in self._sizes:
            found.append(value[at:at + size])
            at += size
        return found
