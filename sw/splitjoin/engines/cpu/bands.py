"""Source of the bounds of float conditions over both streams: compiled bisection, exact to the last bit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from splitjoin.lang.ir import Arith, Cast, Expr, Lit, Neg
from splitjoin.lang.schema import other_side
from splitjoin.lang.types import Float
from splitjoin.plan.keys import FloatKey
from splitjoin.plan.relations import FloatBand, coefficients

__all__ = ["bands_source"]

#: Values that are searched again if real arithmetic cannot place one of them.
_BLOCK = 256

#: Every step has an explicit type: numba widens narrow integers to 64 bits, whose vectors are slow.
_TEMPLATE = '''
@numba.njit(nogil=True)
def holds_{name}(v, code):
    k = np.{code}(np.{code}(code & np.{code}({below})) if code & np.{code}({top}) else np.{code}(~code)).view(np.{key})
    value = {value}
    return {met}


@numba.njit(nogil=True, error_model='numpy')
def guess_{name}(v):
    k = np.{key}({guess})
    bits = np.{code}(np.{key}(k + np.{key}(0)).view(np.{code}))  # the same for both zeros
    code = np.{code}(~bits) if bits & np.{code}({top}) else np.{code}(bits | np.{code}({top}))
    return code if k == k else np.{code}({nan})


@numba.njit(nogil=True)
def bisect_{name}(v, least, most, at_low):
    a, b = least, most
    while b - a > 1:
        middle = np.{code}(a + np.{code}((b - a) >> np.{code}(1)))
        if holds_{name}(v, middle) == at_low:
            a = middle
        else:
            b = middle
    return a, b


@numba.njit(nogil=True)
def place_{name}(values, lows, highs):
    least, most = np.{code}({low}), np.{code}({high})
    rough = np.{code}(0)
    for i in range(len(values)):
        # Monotone: true from the bottom up to some code, from some code to the top, everywhere or nowhere. Real
        # arithmetic tells where to look; if the truth changes there, it changes nowhere else. No branches.
        v = values[i]
        g = min(max(guess_{name}(v), least), most)
        below, above = np.{code}(g - np.{code}(g > least)), np.{code}(g + np.{code}(g < most))
        at_low, at_high = holds_{name}(v, below), holds_{name}(v, above)
        same = holds_{name}(v, g) == at_low
        a = g if same else below
        b = above if same else g
        off = at_low == at_high
        rough |= np.{code}(off)
        low, high = max(lows[i], least if at_low else b), min(highs[i], most if at_high else a)
        lows[i] = lows[i] if off else low
        highs[i] = highs[i] if off else high
    return rough


@numba.njit(nogil=True)
def search_{name}(values, lows, highs):
    least, most = np.{code}({low}), np.{code}({high})
    for i in range(len(values)):
        v = values[i]
        g = min(max(guess_{name}(v), least), most)
        below, above = np.{code}(g - np.{code}(g > least)), np.{code}(g + np.{code}(g < most))
        if holds_{name}(v, below) == holds_{name}(v, above):
            at_low, at_high = holds_{name}(v, least), holds_{name}(v, most)
            a, b = bisect_{name}(v, least, most, at_low) if at_low != at_high else (least, most)
            some = at_low or at_high
            lows[i] = max(lows[i], least if at_low else b) if some else np.{code}({full})
            highs[i] = min(highs[i], most if at_high else a) if some else np.{code}(0)
'''
_ALL = '''

@compiled
def {name}(values, lows, highs):
    for a in range(0, len(values), {block}):
        v, low, high = values[a:a + {block}], lows[a:a + {block}], highs[a:a + {block}]
{narrow}

@compiled
def {name}_keys(values, keys, lows, highs):
    lows[:] = np.{code}(0)
    highs[:] = np.{code}({full})
    for a in range(0, len(values), {block}):
        v, low, high, key = values[a:a + {block}], lows[a:a + {block}], highs[a:a + {block}], keys[a:a + {block}]
        for i in range(len(v)):
            bits = np.{own}(np.{real}(v[i] + np.{real}(0)).view(np.{own}))
            code = np.{own}(~bits) if bits & np.{own}({top}) else np.{own}(bits | np.{own}({top}))
            key[i] = code if v[i] == v[i] else np.{own}({nan})
{narrow}
'''


def bands_source(name: str, bands: Sequence[FloatBand], side: str, own: FloatKey, key: FloatKey) -> str:
    """Functions of the ``values`` (n,), floats without NULL of ``own``, which probes of stream ``side`` have.

    ``name(values, lows, highs)`` narrows bounds on the other stream's ``key`` to what all ``bands`` ask;
    ``name_keys(values, keys, lows, highs)`` writes the codes of the values, and these bounds.
    """
    halves = [FloatBand(band.expr, band.r, band.s, op, band.constant)
              for band in bands for op in (("<=", ">=") if band.op == "=" else (band.op,))]
    names = [f"{name}_{n}" for n in range(len(halves))]
    narrow = "".join(f"        if place_{half}(v, low, high):\n            search_{half}(v, low, high)\n"
                     for half in names)
    return "".join(_half_source(*half, side, key) for half in zip(names, halves, strict=True)) + _ALL.format(
        name=name, block=_BLOCK, narrow=narrow, code=f"uint{key.bits}", full=2**key.bits - 1, own=f"uint{own.bits}",
        real=f"float{own.bits}", top=2 ** (own.bits - 1), nan=1 if own.nan_low else 2**own.bits - 1)


def _half_source(name: str, band: FloatBand, side: str, key: FloatKey) -> str:
    """The functions ``place_name`` and ``search_name`` for a ``band`` of which one end is bounded."""
    by_r, by_s, rest = coefficients(band)
    mine, theirs = (by_r, by_s) if side == "r" else (by_s, by_r)
    assert isinstance(band.expr.type, Float)
    value = _expression(band.expr, band, {side: "v", other_side(side): "k"})
    met = f"value {band.op} {_number(band.constant, band.expr.type)}"
    if band.op in (">", ">="):  # NaN is greater than any constant
        met += " or value != value"
    bits = key.bits
    return _TEMPLATE.format(
        name=name, key=f"float{bits}", code=f"uint{bits}", nan=1 if key.nan_low else 2**bits - 1,
        top=2 ** (bits - 1), below=2 ** (bits - 1) - 1, full=2**bits - 1, value=value, met=met,
        low=key.low_code, high=key.high_code,
        guess=f"({_real(_threshold(band))} - {_real(rest)} - {_real(mine)} * np.float64(v)) / {_real(theirs)}")


def _threshold(band: FloatBand) -> float:
    """The real number at which the condition changes: the boundary between rounding to the last narrow float that meets
    it and to the next one.
    """
    inner = band.expr
    while isinstance(inner, Cast):
        inner = inner.a
    if not (isinstance(inner.type, Float) and inner.type.bits == 32):
        return band.constant
    rising = band.op in ("<=", ">")
    with np.errstate(over="ignore"):
        near = np.float32(band.constant)
        outward = np.float32(np.inf if rising else -np.inf)
        if (near > band.constant) if rising else (near < band.constant):
            near = np.nextafter(near, -outward)
        middle = (float(near) + float(np.nextafter(near, outward))) / 2
    return middle if math.isfinite(middle) else band.constant


def _expression(e: Expr, band: FloatBand, names: dict[str, str]) -> str:
    if e == band.r:
        return names["r"]
    if e == band.s:
        return names["s"]
    match e:
        case Lit():
            assert isinstance(e.type, Float)
            assert isinstance(e.value, (int, float))
            return _number(float(e.value), e.type)
        case Neg():
            return f"(-{_expression(e.a, band, names)})"
        case Cast():
            return f"np.float64({_expression(e.a, band, names)})"
        case Arith():
            assert isinstance(e.type, Float)
            return (f"np.float{e.type.bits}({_expression(e.a, band, names)} {e.op} "
                    f"{_expression(e.b, band, names)})")
    raise AssertionError(e)


def _number(value: float, type_: Float) -> str:
    return f"np.float{type_.bits}({_real(value)})"


def _real(value: float) -> str:
    if math.isfinite(value):
        return f"({float(value)!r})"
    return "np.nan" if math.isnan(value) else f"({'-' if value < 0 else ''}np.inf)"
