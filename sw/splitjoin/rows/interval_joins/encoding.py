"""Tuples as numbers: the codes of their keys, and the numbers that engines fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.arrays import Array, Ints, Mask
from splitjoin.engines.compiled.jit import compiled
from splitjoin.engines.sorting import ordered_bits
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.fold import Width
from splitjoin.lang.ir import Col, Expr
from splitjoin.lang.properties import denominator
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Float, is_exact, is_text

from ..aggregates.user_values import argument_numbers
from .form import Feed, IntervalForm

_MIN_TABLE = 1 << 10


@dataclass(frozen=True)
class EncodedRows:
    """Tuples of one stream: ``keys`` int64 (n,), −1 for a tuple that meets nothing; for S also ``values`` int64
    (feeds, n) and ``valid`` uint8 (feeds, n).
    """

    keys: Ints
    values: Ints
    valid: npt.NDArray[np.uint8]


class IntervalEncoder:
    """Encodes tuples of both streams of ``form``. Codes count the different keys, in order of their first tuples."""

    def __init__(self, form: IntervalForm):
        self._form = form
        self._parts = [_Codes() for _ in form.keys]
        self._pairs = [_Codes() for _ in form.keys[1:]]  # of the code so far and the next part's

    @property
    def codes(self) -> int:
        """The number of codes so far."""
        return 1 if not self._parts else len((self._pairs or self._parts)[-1])

    def encode(self, side: Side, table: pa.Table) -> EncodedRows:
        """The ``table`` of stream ``side`` in numbers."""
        n = len(table)
        with np.errstate(all="ignore"):
            found = np.zeros(n, np.int64)
            meets = np.ones(n, np.bool_)
            for term in self._form.selections[side]:
                v = evaluate(term, table)
                meets &= v.valid & v.values.astype(np.bool_)
            for at, (key, codes) in enumerate(zip(self._form.keys, self._parts, strict=True)):
                part, present = _key_codes(key[side == "s"], key, codes, table)
                meets &= present
                found = part if at == 0 else self._pairs[at - 1].of(found << 32 | part)
            keys = found if meets.all() else np.where(meets, found, -1)
            feeds = self._form.feeds if side == "s" else ()
            values, valid = np.empty((len(feeds), n), np.int64), np.empty((len(feeds), n), np.uint8)
            for at, feed in enumerate(feeds):
                values[at], valid[at] = _fed(feed, table)
        return EncodedRows(keys, values, valid)


class _Codes:
    """Codes from 0 of different values: of int64 in a table, of others in a dictionary."""

    def __init__(self) -> None:
        self._keys = np.zeros(_MIN_TABLE, np.int64)
        self._codes = np.full(_MIN_TABLE, -1, np.int64)
        self._others: dict[Any, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, values: Ints) -> Ints:
        """The codes of whole numbers."""
        values = np.ascontiguousarray(values)
        out = np.empty(len(values), np.int64)
        done = 0
        while done < len(values):
            done, self._count = _codes_of(values, done, self._keys, self._codes, self._count, out)
            if done < len(values):
                self._keys, self._codes = _grown(self._keys, self._codes)
        return out

    def of_objects(self, values: Sequence[Any]) -> Ints:
        """The codes of other values; whole numbers that fit have those of `of`."""
        out = np.empty(len(values), np.int64)
        for at, value in enumerate(values):
            if isinstance(value, int) and -(2**63) <= value < 2**63:
                out[at] = self.of(np.array([value]))[0]
                continue
            code = self._others.get(value)
            if code is None:
                code = self._others[value] = self._count
                self._count += 1
            out[at] = code
        return out


def _key_codes(e: Expr, key: tuple[Expr, Expr], codes: _Codes, table: pa.Table) -> tuple[Ints, Mask]:
    """The codes of the values of ``e``, one side of ``key``, and False where they are NULL."""
    if is_text(e.type) and isinstance(e, Col):
        encoded = table.column(e.name).combine_chunks()
        encoded = (encoded if isinstance(encoded, pa.Array) else pa.concat_arrays(encoded.chunks)).dictionary_encode()
        valid = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
        each = codes.of_objects(encoded.dictionary.to_pylist())
        at = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return (each[at] if len(each) else np.zeros(len(at), np.int64)), valid
    v = evaluate(e, table)
    if v.values.dtype.kind == "f":
        return codes.of(ordered_bits(v.values.astype(np.float64))), v.valid
    if v.values.dtype == object or v.values.dtype == np.uint64 or is_exact(e.type):
        values, per = v.values, math.lcm(*map(denominator, key)) // v.denominator
        if is_exact(e.type) and (per > 1 or values.dtype == np.uint64):
            values = values.astype(object) * per
        if values.dtype == object:
            unique = dict.fromkeys(values.tolist())
            of = dict(zip(unique, codes.of_objects(list(unique)).tolist(), strict=True))
            return np.array([of[value] for value in values.tolist()], np.int64), v.valid
        return codes.of(values), v.valid
    return codes.of(v.values.astype(np.int64)), v.valid


def _fed(feed: Feed, table: pa.Table) -> tuple[Ints, Array]:
    """The numbers of ``feed`` of each tuple, and where they are valid: 2 for an argument outside of its width."""
    valid = np.ones(len(table), np.bool_)
    if feed.also is not None:
        valid &= evaluate(feed.also, table).valid
    v: Vector = evaluate(feed.value, table)
    if feed.width is not None:
        whole, outside = _argument(v, feed.width)
        for e, width in feed.beside:
            other = evaluate(e, table)
            outside, valid = outside | _argument(other, width)[1], valid & other.valid
        return whole, np.where(valid & v.valid, np.where(outside, 2, 1), 0)
    valid &= v.valid
    if feed.mode == "valid":
        return np.zeros(len(table), np.int64), valid
    if isinstance(feed.value.type, Float):
        numbers = v.values.astype(np.float64)
        return (ordered_bits(numbers) if feed.mode == "order" else numbers.view(np.int64)), valid
    per = denominator(feed.value) // v.denominator if is_exact(feed.value.type) else 1
    return np.where(valid, v.values, 0).astype(np.int64) * per, valid


def _argument(v: Vector, width: Width) -> tuple[Ints, Mask]:
    """The whole numbers of an argument of a user-defined aggregate, and which are outside of ``width`` or of int64."""
    numbers, outside = argument_numbers(width, v)
    outside = outside | (numbers >= 2**63)
    return np.where(outside | ~v.valid, 0, numbers).astype(np.int64), outside & v.valid


def _grown(keys: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """A table of twice the size with the same contents."""
    new_keys, new_codes = np.zeros(2 * len(keys), np.int64), np.full(2 * len(keys), -1, np.int64)
    _moved(keys, codes, new_keys, new_codes)
    return new_keys, new_codes


@compiled
def _codes_of(values: Any, done: Any, keys: Any, codes: Any, count: Any, out: Any) -> Any:
    """Write the codes of ``values`` from ``done`` on, until the table must grow; how many are done, and the count."""
    mask = len(keys) - 1
    for i in range(done, len(values)):
        if 2 * count >= len(keys):
            return i, count
        value = values[i]
        at = (value * np.int64(-7046029254386353131) >> np.int64(20)) & mask
        while codes[at] >= 0 and keys[at] != value:
            at = (at + 1) & mask
        if codes[at] < 0:
            keys[at], codes[at] = value, count
            count += 1
        out[i] = codes[at]
    return len(values), count


@compiled
def _moved(keys: Any, codes: Any, new_keys: Any, new_codes: Any) -> None:
    mask = len(new_keys) - 1
    for i in range(len(keys)):
        if codes[i] >= 0:
            at = (keys[i] * np.int64(-7046029254386353131) >> np.int64(20)) & mask
            while new_codes[at] >= 0:
                at = (at + 1) & mask
            new_keys[at], new_codes[at] = keys[i], codes[i]
