"""A short run of the fuzzer of servers; and that what messages state is read safely, whatever they hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from splitjoin.base.errors import InputError, SchemaError
from splitjoin.server.config import Limits
from splitjoin.server.messages import data_message, parse_data, split, stated
from splitjoin.server.puts import Put

from ...fuzz.inputs import damaged
from ...support.sampling import examples
from .clients import A, orders
from .hostile import hostile
from .raw import packed, with_descriptor


def test_a_server_outlasts_hostile_clients() -> None:
    assert hostile(examples(40), seed=3) == []


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_what_a_batch_states(codec: str | None) -> None:
    first, second = packed(orders(0, 1000), codec)
    assert stated(parse_data(first)).kind == "schema"
    found = stated(parse_data(second))
    assert (found.kind, found.rows) == ("batch", 1000)
    assert 12_000 <= found.size <= 12_000 + 2 * 64  # 8 and 4 bytes a row, and padding


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_damaged_messages_are_input_errors_or_batches_within_the_limits(codec: str | None) -> None:
    chance, limits, taken = random.Random(5), Limits(put_rows=2000, put_bytes="100KB"), 0
    batches = (orders(0, 1000), pa.record_batch({"x": pa.array(["a", "b", None] * 300).dictionary_encode()}),
               pa.record_batch({"x": pa.array([["a"], [], None]), "y": pa.nulls(3)}))
    for _ in range(examples(600)):
        whole = packed(chance.choice(batches), codec)
        messages = [damaged(one, chance) if chance.random() < 0.5 else one for one in whole]
        try:
            for batch in Put(iter(messages), limits):
                assert batch is None or (len(batch) <= 2000 and batch.validate(full=True) is None)
                taken += 1
        except InputError:
            continue
    assert taken > 20


@pytest.mark.parametrize("type_", [
    pa.sparse_union([pa.field("0", pa.int32())]), pa.list_(pa.int32()), pa.string(), pa.int64(),
    pa.dictionary(pa.int8(), pa.int32()), pa.run_end_encoded(pa.int32(), pa.int32())])
def test_batches_of_other_types_are_not_read(type_: pa.DataType) -> None:
    schema = pa.schema([("ts", pa.int64()), ("price", type_)])
    first = with_descriptor([data_message(*next(split(schema.serialize().to_pybytes())))], b"{}")
    with pytest.raises(SchemaError, match=r"column r\.price must be int32, but a batch has "):
        Put(iter(first), Limits()).check("r", A)
    Put(iter(packed(orders(0, 3), None)), Limits()).check("r", A)


@pytest.mark.parametrize(("batch", "said"), [
    (pa.record_batch({"x": pa.nulls(2001)}), "at most 2,000 rows"),
    (pa.record_batch({"x": pa.array(["x" * 50_000] * 100).dictionary_encode()}), "at most 98 KiB once it is unpacked"),
    (pa.record_batch({"x": pa.RunEndEncodedArray.from_arrays(pa.array([2000], pa.int32()), pa.array(["x" * 1000]))}),
     "at most 98 KiB once it is unpacked"),
    (pa.record_batch({"x": pa.array(["x" * 1000] * 150, pa.string_view())}), "at most 98 KiB once it is unpacked"),
])
def test_rows_and_bytes_of_a_batch_are_bounded_also_where_values_are_shared(batch: pa.RecordBatch, said: str) -> None:
    with pytest.raises(InputError, match=said):
        list(Put(iter(packed(batch, None)), Limits(put_rows=2000, put_bytes="100KB")))


def test_what_a_put_may_not_do() -> None:
    schema, batch = packed(orders(0, 3), None)
    for messages, said in (([], "begin with a schema"), ([batch], "begin with a schema"), ([b"\xff"], "damaged"),
                           ([schema, schema], "a put has one schema"), ([schema, batch[:-9]], "damaged")):
        with pytest.raises(InputError, match=said):
            list(Put(iter(messages), Limits()))
    dictionary = pa.dictionary(pa.int8(), pa.string())
    lacking = packed(pa.record_batch({"x": pa.array(["a"], dictionary)}), None)
    assert len(lacking) == 3
    with pytest.raises(InputError, match="a batch must be valid data of Arrow, but "):
        list(Put(iter([lacking[0], lacking[2]]), Limits()))
    assert len(list(Put(iter([*lacking, lacking[2]]), Limits()))) == 2


def test_dictionaries_are_counted_together_before_a_batch_comes() -> None:
    """So that a put of dictionaries alone takes no more memory than a batch may."""
    texts = [pa.array([f"{column}{n:05}" for n in range(6000)]).dictionary_encode() for column in range(3)]
    messages = packed(pa.record_batch(texts, names=["x", "y", "z"]), None)
    assert len(messages) == 5
    taken = []

    def read() -> Iterator[Any]:
        for message in messages:
            taken.append(message)
            yield message

    with pytest.raises(InputError, match=r"at most 98 KiB once it is unpacked .*, but one has 118 KiB"):
        list(Put(read(), Limits(put_bytes="100KB")))
    assert len(taken) == 3  # the schema, a dictionary of some 60 kB, and another one


def test_headers_of_dictionaries_are_counted_too() -> None:
    """A header may be longer than what it holds, and a put may have any number of dictionaries."""
    def padded(message: bytes) -> bytes:
        data = parse_data(message)
        return data_message(bytes(data.header) + bytes(2000), data.body)

    columns = [pa.array(["x"]).dictionary_encode()] * 60
    schema, *dictionaries, batch = packed(pa.record_batch(columns, [f"c{n}" for n in range(60)]), None)
    few = [schema, *map(padded, dictionaries[:20])]
    assert list(Put(iter(few), Limits(put_bytes="64KB"))) == []
    with pytest.raises(InputError, match="at most 62 KiB once it is unpacked"):
        list(Put(iter([schema, *map(padded, dictionaries), batch]), Limits(put_bytes="64KB")))
