"""Ingress: Arrow tuples → device records, in NumPy without a Python loop over rows; egress: device records → items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import CapacityError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, STAR, Items
from splitjoin.lang.eval.vector import Vector, magnitude, widen
from splitjoin.lang.schema import other_side
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import Codes

from .folding import FoldChoice, payload_fields
from .index_coders import IndexCoder
from .plan import CircuitPlan, SumTest
from .sums import AxisRelation, SumRelation
from .wire import NO_ITEM, WORD_BITS, Configuration, Op, Record


@dataclass(frozen=True)
class SumCodes:
    """The codes of n tuples of one stream, as probes, for a sum test.

    Attributes:
        places: Per axis the probe's place among the other stream's codes, uint64 (n,).
        limits: The largest contribution of the stored tuple to the sum, plus 1, uint64 (n,); None where the limit is
            the same for all probes.
    """

    places: list[Codes]
    limits: Codes | None


def sum_codes(test: SumTest, side: str, values: list[Vector], n: int) -> SumCodes:
    """The codes for ``test`` of ``n`` tuples of stream ``side``, whose slots have ``values``."""
    slots, rest = (test.r, test.rest_r) if side == "r" else (test.s, test.rest_s)
    places = [_place(axis, side, values[slot].values) for axis, slot in zip(test.relation.axes, slots, strict=True)]
    return SumCodes(places, _limits(test.relation, other_side(side), n, None if rest is None else values[rest].values))


def _place(axis: AxisRelation, side: str, values: npt.NDArray[Any]) -> Codes:
    """The places of tuples of ``side`` among the other stream's codes, modulo 2^bits. The other stream's code minus the
    place is the axis' difference, or its negative.
    """
    if side == "r":
        return _modular(values, axis.c - axis.s.low, axis.bits)
    return _modular(values, -axis.c - axis.r.low, axis.bits)


def _modular(values: npt.NDArray[Any], offset: int, bits: int) -> Codes:
    """``values + offset`` modulo 2^bits."""
    if values.dtype == object:
        return np.array([(int(v) + offset) % 2**bits for v in values], np.uint64)
    return (values.astype(np.int64).astype(np.uint64) + np.uint64(offset % 2**64)) & np.uint64(2**bits - 1)


def _limits(relation: SumRelation, other: str, n: int, values: npt.NDArray[Any] | None) -> Codes | None:
    """The limits of tuples whose own keys have ``values``: the largest sum of the axes and the code of stream
    ``other``'s key, plus 1; 0 if no sum is small enough.
    """
    if relation.r is None and relation.s is None:
        return None
    key = relation.r if other == "r" else relation.s
    limit = relation.limit + 1 - (0 if key is None else key.low)
    if values is None:
        return np.full(n, max(0, limit), np.uint64)
    values = widen(values, magnitude(values) + abs(limit))
    left = np.clip(limit - values, 0, max(0, relation.most + 1))  # NULL has no value, and matches nothing anyway
    return np.array(left, np.uint64)


#: With several sources, the event times of a session and its RANGE span fewer ticks.
_SPAN = 2**62
#: The fields of an item.
_FIELDS = ("kind", "side", "r", "s")
#: Packed records: uint32 (n, words).
Words = npt.NDArray[np.uint32]


def pack(record: Record, fields: dict[str, Codes | int], n: int, words: int | None = None) -> Words:
    """``n`` records as 32-bit words; a field is an array (n,) of its values, or one value for all records; absent
    fields are 0.
    """
    out = np.zeros((n, words or record.words), np.uint32)
    for name, (at, width) in record.offsets().items():
        if name not in fields:
            continue
        value = np.broadcast_to(np.asarray(fields[name], np.uint64), n)
        for word, bit, done, mask in _bit_runs(at, width):
            out[:, word] |= (((value >> done) & mask) << bit).astype(np.uint32)
    return out


def unpack(record: Record, words: Words) -> dict[str, Codes]:
    """The fields of records: name → uint64 (n,)."""
    out = {}
    for name, (at, width) in record.offsets().items():
        out[name] = value = np.zeros(len(words), np.uint64)
        for word, bit, done, mask in _bit_runs(at, width):
            value |= ((words[:, word].astype(np.uint64) >> bit) & mask) << done
    return out


def _bit_runs(at: int, width: int) -> Iterator[tuple[int, np.uint64, np.uint64, np.uint64]]:
    """For each word with a part of the field: its number, the part's first bit in it and in the field, and a mask."""
    done = 0
    while done < width:
        word, bit = divmod(at + done, WORD_BITS)
        take = min(WORD_BITS - bit, width - done)
        yield word, np.uint64(bit), np.uint64(done), np.uint64((1 << take) - 1)
        done += take


