"""Comparison keys: one-sided values as unsigned integers whose order is the order of the values.

Code 0 stands for NULL, and for a tuple whose guard (a condition on its own stream) is not true: it lies outside every
interval that a probe can ask for. Keys of whole numbers are in `splitjoin.plan.linear`. Where a key of floats takes
part in arithmetic that falls as the key grows, NaN is placed below all values instead of above, so that every condition
still selects one interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.ir import Col, Expr
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Binary, plain

from .linear import Codes, ExactKey, WideKey, exact_key

__all__ = ["Codes", "ExactKey", "FloatKey", "Key", "PrefixKey", "TextKey", "Texts", "UnitKey", "WideKey", "exact_key",
           "float_codes", "float_values", "prefixes", "texts_of"]


@dataclass(frozen=True)
class FloatKey:
    """A float expression; NULL has a code of its own, so nullability takes no extra bit."""

    side: Side
    expr: Expr
    bits: int
    nan_low: bool
    nullable: bool = True

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.bits

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The floats, for every row."""
        return evaluate(self.expr, table)

    def encode(self, values: Vector) -> Codes:
        """Codes of values; those of NULL are meaningless."""
        return float_codes(values.values, self.bits, self.nan_low)

    @property
    def low_code(self) -> int:
        """The smallest code of a value."""
        if self.nan_low:
            return 1
        return int(float_codes(np.array([-np.inf], _float_dtype(self.bits)), self.bits, False)[0])

    @property
    def high_code(self) -> int:
        """The largest code of a value."""
        top = np.inf if self.nan_low else np.nan
        return int(float_codes(np.array([top], _float_dtype(self.bits)), self.bits, self.nan_low)[0])


#: Unsigned integers by their bits.
_WORDS: dict[int, Any] = {32: np.uint32, 64: np.uint64}


def _float_dtype(bits: int) -> type[np.float32] | type[np.float64]:
    return np.float32 if bits == 32 else np.float64


def float_codes(values: npt.NDArray[Any], bits: int, nan_low: bool) -> Codes:
    """Unsigned integers in SQL's order of the floats: −0.0 as 0.0, NaN above all, or 1 (below all) with ``nan_low``."""
    word = _WORDS[bits]
    with np.errstate(invalid="ignore"):  # of signalling NaN
        raw: Any = (values + values.dtype.type(0)).view(word)
    codes = (raw ^ (-(raw >> word(bits - 1)) | word(1 << (bits - 1)))).astype(np.uint64, copy=False)
    nan = np.isnan(values)
    return np.where(nan, np.uint64(1 if nan_low else 2**bits - 1), codes) if nan.any() else codes


def float_values(codes: Codes, bits: int, nan_low: bool) -> npt.NDArray[Any]:
    """The floats of codes; codes that stand for no float give NaN."""
    word = _WORDS[bits]
    narrow: Any = codes.astype(word, copy=False)
    values = (narrow ^ (((narrow >> word(bits - 1)) - word(1)) | word(1 << (bits - 1)))).view(_float_dtype(bits))
    nan = codes == np.uint64(1 if nan_low else 2**bits - 1)
    return np.where(nan, _float_dtype(bits)(np.nan), values)


class CodeKey:
    """A key whose values are its codes."""

    def encode(self, values: Vector) -> Codes:
        """The codes themselves."""
        return values.values.astype(np.uint64)


#: Width of a text's number in the session's dictionary.
_TEXT_BITS = 32


