"""Comparison keys of texts and binaries: their numbers in a session's dictionary, or their first bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..lang.eval.vector import Vector, evaluate
from ..lang.ir import Col, Expr
from ..lang.schema import Side
from ..lang.types import Binary, plain

__all__ = ["Codes", "PrefixKey", "TextKey", "Texts"]

Codes = npt.NDArray[np.uint64]

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
        # A batch costs its own distinct texts, however many are known.
        numbers = [known.setdefault(t, len(known) + 1) for t in encoded.dictionary.to_pylist()]
        index = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy()
        codes: Codes = np.array([*numbers, 0], np.uint64)[index]  # NULL's −1 is the last
        return codes


@dataclass(frozen=True)
class TextKey:
    """A text or binary, by its number in the session's dictionary: for equality only."""

    side: Side
    expr: Expr
    nullable: bool = True
    width: int = _TEXT_BITS

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The numbers, for every row."""
        codes = texts.codes(_texts(self.expr, table))
        return Vector(codes, codes != 0)

    def encode(self, values: Vector) -> Codes:
        """The numbers themselves."""
        return values.values.astype(np.uint64)


@dataclass(frozen=True)
class PrefixKey:
    """The first bytes of a text or binary as a number, in their order, zeros where it is shorter.

    ``exact``: all values have the same number of bytes, and all of them are in the key. Else different values may have
    equal codes.
    """

    side: Side
    expr: Expr
    bytes_: int
    exact: bool
    nullable: bool = True

    @property
    def width(self) -> int:
        """Bits of a code."""
        return min(64, 8 * self.bytes_ + 1)

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The codes, for every row."""
        data = _texts(self.expr, table)
        codes = _prefixes(data, self.bytes_)
        valid = np.ones(len(data), np.bool_) if data.null_count == 0 else data.is_valid().to_numpy()
        # Code 0 is NULL's; of eight bytes, the last two values share a code.
        top = np.uint64(2**64 - 2)
        return Vector(np.minimum(codes, top) + np.uint64(1), valid)

    def encode(self, values: Vector) -> Codes:
        """The codes themselves."""
        return values.values.astype(np.uint64)


def _texts(e: Expr, table: pa.Table) -> pa.ChunkedArray:
    """The texts of ``e``, of type large_string or large_binary."""
    if isinstance(e, Col):
        return plain(table.column(e.name))
    v = evaluate(e, table)
    type_ = pa.large_binary() if isinstance(e.type, Binary) else pa.large_string()
    return pa.chunked_array([pa.array(v.values, type_, mask=~v.valid)], type_)


def _prefixes(data: pa.ChunkedArray, n: int) -> Codes:
    """The first ``n`` bytes (1 to 8) of each value, the first one highest, 0 where there are none."""
    parts = [np.empty(0, np.uint64)]
    for chunk in data.chunks:
        _, offsets, content = chunk.buffers()
        ends = np.frombuffer(offsets, np.int64, chunk.offset + len(chunk) + 1)[chunk.offset:]
        raw = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(1, np.uint8)
        code = np.zeros(len(chunk), np.uint64)
        for i in range(n):
            at = ends[:-1] + i
            byte = np.where(at < ends[1:], raw[np.minimum(at, len(raw) - 1)], 0).astype(np.uint64)
            code = code << np.uint64(8) | byte
        parts.append(code)
    return np.concatenate(parts)
