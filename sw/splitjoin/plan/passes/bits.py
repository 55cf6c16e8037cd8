"""Bits in which values of both streams differ: their normal form, and comparisons of it.

``R ^ S``, with R of one stream and S of the other, is the normal form. Masks, shifts and remainders by powers of two
act on each part alone, so ``(r.q ^ s.p) & 255`` becomes ``(r.q & 255) ^ (s.p & 255)``.

``R ^ S = k`` is the equality ``R = S ^ k``. The numbers from m·2^i to m·2^i + 2^i − 1 are a *block*: ``R ^ S`` is one
of them exactly if ``R >> i = (S >> i) ^ m``. Every interval of numbers is a union of few blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from splitjoin.lang.ir import Arith, Call, Cmp, Expr, Lit, Or, sides
from splitjoin.lang.properties import value_range
from splitjoin.lang.types import BOOL, EXACT

#: The most equalities that one comparison becomes.
_MOST_BLOCKS = 8


def apart(e: Expr) -> tuple[Expr, Expr] | None:
    """The parts of ``e``, of R and of S, if it has the normal form."""
    if not (isinstance(e, Call) and e.op == "^"):
        return None
    a, b = e.args
    if len(sides(a)) != 1 or len(sides(b)) != 1 or sides(a) == sides(b):
        return None
    return (a, b) if sides(a) == {"r"} else (b, a)


def parted(e: Arith | Call) -> Expr:
    """``e``, whose operands are in normal form, in normal form too, if it has one; else ``e`` itself."""
    if len(sides(e)) < 2 or len(e.children) < 2 or apart(e) is not None:
        return e
    a, b = e.children
    if isinstance(e, Call) and apart(a) is None:  # operations on bits are commutative
        a, b = b, a
    both = apart(a)
    if both is None:
        return e
    if isinstance(e, Call) and e.op == "^":
        other = apart(b) or ((b, None) if sides(b) == {"r"} else (None, b) if len(sides(b)) < 2 else None)
        return e if other is None else replace(e, args=tuple(
            one if more is None else replace(e, args=(one, more)) for one, more in zip(both, other, strict=True)))
    if not (isinstance(b, Lit) and isinstance(b.value, int)):
        return e
    if isinstance(e, Call):
        return _masked(e, both, b.value)
    # Remainders and quotients by powers of two, and shifts to the right.
    assert isinstance(a, Call)
    is_power, down = b.value > 0 and b.value & (b.value - 1) == 0, value_range(a)[0] >= 0
    if is_power and (e.op == "%" or (e.op == "mod" and down)):
        return _masked(replace(a, op="&"), both, b.value - 1)
    places = b.value if e.op == ">>" else b.value.bit_length() - 1
    if e.op == ">>" or (is_power and (e.op == "//" or (e.op == "div" and down))):
        return replace(a, args=tuple(_shifted(x, places) for x in both))
    return e


def _masked(e: Call, both: tuple[Expr, Expr], mask: int) -> Expr:
    """``e``, ``&`` or ``|`` of ``both`` parts' difference and ``mask``."""
    r, s = (replace(e, op="&", args=(x, Lit(EXACT, mask if e.op == "&" else ~mask))) for x in both)
    return replace(e, op="^", args=(r, s if e.op == "&" else replace(e, op="^", args=(s, Lit(EXACT, mask)))))


def _shifted(e: Expr, places: int) -> Expr:
    return Arith(EXACT, ">>", e, Lit(EXACT, places)) if places else e


def equal_bits(e: Call, value: Expr) -> Cmp | None:
    """``e = value`` for ``e`` in normal form and ``value`` of one stream or constant, as an equality of two parts."""
    both = apart(e)
    if both is None or len(sides(value)) > 1:
        return None
    r, s = both
    if value == Lit(EXACT, 0):
        return Cmp(BOOL, "=", r, s)
    if sides(value) == {"r"}:
        return Cmp(BOOL, "=", replace(e, args=(r, value)), s)
    return Cmp(BOOL, "=", r, replace(e, args=(s, value)))


def within_blocks(e: Call, low: int, high: int) -> tuple[Expr, bool] | None:
    """``low <= e <= high`` for ``e`` in normal form, as equalities of which one must be true, and True; False if these
    are true for more numbers near the ends, too. None if they would be true for all.
    """
    both = apart(e)
    if both is None:
        return None
    least, most = (int(x) for x in value_range(e))  # ends of blocks
    low, high = max(low, least), min(high, most)
    for shift in range((most - least).bit_length()):
        first, last = low >> shift << shift, ((high >> shift) + 1 << shift) - 1
        blocks = list(_blocks(first, last))
        if len(blocks) > _MOST_BLOCKS:
            continue
        found = tuple(equal_bits(replace(e, args=tuple(_shifted(x, places) for x in both)), Lit(EXACT, block))
                      for block, places in blocks)
        equalities = tuple(cmp for cmp in found if cmp is not None)
        return (equalities[0] if len(equalities) == 1 else Or(BOOL, equalities)), (first, last) == (low, high)
    return None


def _blocks(low: int, high: int) -> Iterator[tuple[int, int]]:
    """The fewest blocks (m, i) that hold the numbers from ``low`` to ``high`` and no others."""
    while low <= high:
        places = 0
        while low % (2 << places) == 0 and low + (2 << places) - 1 <= high:
            places += 1
        yield low >> places, places
        low += 1 << places
