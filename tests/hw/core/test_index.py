# amaranth: UnusedElaboratable=no
"""Regions with an index: the same items as any region, and the number of tuples and cycles that they take."""

from itertools import pairwise, product
from math import isqrt

import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.core_kinds import POLYNOMIALS
from splitjoin.circuit.wire import Configuration, ItemKind, Op
from splitjoin_hw.core.region import Region
from tests.testbench.bodies import region
from tests.testbench.core_kinds import HashModel
from tests.testbench.models import Operation, Window, item_of, packed_operation, packed_window
from tests.testbench.pauses import Stalls

from ...support.sampling import at_length, examples
from ...support.simulations import simulation
from ...support.stimuli import cells, indexed, operations, windows


@given(st.data(), indexed(), st.sampled_from("rs"), cells())
@settings(max_examples=examples(25, 200))
def test_same_items_as_the_model(data, config, side, stalls):
    window = data.draw(windows(config))
    index = data.draw(st.integers(0, config.cores - 1))
    ops = data.draw(operations(config))

    async def body(tb):
        await region(tb, config, side, index, window, ops, stalls)

    simulation(Region, config, side).run(body)


def plain(core, capacity):
    return Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=capacity, core=core,
                         index=(0,))


def stored(key):
    return Operation(Op.TUPLE, 1, 0, (key,), ((0, 0),))


def probe(low, high=None):
    return Operation(Op.TUPLE, 0, 0, (0,), ((low, low if high is None else high),))


def flowing(config, ops, window):
    """Run a region that stores S without stalls against the model."""
    async def body(tb):
        await region(tb, config, "s", 0, window, ops, Stalls(False, False))

    simulation(Region, config, "s").run(body)


@pytest.mark.parametrize("core", ["hash", "bucket"])
@pytest.mark.parametrize("between", [7, at_length(31), 63, 64, 65, at_length(127)])
def test_a_bucket_whose_tuples_are_long_gone_is_empty(core, between):
    """Positions wrap around every 64 stores here: a bucket without a store meanwhile must stay empty."""
    ops = [stored(1), stored(1)]
    for n in range(3):
        ops += [stored(4 + 3 * ((n + i) % 2)) for i in range(between)] + [probe(1), probe(4), probe(7)]
    flowing(plain(core, 8), [*ops, Operation(Op.FLUSH)], Window(rows=8))


@pytest.mark.parametrize(("core", "bounds"), [("hash", (7, 7)), ("bucket", (7, 7)), ("bucket", (5, 7)),
                                              ("bucket", (0, 255)), ("hash", (6, 7))])
def test_a_whole_window_in_one_chain(core, bounds):
    """Every tuple is in one bucket: none is lost, as chains are as long as the window; they leave oldest first."""
    ops = []
    for _ in range(3):
        ops += [stored(7)] * 20 + [probe(*bounds)] * 2
    flowing(plain(core, 32), [*ops, Operation(Op.FLUSH)], Window(rows=32))


def test_neighbouring_buckets_are_merged_by_age():
    keys = [5, 6, 6, 5, 9, 5, 6, 9, 9, 5]
    probes = [probe(5, 6), probe(6, 9), probe(3, 8), probe(5, 9)]
    flowing(plain("bucket", 16), [*map(stored, keys), *probes, Operation(Op.FLUSH)], Window(rows=16))


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize(("lows", "first"), [((8, 8), 0), ((2, 11), 0), ((8, 8), 63)])
def test_a_chain_may_begin_with_tuples_that_came_after_the_probe(before, lows, first):
    """The last of four buckets is looked up after the next store: its youngest tuple is none of the probe's window.

    With ``first``, so many tuples precede the probe that this store's position is the first after a wrap-around.
    """
    config = Configuration(keys_r=(8, 8), keys_s=(8, 8), tests=((0, 0), (1, 1)), tree=("and", 0, 1), cores=1,
                           capacity=16, core="bucket", index=(0, 1))

    def tuples(*keys):
        return [Operation(Op.TUPLE, 1, 0, (key, other), ((0, 0), (0, 0))) for key, other in keys]

    # Bounds that begin with the last key of a cell in each test, and end in the next one.
    highs = [low + 1 for low in lows]
    every = list(product(*zip(lows, highs, strict=True)))
    across = Operation(Op.TUPLE, 0, 0, (0, 0), tuple(zip(lows, highs, strict=True)))
    ops = tuples(*[(100, 100)] * (first - before - len(every)), *every)
    for late in every:
        # Stores between keep the index busy until the probe's first look-up.
        ops += [*tuples(*[(100, 100)] * before), across, *tuples(late, late), across]
    flowing(config, [*ops, Operation(Op.FLUSH)], Window(rows=16))


