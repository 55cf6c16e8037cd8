"""Test vectors of a circuit: records, settings, and the golden model's answer as items on the wire."""

from __future__ import annotations

import decimal
import json
import random
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Column, Schema
from splitjoin.lang.types import Binary, Bool, Date, Decimal, Duration, Float, Int, String, Timestamp, Type

from ..encode import Encoder, Words
from ..lowering import device_order, longest_range
from ..query_circuit import QueryCircuit
from ..registers import REGISTERS
from ..sources import SourceQueues, Sources
from ..wire import Configuration
from .expected import expected_items

#: Values of columns without a range: few, so that tuples match.
_VALUES = 24
_WORDS = ("", "ant", "bee", "cat", "cow", "dog")
#: Share of NULL in columns that may hold it.
_NULLS = 0.1


@dataclass(frozen=True)
class Vectors:
    """Stimulus for a circuit after its reset, and the expected answer.

    Attributes:
        abi: The ABI hash that the circuit must have.
        order: The kind of the order that the circuit keeps.
        ordered: True if the items come in exactly this sequence: in order ``total``, and where states leave whole.
            Otherwise only the items are certain, and that END is the last one.
        writes: (word address, word) of each register to write before the first record.
        records: The records to send, FLUSH last, as integers of `Configuration.input_record`. Of several sources, those
            of source 0 come first, each source's with a FLUSH of its own.
        items: The items to receive, END last, as integers of `Configuration.item_record`.
        sources: The source that sends each record, which never falls.
    """

    abi: int
    order: str
    ordered: bool
    writes: list[tuple[int, int]]
    records: list[int]
    items: list[int]
    sources: list[int]

    def json(self) -> str:
        """The vectors as JSON. Records and items are hexadecimal texts, as they may exceed 64 bits."""
        plain = asdict(self) | {"abi": f"{self.abi:016x}", "records": [f"{n:x}" for n in self.records],
                                "items": [f"{n:x}" for n in self.items]}
        return json.dumps(plain) + "\n"


def vectors(query: Query, circuit: QueryCircuit, incoming: Arrivals) -> Vectors:
    """The vectors for ``incoming`` tuples of ``query`` on its ``circuit``.

    Where the host verifies pairs, the items are the candidates that the circuit finds. Raises `InputError` if a window
    does not fit the circuit, or if a state leaves its width.
    """
    config = circuit.config
    _check_fits(circuit.query, config, incoming)
    encoder = Encoder(circuit.plan, config, longest_range(circuit.query), circuit.folding)
    records, of = _dealt(config, incoming, encoder.encode(incoming), encoder.flush(last=True))
    writes, named = [], circuit.settings
    for reg in REGISTERS:
        if reg.name in named:
            writes += [(reg.address + n, named[reg.name] >> 32 * n & 0xFFFFFFFF) for n in range(reg.bits // 32)]
    order = device_order(circuit.query, config, verified=circuit.plan.residual is not None).kind
    return Vectors(config.abi_hash, order, order == "total" or config.whole_states, writes, _integers(records),
                   expected_items(query, circuit, incoming), of.tolist())


def _dealt(config: Configuration, incoming: Arrivals, records: Words, end: Words) -> tuple[Words, Sources]:
    """The ``records`` of ``incoming`` and ``end`` as the sources of a circuit send them, and the source of each."""
    if config.sources == 1:
        given = np.concatenate([records, end])
        return given, np.zeros(len(given), np.intp)
    queues = SourceQueues(config)
    sent = [queues.push(incoming, records, queues.spread(incoming)), queues.everywhere(end)]
    given, of = (np.concatenate(parts) for parts in zip(*sent, strict=True))
    by_source = np.argsort(of, kind="stable")
    return given[by_source], of[by_source]


def _check_fits(query: Query, config: Configuration, incoming: Arrivals) -> None:
    """Raise `InputError` if a window of ``incoming`` would not fit into the circuit, which would stop for good."""
    for side, window in enumerate((query.window_r, query.window_s)):
        ts = None if incoming.ts is None else incoming.ts[incoming.stream == side]
        most = int(np.count_nonzero(incoming.stream == side))
        if ts is not None and window.length is not None and len(ts):
            most = int((np.arange(len(ts)) - np.searchsorted(ts, ts - window.length) + 1).max())
        if window.rows is not None:
            most = min(most, window.rows)
        if most > config.window_capacity:
            raise InputError(f"the window of stream {'rs'[side]} must fit into the circuit, "
                             f"{config.window_capacity} tuples, but it has {most}; give a larger --capacity, more "
                             f"--cores, or fewer --testbench-tuples")


def random_arrivals(query: Query, count: int, seed: int) -> Arrivals:
    """``count`` random tuples of each stream of ``query``; a function of ``seed``.

    Raises `InputError` for a column of a type without random values.
    """
    rng = random.Random(seed)
    r, s = (_table(schema, None if query.time is None else query.time.name(schema.side), count, rng)
            for schema in (query.r, query.s))
    return arrivals(query, r, s)


def _table(schema: Schema, time: str | None, count: int, rng: random.Random) -> pa.Table:
    columns: dict[str, Any] = {}
    for column in schema:
        if column.name == time:
            now, values = 1000, []
            for _ in range(count):
                now += rng.choice((0, 1, 1, 2, 3))
                values.append(now)
            columns[column.name] = _cast(values, column, schema)
        else:
            drawn = [None if column.nullable and rng.random() < _NULLS else _value(column, rng, schema)
                     for _ in range(count)]
            columns[column.name] = _cast(drawn, column, schema)
    return pa.table(columns)


def _value(column: Column, rng: random.Random, schema: Schema) -> Any:
    of: Type = column.type
    if isinstance(of, Bool):
        return rng.random() < 0.5
    if isinstance(of, String):
        return rng.choice(_WORDS)
    if isinstance(of, Binary):
        return rng.choice(_WORDS).encode()
    if isinstance(of, Float):
        return float(np.float32(rng.randrange(10 * _VALUES) / 10))
    if isinstance(of, (Int, Date, Timestamp, Duration, Decimal)):
        low, high = column.range or (0, 10**of.precision - 1 if isinstance(of, Decimal) else _VALUES)
        return rng.randint(low, min(high, low + _VALUES))
    raise InputError(f"there are no random values for the column {schema.side}.{column.name} of type {of}; leave it "
                     f"out of the schema if the condition does not need it")


def _cast(values: list[Any], column: Column, schema: Schema) -> pa.Array:
    """The drawn ``values`` as an array of the Arrow type that the schema has for ``column``."""
    assert schema.arrow is not None
    to = schema.arrow.field(column.name).type
    encoded = pa.types.is_dictionary(to) or pa.types.is_run_end_encoded(to)
    made = _plain(values, column.type, to.value_type if encoded else to)
    if pa.types.is_dictionary(to):
        return made.dictionary_encode().cast(to)
    return pc.run_end_encode(made, run_end_type=to.run_end_type) if encoded else made


def _plain(values: list[Any], of: Type, to: pa.DataType) -> pa.Array:
    if isinstance(of, (Bool, String, Binary, Float)):
        return pa.array(values, to)
    if isinstance(of, Decimal):  # drawn without their point
        return pa.array([None if v is None else decimal.Decimal(v).scaleb(-of.scale) for v in values], to)
    if isinstance(of, Date):
        return pa.array(values, pa.int32()).cast(pa.date32()).cast(to)
    return pa.array(values, pa.int64()).cast(to)


def _integers(words: Words) -> list[int]:
    return [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in words]