class Encoder:
    """Turns arrivals into records of ``config`` by ``plan``, and keeps the session's clock.

    ``longest`` is the longer RANGE in ticks, None without one. ``folding``: what the circuit folds.
    """

    def __init__(self, plan: CircuitPlan, config: Configuration, longest: int | None,
                 folding: FoldChoice | None = None):
        self._config, self._longest, self._folding = config, longest, folding
        self._coder = Coder(plan)
        self._sums = plan.sums
        self._index_coder = config.kind.index_coder(plan, config)
        self._last: int | None = None  # event time of the last arrival
        self._clock = 0  # the same in device time
        self._first = 0  # event time of the first arrival, with several sources

    @property
    def config(self) -> Configuration:
        """The configuration of the circuit that reads the records."""
        return self._config

    @property
    def index_coder(self) -> IndexCoder:
        """The coder of the fields for the cores' index."""
        return self._index_coder

    def encode(self, arrivals: Arrivals) -> Words:
        """One record per arrival, in order: uint32 (n, words)."""
        parts, rest = list[Words](), arrivals if len(arrivals) else None
        while rest is not None:
            first, rest = rest.split(self._index_coder.most)
            parts.append(self._encode(first))
        return np.concatenate(parts) if parts else np.zeros((0, self._config.input_record.words), np.uint32)

    def _encode(self, arrivals: Arrivals) -> Words:
        config = self._config
        body_at = config.input_record.offsets()["body"][0]
        out = np.zeros((len(arrivals), config.input_record.words), np.uint32)
        time = None
        if config.time_bits:
            assert arrivals.ts is not None
            time = self._device_time(arrivals.ts)
        coded = {side: self._coder.codes(side, arrivals.table(side)) for side in "rs"}
        self._index_coder.learn(coded)
        for number, side in enumerate("rs"):
            rows = arrivals.stream == number
            n = int(rows.sum())
            if n == 0:
                continue
            fields: dict[str, Codes | int] = {"op": Op.TUPLE, "stream": number}
            if time is not None:
                fields["ts"] = time[rows]
            head = Record(tuple(f for f in config.input_record.fields if f[0] != "body"))
            assert head.width == body_at
            whole = Record(head.fields + config.body(side).fields)
            codes = coded[side]
            fields |= {f"key{i}": key for i, key in enumerate(codes.keys)}
            widths = dict(config.bounds(side).fields)
            for j, (low, high, wide) in enumerate(zip(codes.lows, codes.highs, config.test_widths, strict=True)):
                fields |= ({f"lo{j}": low, f"hi{j}": high} if wide is None
                           else {f"lo{j}": _low_end(low, high, wide, widths[f"lo{j}"])})
            for j, test in enumerate(self._sums):
                brought = sum_codes(test, side, codes.values, n)
                fields |= {f"at{j}_{axis}": place for axis, place in enumerate(brought.places)}
                fields |= {} if brought.limits is None else {f"limit{j}": brought.limits}
            fields |= self._index_coder.fields(side, codes)
            if self._folding is not None and side == "s":
                fields |= payload_fields(self._folding, arrivals.table(side))
            out[rows] = pack(whole, fields, n, config.input_record.words)
        return out

    def flush(self, *, last: bool) -> Words:
        """The record that the circuit answers with an END; ``last``: no tuples follow, so all states may leave."""
        return pack(self._config.input_record, {"op": Op.FLUSH, "stream": int(last and self._config.whole_states)}, 1)

    def tick(self, now: int) -> Words:
        """The record by which tuples expire as at event time ``now``: none if there is nothing that could."""
        if not self._config.time_bits or self._last is None or now <= self._last:
            return np.zeros((0, self._config.input_record.words), np.uint32)
        time = self._device_time(np.array([now], np.int64))
        return pack(self._config.input_record, {"op": Op.TICK, "ts": time}, 1)

    def _device_time(self, ts: npt.NDArray[np.int64]) -> Codes:
        """The event times ``ts`` as the device counts them: from 0, modulo its width, with idle gaps shortened.

        Only differences up to the longest RANGE matter. A gap longer than that expires everything whatever its length,
        so it is shortened to one tick more than the RANGE: then ages in the device stay below twice the RANGE plus one,
        and never reach the range of its counter.
        """
        if len(ts) == 0:
            return np.empty(0, np.uint64)
        if self._config.sources > 1:
            return self._common_time(ts)
        assert self._longest is not None
        first = int(ts[0]) if self._last is None else self._last
        limit = self._longest + 1
        # Differences of non-decreasing int64 are right as uint64, however far apart.
        previous = np.concatenate([np.array([first], np.int64), ts[:-1]])
        gaps = np.minimum(ts.astype(np.uint64) - previous.astype(np.uint64), np.uint64(limit))
        clock = np.cumsum(gaps, dtype=np.uint64) + np.uint64(self._clock)  # modulo 2**64
        self._last, self._clock = int(ts[-1]), int(clock[-1])
        mask = np.uint64(2**self._config.time_bits - 1)
        out: Codes = clock & mask
        return out


    def _common_time(self, ts: npt.NDArray[np.int64]) -> Codes:
        """The event times ``ts`` as all sources count them, in 64 bits: nobody sees all gaps, to shorten them."""
        self._first = int(ts[0]) if self._last is None else self._first
        self._last = int(ts[-1])
        if self._last - self._first + (self._longest or 0) >= _SPAN:
            raise CapacityError(f"with several sources the event times of a session and its RANGE must span fewer than "
                                f"2^62 ticks, but they are {self._first} to {self._last}; use a coarser time unit, or "
                                f"sources=1")
        found: Codes = ts.astype(np.uint64)
        return found