def star_cycles(config, ops):
    """The cycles in which stars leave an unstalled region that stores S in a window of the whole ring."""
    found = []

    def stars(sink):
        return [cycle for cycle, item in zip(sink.cycles, sink.items, strict=True)
                if item_of(item).kind == ItemKind.STAR]

    async def body(tb):
        tb.set("window", packed_window(config, Window(rows=config.capacity)))
        tb.source("i", [packed_operation(config, op) for op in ops])
        sink = tb.sink("o")
        probes = sum(op.stream == 0 for op in ops)
        await tb.run(lambda: len(sink.items) >= probes and len(stars(sink)) == probes, limit=4000)
        found.extend(stars(sink))

    simulation(Region, config, "s").run(body)
    return found


@pytest.mark.parametrize(("core", "most"), [("hash", 12), ("bucket", 18)])
def test_a_probe_takes_as_many_cycles_as_it_has_candidates_for(core, most):
    """A scan would take 128 cycles. With one candidate the emitter is the limit; with three, the four cycles that each
    candidate takes.
    """
    config = plain(core, 128)
    ops = [stored(n) for n in range(128)] + [probe(n) for n in range(20, 40)]
    assert max(b - a for a, b in pairwise(star_cycles(config, ops))) <= most


def test_a_probe_that_spans_too_many_buckets_reads_a_tuple_a_cycle():
    config = plain("bucket", 128)
    ops = [stored(n) for n in range(128)] + [probe(150, 250)] * 6
    assert all(128 <= b - a <= 130 for a, b in pairwise(star_cycles(config, ops)))


@pytest.mark.parametrize("degree", POLYNOMIALS)
def test_polynomials_are_primitive(degree):
    """The powers of x reach 1 again only after all other values: after as many as there are, and not after a part."""
    def times(a: int, b: int) -> int:
        found = 0
        for bit in reversed(range(degree)):
            found <<= 1
            found ^= (a if b >> bit & 1 else 0) ^ (POLYNOMIALS[degree] if found >> degree else 0)
        return found

    def power(exponent: int) -> int:
        found = 1
        for bit in reversed(range(exponent.bit_length())):
            found = times(found, found)
            found = times(found, 2) if exponent >> bit & 1 else found
        return found

    whole = 2**degree - 1
    divisors = {d for n in range(1, isqrt(whole) + 1) if whole % n == 0 for d in (n, whole // n)} - {whole}
    assert power(whole) == 1 and all(power(divisor) != 1 for divisor in divisors)


@pytest.mark.parametrize("capacity", [2, 8, 64, 1024])
def test_hashing_spreads_keys_that_differ_in_any_place(capacity):
    """Consecutive keys, multiples of large powers of two, and pairs of equal keys all use most of the buckets."""
    config = Configuration(keys_r=(32, 32), keys_s=(32, 32), tests=((0, 0), (1, 1)), tree=("and", 0, 1),
                           capacity=capacity, core="hash", index=(0, 1))
    for step in (1, 3, 1 << 8, 1 << 20):
        keys = [n * step % 2**32 for n in range(min(config.buckets, 2**32 // step))]
        for pairs in ([(key, 0) for key in keys], [(0, key) for key in keys], [(key, key) for key in keys]):
            assert len({HashModel().bucket(config, "r", pair) for pair in pairs}) > 0.4 * len(keys)
