"""Keys of stored tuples and bounds of probes, as lanes for vector code: compiled, a few nanoseconds a tuple.

The same codes as `splitjoin.plan.encoding` computes with NumPy, which is called for what is not compiled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..lang.eval.vector import Vector, evaluate, magnitude
from ..lang.ir import MIRRORED, Col
from ..lang.schema import other_side
from ..plan.encoding import guard_holds
from ..plan.keys import ExactKey, FloatKey, Key, TextKey, Texts
from ..plan.linear import ExactRelation
from ..plan.plan import Plan
from ..plan.relations import EqualText, FloatBand, FloatOrder, Relation, Unit, interval
from .bands import band_source
from .encoding import exact_band, exact_bounds, exact_keys, float_keys32, float_keys64, ordered_bounds
from .jit import load

__all__ = ["LaneCoder", "Lanes", "lane"]

Array = npt.NDArray[Any]

#: Column types whose values need no conversion but to int64.
_INTEGERS = frozenset((pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()))
_FLOATS = frozenset((pa.float32(), pa.float64()))
_OP = {"<": -2, "<=": -1, "=": 0, ">=": 1, ">": 2}


def lane(key: Key) -> type[np.uint32] | type[np.uint64]:
    """The unsigned type in which codes of ``key`` are compared."""
    return np.uint32 if key.width <= 32 else np.uint64


@dataclass(frozen=True)
class Lanes:
    """Codes of n tuples of one stream, (n,) each: per slot a key; per test the bounds on the other stream's key, both
    included, empty where low > high. Unsigned, 32 bits where the key has no more, else 64.
    """

    keys: list[Array]
    lows: list[Array]
    highs: list[Array]


class LaneCoder:
    """Computes `Lanes` by ``plan``. Keeps the session's dictionary of texts."""

    def __init__(self, plan: Plan):
        self._plan = plan
        self._texts = Texts()
        self._lock = Lock()
        self._bands = self._compile()

    def codes(self, side: str, table: pa.Table) -> Lanes:
        """The codes of every row of ``table``, tuples of stream ``side``."""
        plan, other = self._plan, other_side(side)
        values, keys = [], []
        for slot in plan.slots(side):
            if isinstance(slot.key, TextKey):
                with self._lock:  # the dictionary is that of both streams
                    v = slot.key.values(table, self._texts)
            else:
                v = _values(slot.key, table, self._texts)
            if slot.guards:
                v = Vector(v.values, v.valid & guard_holds(slot.guards, table))
            values.append(v)
            keys.append(_keys(slot.key, v))
        lows, highs = [], []
        for j, test in enumerate(plan.tests):
            mine, theirs = (test.r, test.s) if side == "r" else (test.s, test.r)
            slot = plan.slots(other)[theirs]
            key = slot.key
            # Code 0, where it stands for NULL, lies in no interval.
            low = np.full(len(table), int(slot.null_code), lane(key))
            top = key.high - key.low + key.nullable if isinstance(key, ExactKey) else 2**key.width - 1
            high = np.full(len(table), top, lane(key))
            band = _band(test.relations, side, values[mine], plan.slots(side)[mine].key, key)
            if band:
                assert isinstance(key, ExactKey)
                exact_band(values[mine].values, values[mine].valid, *band, key.low, key.high, _offset(key), low, high)
            for n, relation in enumerate(test.relations if not band else ()):
                self._narrow((j, n, side), relation, values[mine], keys[mine], plan.slots(side)[mine].key, key, low,
                             high)
            lows.append(low)
            highs.append(high)
        return Lanes(keys, lows, highs)

    def _narrow(self, at: tuple[int, int, str], relation: Relation, v: Vector, codes: Array, mine: Key, key: Key,
                low: Array, high: Array) -> None:
        """Narrow the bounds ``low`` to ``high`` to what ``relation`` asks of the other stream's ``key``."""
        side = at[2]
        match relation:
            case FloatBand() if v.values.dtype.kind == "f":
                for function in self._bands[at]:
                    function(v.values, v.valid, low, high)
                return
            case ExactRelation() if v.values.dtype == np.int64:
                assert isinstance(key, ExactKey)
                if _fits(relation, side, v, mine, key):
                    exact_bounds(v.values, v.valid, *relation.factors(side), relation.c, _OP[relation.op], key.low,
                                 key.high, _offset(key), low, high)
                    return
            case FloatOrder() | EqualText():
                least = key.low_code if isinstance(key, FloatKey) else 1
                most = key.high_code if isinstance(key, FloatKey) else 2**key.width - 1
                op = relation.op if side == "s" else MIRRORED[relation.op]
                ordered_bounds(codes, v.valid, _OP[op], np.uint64(least), np.uint64(most), low, high)
                return
            case Unit():
                np.maximum(low, np.where(v.valid, 1, high), out=low, casting="unsafe")
                np.minimum(high, np.where(v.valid, 1, 0), out=high, casting="unsafe")
                return
        lows, highs = interval(relation, side, v, mine, key)
        np.maximum(low, np.where(v.valid, lows, np.uint64(2**key.width - 1)), out=low, casting="unsafe")
        np.minimum(high, np.where(v.valid, highs, np.uint64(0)), out=high, casting="unsafe")

    def _compile(self) -> dict[tuple[int, int, str], list[Any]]:
        """Per test, relation and probing stream the compiled bounds of a float band."""
        names: dict[tuple[int, int, str], list[str]] = {}
        sources = ["import numba\nimport numpy as np\n"]
        for j, test in enumerate(self._plan.tests):
            for n, relation in enumerate(test.relations):
                if not isinstance(relation, FloatBand):
                    continue
                for side, key in (("r", self._plan.slots_s[test.s].key), ("s", self._plan.slots_r[test.r].key)):
                    assert isinstance(key, FloatKey)
                    for op in ("<=", ">=") if relation.op == "=" else (relation.op,):
                        name = f"band{len(sources)}"
                        half = FloatBand(relation.expr, relation.r, relation.s, op, relation.constant)
                        sources.append(band_source(name, half, side, key))
                        names.setdefault((j, n, side), []).append(name)
        if not names:
            return {}
        module = load("".join(sources))
        return {at: [getattr(module, name) for name in functions] for at, functions in names.items()}