class Texts:
    """A session's dictionary of texts: equal texts get equal numbers, from 1, on both streams."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def codes(self, texts: pa.ChunkedArray) -> Codes:
        """The numbers of ``texts`` (n,), of type large_string or large_binary, new ones added; 0 for NULL."""
        encoded = texts.cast(pa.large_binary()).combine_chunks().dictionary_encode()
        known = self._known
        # The cost of a batch depends on its own distinct texts, not on the size of the dictionary.
        numbers = [known.setdefault(t, len(known) + 1) for t in encoded.dictionary.to_pylist()]
        index = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy()
        codes: Codes = np.array([*numbers, 0], np.uint64)[index]  # NULL's −1 is the last
        return codes


@dataclass(frozen=True)
class TextKey(CodeKey):
    """A text or binary, by its number in the session's dictionary: for equality only."""

    side: Side
    expr: Expr
    nullable: bool = True
    width: int = _TEXT_BITS

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The numbers, for every row."""
        codes = texts.codes(texts_of(self.expr, table))
        return Vector(codes, codes != 0)


#: Bytes of a text of any length that its key holds whole; a byte more holds the length or what follows.
_WHOLE = 7


@dataclass(frozen=True)
class PrefixKey(CodeKey):
    """A text or binary as a number in its order, by its first bytes; zeros stand where it is shorter.

    ``length``: the number of bytes that all values have; None where lengths differ. Then the key holds seven bytes, and
    in its last byte the length of a value that ends there, or else the next byte, coarsely.
    """

    side: Side
    expr: Expr
    length: int | None
    nullable: bool = True

    @property
    def exact(self) -> bool:
        """True if different values always have different codes."""
        return self.length is not None and self.length <= _WHOLE

    @property
    def bytes_(self) -> int:
        """The number of leading bytes that codes depend on, 1 to 8."""
        return 8 if self.length is None else min(8, max(1, self.length))

    @property
    def width(self) -> int:
        """Bits of a code."""
        return min(64, 8 * self.bytes_ + 1)

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The codes, for every row."""
        data = texts_of(self.expr, table)
        codes = prefixes(data, self.bytes_)
        valid = np.ones(len(data), np.bool_) if data.null_count == 0 else data.is_valid().to_numpy()
        if self.length is None:
            # 255 last bytes: lengths 0 to 7, and 247 ranges of the eighth byte.
            lengths = pc.fill_null(pc.binary_length(data), 0).to_numpy().astype(np.uint64)
            eighth = (codes & np.uint64(255)) * np.uint64(247) >> np.uint64(8)
            ending = np.where(lengths <= _WHOLE, lengths, np.uint64(8) + eighth)
            codes = (codes & ~np.uint64(255)) | ending
        # Code 0 is NULL's; of eight bytes, the last two values share a code.
        top = np.uint64(2**64 - 2)
        return Vector(np.minimum(codes, top) + np.uint64(1), valid)

    def is_whole(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """True for each of ``codes``, none of which stands for NULL, that a single value has."""
        if self.length is None:
            return ((codes - np.uint64(1)) & np.uint64(255)) <= _WHOLE
        whole: npt.NDArray[np.bool_] = np.full(len(codes), self.length <= 8) & (codes < np.uint64(2**64 - 1))
        return whole


def texts_of(e: Expr, table: pa.Table) -> pa.ChunkedArray:
    """The texts of ``e``, of type large_string or large_binary."""
    if isinstance(e, Col):
        return plain(table.column(e.name))
    v = evaluate(e, table)
    type_ = pa.large_binary() if isinstance(e.type, Binary) else pa.large_string()
    return pa.chunked_array([pa.array(v.values, type_, mask=~v.valid)], type_)


#: The bits of the first 0 to 8 bytes of a number.
_FIRST = np.array([2**64 - 2 ** (64 - 8 * n) for n in range(9)], np.uint64)


def prefixes(data: pa.ChunkedArray, n: int) -> Codes:
    """The first ``n`` bytes (1 to 8) of each value, the first one highest, 0 where there are none.

    ``data``: of type large_string or large_binary.
    """
    parts = [np.empty(0, np.uint64)]
    for chunk in data.chunks:
        _, offsets, content = chunk.buffers()
        ends = np.frombuffer(offsets, np.int64, chunk.offset + len(chunk) + 1)[chunk.offset:]
        size = content.size if content is not None else 0
        raw = np.zeros(size + 8, np.uint8)
        raw[:size] = np.frombuffer(content, np.uint8) if size else 0
        eight = np.ndarray((size + 1,), ">u8", raw, strides=(1,))  # the eight bytes from each byte on
        code = eight[ends[:-1]].astype(np.uint64)
        code &= _FIRST[np.clip(np.diff(ends), 0, n)]
        parts.append(code >> np.uint64(64 - 8 * n))
    return np.concatenate(parts)


@dataclass(frozen=True)
class UnitKey(CodeKey):
    """The key without a value: 1 if the tuple takes part, 0 if not."""

    side: Side
    nullable: bool = True
    width: int = 1

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """Values that are all present."""
        return Vector(np.ones(table.num_rows, np.uint64), np.ones(table.num_rows, np.bool_))


Key = Union[ExactKey, WideKey, FloatKey, PrefixKey, TextKey, UnitKey]