def _low_end(low: Codes, high: Codes, wide: int, bits: int) -> Codes:
    """The low ends, modulo 2^bits, of intervals of constant width: each high end is the low end plus ``wide``, unless
    the key's range cuts the interval off.

    An interval that is cut off at its low end gets its real low end, a number below 0; an empty one gets a low end
    above every key.
    """
    span = np.uint64(wide)
    whole = np.where((low == 0) & (high < span), high - span, low)  # modulo 2^64
    out: Codes = np.where(low > high, np.uint64(2**(bits - 1) % 2**64), whole)
    return out


def single_items(words: Words, config: Configuration) -> tuple[Items, npt.NDArray[np.intp]]:
    """The items of output records (n, words) as they are on the wire, one after the other, and of each the number of
    its record. END is among them, ``r`` and ``s`` are modulo 2^``row_bits``, and `decode` gives their meaning.
    """
    fields, width = unpack(config.output_record, words), config.root_width
    if width == 1:
        items = np.empty(len(words), ITEM)
        for name in _FIELDS:
            items[name] = fields[name]
        return items, np.arange(len(words))
    spread = {name: np.stack([fields[f"{name}{n}"] for n in range(width)], axis=1).reshape(-1) for name in _FIELDS}
    there = np.flatnonzero(spread["kind"] != NO_ITEM)
    items = np.empty(len(there), ITEM)
    for name, values in spread.items():
        items[name] = values[there]
    return items, there // width


def decode(items: Items) -> Items:
    """Give ``items``, which are as on the wire, the meaning of `ITEM`, in place: a star has no row id but that of its
    stream. END stays, as an item that the caller drops.
    """
    star = items["kind"] == STAR
    items["s"][star & (items["side"] == 0)] = -1
    items["r"][star & (items["side"] == 1)] = -1
    return items
