"""Hypothesis strategies for stimuli and stalls, so that a failure shrinks to the few cycles that matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from splitjoin.circuit.wire import Configuration, ItemKind, Op
from tests.testbench.models import NO_LIMIT, Item, Operation, Window
from tests.testbench.pauses import MATRIX, Pauses, Stalls, scripted


def pauses() -> st.SearchStrategy[Pauses]:
    """Pauses for a while, then none."""
    return st.lists(st.booleans(), max_size=40).map(scripted)


def cells() -> st.SearchStrategy[Stalls]:
    """Cells of the matrix idle × back-pressure with random pauses at every port."""
    return st.builds(Stalls.seeded, st.sampled_from(list(MATRIX.values())), st.integers(0, 10**6))


def configurations(*, time: bool | None = None) -> st.SearchStrategy[Configuration]:
    """Small circuits, with more than one test in the predicate. ``time``: with event times or not; None: either."""
    bits = st.sampled_from({None: [0, 7, 9], True: [7, 9], False: [0]}[time])
    shapes = [(lanes, capacity) for lanes in (1, 2, 4) for capacity in (2, 4, 8, 16) if capacity >= 2 * lanes]

    def make(shape: tuple[int, int], **others: Any) -> Configuration:
        return Configuration(keys_r=(2, 3), keys_s=(3,), tests=((0, 0), (1, 0)), lanes=shape[0], capacity=shape[1],
                             **others)

    return st.builds(
        make, st.sampled_from(shapes), probes=st.sampled_from([1, 2, 3, 8]),
        tree=st.sampled_from([("or", 0, 1), ("and", 0, 1), ("or", 1, ("and", 0, 1)), 0]), cores=st.integers(1, 4),
        fanout=st.integers(2, 4), fanin=st.integers(2, 4), time_bits=bits, queue=st.sampled_from([0, 0, 16]))


def windows(config: Configuration) -> st.SearchStrategy[Window]:
    """Windows of ROWS, of RANGE, and of both; ROWS alone fit the circuit, and often fill it exactly."""
    largest = config.window_capacity
    rows = st.one_of(st.just(largest), st.integers(1, largest))
    marks = (st.integers(0, 4), st.one_of(st.just(0), st.integers(1, config.capacity)))
    if not config.time_bits:
        return st.builds(Window, rows, st.none(), *marks)
    length = st.integers(0, 12)
    return st.one_of(st.builds(Window, rows, st.none(), *marks),
                     st.builds(Window, st.just(NO_LIMIT), length, *marks),
                     st.builds(Window, st.one_of(rows, st.just(largest + 1)), length, *marks))


def indexed(*, time: bool | None = None) -> st.SearchStrategy[Configuration]:
    """The same with an index, of every kind."""
    index = st.sampled_from([("hash", (0,)), ("hash", (1, 0)), ("bucket", (1,)), ("bucket", (0, 1)),
                             ("ordered", (0,)), ("ordered", (1,))])
    return st.builds(lambda config, index: replace(config, lanes=1, probes=1, tree=("and", 0, 1), core=index[0],
                                                   index=index[1]), configurations(time=time), index)


def with_tables(*, time: bool | None = None) -> st.SearchStrategy[Configuration]:
    """The same with tests of constant width that are looked up, and perhaps one that is computed."""
    widths = st.sampled_from([(0, 0), (2, None), (None, 0), (3, 7), (1, 4)])
    return st.builds(lambda config, widths: replace(config, widths=widths, tables=True), configurations(time=time),
                     widths)


@st.composite
def operations(draw: st.DrawFn, config: Configuration, *, max_size: int = 60) -> list[Operation]:
    """Tuples of both streams, ticks, masks and flushes, in the order of event time."""
    out = []
    now = 0
    steps = st.tuples(st.sampled_from("rrrsssrrrssstm!"), st.integers(0, 3))
    # A list without a least size has five members in the mean, too few for most tuples to meet another.
    size = draw(st.one_of(st.integers(0, 8), *[st.integers(max_size // 2, max_size)] * 2))
    for kind, gap in draw(st.lists(steps, min_size=size, max_size=size)):
        # Rarely a long gap, which expires everything; half the counter's range is what modular ages allow.
        if kind in "rst":  # other operations have no time
            now += gap if gap < 3 or not config.time_bits else draw(st.integers(1, 2 ** (config.time_bits - 1) - 13))
        if kind == "!":
            out.append(Operation(Op.FLUSH))
        elif kind == "m":
            out.append(Operation(Op.MASK, draw(st.integers(0, 1)), core=draw(st.integers(0, config.cores - 1))))
        elif kind == "t":
            out.append(Operation(Op.TICK, 0, now))
        else:
            out.append(draw(_tuples(config, "rs".index(kind), now)))
    return [*out, Operation(Op.FLUSH)]


def _tuples(config: Configuration, stream: int, now: int) -> st.SearchStrategy[Operation]:
    mine, theirs = (config.keys_r, config.keys_s) if stream == 0 else (config.keys_s, config.keys_r)
    keys = st.tuples(*(st.integers(0, 2**w - 1) for w in mine))
    bounds = st.tuples(*(_bounds(2 ** theirs[test[1 - stream]] - 1, wide, narrow=config.core != "scan")
                         for test, wide in zip(config.tests, config.test_widths, strict=True)))
    return st.builds(Operation, st.just(Op.TUPLE), st.just(stream), st.just(now), keys, bounds)


def _bounds(top: int, wide: int | None, *, narrow: bool) -> st.SearchStrategy[tuple[int, int]]:
    """An interval of keys up to ``top``, of width ``wide`` unless None; ``narrow``: also those of an index."""
    if wide is not None:
        return st.integers(-wide, top + 1).map(lambda low: (low, low + wide))
    limit = st.integers(0, top)
    return st.one_of(*[limit.map(lambda v: (v, v))] * narrow, st.just((0, top)), st.tuples(limit, limit))


@st.composite
def merger_inputs(draw: st.DrawFn, inputs: int) -> list[list[Item]]:
    """Results that ``inputs`` cores send to a merger: groups, many empty on some or all inputs, each with its star."""
    streams: list[list[Item]] = [[] for _ in range(inputs)]
    for probe in range(draw(st.integers(0, 6))):
        first = draw(st.sampled_from([0, 7, 2**31 - 2, 2**32 - 3]))  # row ids wrap around
        sliced = draw(st.sampled_from([100, 1, 2])) * inputs
        known = [0] * inputs
        for n in sorted(draw(st.sets(st.integers(0, 8)))):
            while known[n % inputs] < n // sliced:
                streams[n % inputs].append(Item(ItemKind.SLICE, probe))
                known[n % inputs] += 1
            streams[n % inputs].append(Item(ItemKind.PAIR, probe, (first - first % inputs + n) % 2**32))
        for stream in streams:
            stream.append(Item(ItemKind.STAR, probe))
    for stream in streams:
        stream.append(Item(ItemKind.END))
    return streams
