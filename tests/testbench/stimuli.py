"""Random stimuli, the same for every simulator. Each is a pure function of its random generator."""

from __future__ import annotations

import random

from splitjoin.circuit.wire import ItemKind

from .models import Item


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