def _band(relations: tuple[Relation, ...], side: str, v: Vector, own: Key, key: Key) -> tuple[int, int, int] | None:
    """The factor and the constants of `exact_band`, if ``relations`` are a lower and an upper bound of such a form."""
    ends: dict[str, tuple[int, int]] = {}
    for relation in relations:
        if not (isinstance(relation, ExactRelation) and isinstance(key, ExactKey) and v.values.dtype == np.int64
                and _fits(relation, side, v, own, key)):
            return None
        mine, theirs = relation.factors(side)
        if abs(theirs) != 1:
            return None
        ends[relation.op if theirs == 1 else MIRRORED[relation.op]] = mine * theirs, relation.c * theirs
    if len(relations) != 2 or ends.keys() != {"<=", ">="} or ends["<="][0] != ends[">="][0]:
        return None
    return ends["<="][0], ends[">="][1], ends["<="][1]


def _fits(relation: ExactRelation, side: str, v: Vector, own: Key, key: ExactKey) -> bool:
    """True if all intermediate results fit 64 bits."""
    mine, theirs = relation.factors(side)
    if key.low < -(2**63) or key.high >= 2**63 or abs(theirs) >= 2**62:
        return False
    # The range of the values usually suffices, without a look at the values.
    if isinstance(own, ExactKey) and max(-own.low, own.high) * abs(mine) + abs(relation.c) < 2**62:
        return True
    return magnitude(v.values) * abs(mine) + abs(relation.c) < 2**62


def _offset(key: ExactKey) -> np.uint64:
    return np.uint64((key.nullable - key.low) % 2**64)


def _values(key: Key, table: pa.Table, texts: Texts) -> Vector:
    plain = _plain_column(key, table)
    if plain is not None:
        return plain
    if isinstance(key, ExactKey) and len(key.terms) == 1 and key.terms[0].factor == key.terms[0].scale == 1:
        v = evaluate(key.terms[0].expr, table)  # nothing to add up
        if v.values.dtype in (np.int64, np.bool_):
            return Vector(v.values.astype(np.int64, copy=False), v.valid)
    return key.values(table, texts)


def _plain_column(key: Key, table: pa.Table) -> Vector | None:
    """The values of ``key``, if it is a column of numbers that is there as they are computed with: in a tenth of the
    time, which counts for small batches.
    """
    if isinstance(key, ExactKey):
        if len(key.terms) > 1 or not key.terms[0].factor == key.terms[0].scale == 1:
            return None
        e, types = key.terms[0].expr, _INTEGERS
    elif isinstance(key, FloatKey):
        e, types = key.expr, _FLOATS
    else:
        return None
    if not isinstance(e, Col):
        return None
    data = table.column(e.name)
    if data.type not in types or data.null_count:
        return None
    values = data.to_numpy()
    return Vector(values.astype(np.int64) if types is _INTEGERS else values, np.ones(len(values), np.bool_))


def _keys(key: Key, v: Vector) -> Array:
    keys = np.empty(len(v.values), lane(key))
    if isinstance(key, ExactKey) and v.values.dtype == np.int64:
        exact_keys(v.values, v.valid, _offset(key), keys)
    elif isinstance(key, FloatKey) and v.values.dtype.kind == "f":
        nan = 1 if key.nan_low else 2**key.bits - 1
        if key.bits == 32:
            float_keys32(v.values, v.values.view(np.uint32), v.valid, np.uint32(nan), keys)
        else:
            float_keys64(v.values, v.values.view(np.uint64), v.valid, np.uint64(nan), keys)
    else:
        keys[:] = np.where(v.valid, key.encode(v), np.uint64(0))
    return keys
