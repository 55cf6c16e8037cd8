"""The batches of a put: measured before Arrow unpacks them, and checked in full before a stream takes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, first_line
from splitjoin.base.ipc import translated, validated
from splitjoin.base.memory import size_text
from splitjoin.lang.schema import Side
from splitjoin.tables.inputs import as_batch

from .config import Limits
from .messages import FlightData, StatedMessage, encapsulated, parse_data, stated


class Put:
    """A put of one client: its descriptor, and its batches as an iterator, None for a message without one.

    Raises `InputError` for what is no such message or damaged, and for what is beyond ``limits``. Holds the schema and
    the dictionaries that apply, beside the batch at hand.
    """

    def __init__(self, requests: Iterator[bytes], limits: Limits):
        self._requests, self._limits = requests, limits
        first = next(requests, None)
        data = parse_data(first or b"")
        self.descriptor = data.descriptor
        if not len(data.header) or stated(data).kind != "schema":
            raise InputError("a put must begin with a schema, and the first message has none")
        self._schema = encapsulated(data)
        self._dictionaries = dict[int, tuple[int, bytes]]()  # by number: size, once unpacked too, and the message

    def check(self, side: Side, schema: pa.Schema) -> None:
        """Raise `InputError` and `SchemaError` unless batches of the put's schema may be pushed to a stream of
        ``schema``: values of other types are not even read.
        """
        try:
            with translated():
                given = pa.ipc.read_schema(pa.py_buffer(self._schema))
                _ = given.names  # raises for names that are not in UTF-8
                empty = pa.Table.from_arrays([pa.nulls(0, field.type) for field in given], schema=given)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"a put must begin with a valid schema, but {first_line(error)}") from None
        as_batch(empty, side, schema)

    def __iter__(self) -> Iterator[pa.RecordBatch | None]:
        for message in self._requests:
            data = parse_data(message)
            if not len(data.header):
                yield None
                continue
            found = stated(data)
            if found.kind == "dictionary":
                self._keep(found, data)
            elif found.kind == "batch":
                self._check(found.rows, found.size + sum(size for size, _ in self._dictionaries.values()))
                yield self._read(data)
            else:
                raise InputError("a put has one schema, its first message; for another one begin another put")

    def _keep(self, found: StatedMessage, data: FlightData) -> None:
        if found.is_delta:
            raise InputError("a put must not add to dictionaries, but replace them; write without dictionary deltas")
        self._dictionaries.pop(found.dictionary, None)
        size = max(found.size, len(data.header) + len(data.body))  # what is kept, which may be more than it states
        self._check(0, size + sum(size for size, _ in self._dictionaries.values()))
        self._dictionaries[found.dictionary] = size, encapsulated(data)

    def _read(self, data: FlightData) -> pa.RecordBatch:
        stream = b"".join((self._schema, *(message for _, message in self._dictionaries.values()), encapsulated(data)))
        try:
            with translated(), pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
                batch = validated(reader.read_next_batch())
        except (pa.ArrowException, OSError, StopIteration) as error:
            raise InputError(f"a batch must be valid data of Arrow, but {first_line(error) or 'it is damaged'}; it was "
                             f"not taken, nor what comes behind it") from None
        self._check(len(batch), sum(map(_size, batch.columns)))
        return batch

    def _check(self, rows: int, size: int) -> None:
        """Raise `InputError` for a batch of too many rows or bytes."""
        if rows > self._limits.put_rows:
            raise InputError(f"a batch must have at most {self._limits.put_rows:,} rows (put_rows of [limits]), but "
                             f"one has {rows:,}; put smaller ones")
        if size > self._limits.put_size:
            raise InputError(f"a batch must have at most {size_text(self._limits.put_size)} once it is unpacked "
                             f"(put_bytes of [limits]), but one has {size_text(size)}; put smaller ones")


def _size(column: pa.Array) -> int:
    """The bytes of the values of ``column``, once for each row, also where a dictionary, runs or views share them."""
    if pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type) or _is_view(column.type):
        return int(_lengths(column).sum())
    return int(column.nbytes)


def _lengths(column: pa.Array) -> Ints:
    """The bytes of each value of ``column``."""
    if pa.types.is_dictionary(column.type):
        return np.asarray(_lengths(column.dictionary)[column.indices.drop_null().to_numpy()], np.int64)
    if pa.types.is_run_end_encoded(column.type):
        ends = np.minimum(column.run_ends.to_numpy().astype(np.int64), column.offset + len(column))
        return np.asarray(_lengths(column.values) * np.diff(ends, prepend=0), np.int64)
    if _is_view(column.type):  # each has its length in the first of four words
        words = np.frombuffer(column.buffers()[1], np.int32)[::4]
        return words[column.offset:column.offset + len(column)].astype(np.int64)
    if any(test(column.type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
                                          pa.types.is_large_binary)):
        return np.asarray(pc.binary_length(column).fill_null(0), np.int64)
    return np.full(len(column), -(-column.nbytes // max(len(column), 1)), np.int64)


def _is_view(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(type_) or pa.types.is_binary_view(type_))
