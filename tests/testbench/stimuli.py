"""Random stimuli, the same for every simulator. Each is a pure function of its random generator."""

from __future__ import annotations

import random

from splitjoin.circuit.wire import Configuration, ItemKind, Op

from .models import NO_LIMIT, Item, Operation, Window

__all__ = ["random_groups", "random_operations", "random_window"]


def random_window(rng: random.Random, config: Configuration, kind: str) -> Window:
    """A window of ``kind`` "rows", "range" or "both". ROWS always fit the ring, and often fill it exactly."""
    largest = config.window_capacity
    rows = rng.choice([1, rng.randint(1, largest), largest, max(1, largest - rng.randint(1, config.cores))])
    length = rng.choice([0, 1, rng.randint(2, 12), rng.randint(8, 60)])
    precision = rng.choice([0, 1, 1, 2, 5])
    return Window(NO_LIMIT if kind == "range" else rows, None if kind == "rows" else length, precision,
                  rng.choice([0, 0, 1, 3]))


def random_operations(rng: random.Random, config: Configuration, count: int, *, flush: bool = True) -> list[Operation]:
    """``count`` tuples, ticks and masks in bursts of one stream, with ties and gaps in event time, then a FLUSH.

    About half of the comparisons are true.
    """
    out: list[Operation] = []
    now = rng.randrange(1000)
    pace = rng.choice([0.1, 0.7, 3])
    now_limit = 2**config.time_bits // 2 - 1 if config.time_bits else 0
    while len(out) < count:
        stream = rng.randrange(2)
        for _ in range(rng.choice([1, 1, 2, 9])):
            # A gap may be as long as half the range of the counter; the driver guarantees less.
            now += rng.choice([0, 0, 1, 2]) if rng.random() < pace else 0
            if config.time_bits and rng.random() < 0.02:
                now += rng.randint(0, now_limit - 80)
            if rng.random() < 0.05:
                out.append(Operation(Op.TICK, 0, now))
            if rng.random() < 0.05:
                out.append(Operation(Op.MASK, rng.randrange(2), now, core=rng.randrange(config.cores)))
            out.append(_tuple(rng, config, stream, now))
    return [*out[:count], *([Operation(Op.FLUSH)] if flush else [])]


def _tuple(rng: random.Random, config: Configuration, stream: int, now: int) -> Operation:
    mine, theirs = (config.keys_r, config.keys_s) if stream == 0 else (config.keys_s, config.keys_r)
    keys = tuple(rng.choice([0, 2**w - 1, rng.randrange(2**w)]) for w in mine)
    bounds = []
    for (r, s), wide in zip(config.tests, config.test_widths, strict=True):
        top = 2 ** theirs[s if stream == 0 else r] - 1
        if wide is not None:
            low = rng.choice([0, top - wide, rng.randint(-wide, top), rng.randint(0, top), top + 1])
            bounds.append((low, low + wide))
            continue
        # Sometimes an empty interval, as NULL has.
        low, high = rng.randint(0, top), rng.randint(0, top)
        some = [(0, top), (top, 0), (low, high), (0, high)]
        if config.kind.has_index:  # intervals that are looked up, and sometimes one that is too wide
            some += [(low, low), (high, high), (low, min(top, low + 2)), (high, min(top, high + 1))] * 2
        bounds.append(rng.choice(some))
    return Operation(Op.TUPLE, stream, now, keys, tuple(bounds))


def random_groups(rng: random.Random, inputs: int, count: int, *, sliced: bool = False) -> list[list[Item]]:
    """Results that ``inputs`` cores send to a merger: ``count`` groups, many of them empty on some inputs, then END.

    Row ids are dealt out in turn, as round-robin storage does. ``sliced``: groups have slices, some inputs fewer.
    """
    streams: list[list[Item]] = [[] for _ in range(inputs)]
    for probe in range(count):
        oldest = rng.choice([0, rng.randrange(2**32 - 100), 1000])
        density = rng.choice([0, 0.2, 0.9])
        size = rng.choice([1, 2, 5]) * inputs
        for n, row in enumerate(range(oldest, oldest + rng.choice([0, 3, 20]))):
            # An input begins a slice with its first stored tuple in it, even if that is no result.
            if sliced and n and n % size < inputs and n >= size:
                streams[row % inputs].append(Item(ItemKind.SLICE, probe))
            if rng.random() < density:
                streams[row % inputs].append(Item(ItemKind.PAIR, probe, row))
        for stream in streams:
            stream.append(Item(ItemKind.STAR, probe))
    for stream in streams:
        stream.append(Item(ItemKind.END))
    return streams
