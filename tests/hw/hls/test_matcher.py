from dataclasses import replace

from hypothesis import given, settings, strategies as st

from splitjoin.circuit.geometry import PROBE_GROUP as GROUP, TABLE_WRITE_CYCLES as WRITING
from splitjoin.circuit.schedule import PipelineRegisters
from splitjoin.circuit.wire import Axis, Configuration, Sum
from splitjoin.lang.schema import other_side
from splitjoin_hw.hls.matcher import Matcher
from tests.testbench.models import holds, pack

from ...support.sampling import examples
from ...support.simulations import simulation


@st.composite
def predicates(draw):
    """A configuration with up to three tests on keys of 1 to 64 bits, combined in any way."""
    width = st.sampled_from([1, 2, 7, 32, 63, 64])
    keys_r, keys_s = (tuple(draw(st.lists(width, min_size=1, max_size=2))) for _ in "rs")
    tests = draw(st.lists(st.tuples(st.integers(0, len(keys_r) - 1), st.integers(0, len(keys_s) - 1)), min_size=1,
                          max_size=3))
    leaves = st.integers(0, len(tests) - 1)
    tree = draw(st.recursive(leaves, lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner)))
    config = Configuration(keys_r=keys_r, keys_s=keys_s, tests=tuple(tests), tree=tree)
    if not draw(st.booleans()):
        return config
    widths = []
    for a, b in tests:
        bits = keys_r[a], keys_s[b]
        most = 2**min(bits) - 1
        wide = st.one_of(st.none(), st.just(0), st.integers(0, most), st.integers(0, min(most, 40)))
        widths.append(None if max(bits) == 64 else draw(wide))
    tables = any(wide is not None for wide in widths) and draw(st.booleans())
    return replace(config, widths=tuple(widths), tables=tables)


#: Optional pipeline registers: all of them, or none.
registers = st.one_of(st.just(PipelineRegisters()), st.builds(
    PipelineRegisters, chain=st.sampled_from([1, 3, 4, 7, 16, 40, 64]), levels=st.integers(0, 2), sums=st.booleans(),
    digits=st.booleans()))


@st.composite
def sums(draw):
    """A configuration with a sum test or two, most beside interval tests; limits of every size."""
    width = st.sampled_from([1, 2, 5, 9, 17, 33, 64])
    keys = tuple(draw(st.lists(width, min_size=2, max_size=3)))
    found = []
    for _ in range(draw(st.integers(1, 2))):
        axes, most = [], 0
        for _ in range(draw(st.integers(1, 3))):
            kind, slot = draw(st.sampled_from(["square", "absolute", "differing"])), draw(st.integers(0, len(keys) - 1))
            bits = keys[slot] if kind == "differing" else draw(st.integers(2, min(64, keys[slot] + 2)))
            axes.append(Axis(kind, slot, slot, bits, draw(st.sampled_from([0, 0, 1, 3]))))
            most += {"square": 4**bits, "absolute": 2**bits, "differing": bits}[kind]
        rest = (draw(st.sampled_from([None, 0])), draw(st.sampled_from([None, 1])))
        # At most the bits that a squarer takes.
        limit = draw(st.one_of(st.integers(0, 9), st.integers(0, 2**draw(st.integers(0, 60)))))
        found.append(Sum(tuple(axes), limit, draw(st.booleans()), rest))
    tests = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=2))
    leaves = st.integers(0, len(tests) + len(found) - 1)
    tree = draw(st.recursive(leaves, lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner)))
    return Configuration(keys_r=keys, keys_s=keys, tests=tuple(tests), tree=tree, sums=tuple(found))


def interval_holds(config, side, j, key, named):
    """An interval test by the definition of a probe's bounds."""
    value, low, wide = key[config.tests[j]["rs".index(side)]], named[f"lo{j}"], config.test_widths[j]
    if wide is None:
        return low <= value <= named[f"hi{j}"]
    bits = dict(config.bounds(other_side(side)).fields)[f"lo{j}"]
    return (value - low) % 2**bits <= wide


def sum_holds(sum_, side, key, bound):
    """A sum test by the definition of its parts."""
    n, j = "rs".index(side), bound["sum"]
    total = 0
    for number, axis in enumerate(sum_.axes):
        stored, place = key[(axis.r, axis.s)[n]], bound[f"at{j}_{number}"]
        difference = (stored - place) % 2**axis.bits
        if difference >= 2**(axis.bits - 1):
            difference -= 2**axis.bits
        total += {"square": difference**2, "absolute": abs(difference),
                  "differing": (stored ^ place).bit_count()}[axis.kind] << axis.shift
    if sum_.rest[n] is not None:
        total += key[sum_.rest[n]]
    limit = bound[f"limit{j}"] - 1 if sum_.limited else sum_.limit
    return total > limit if sum_.above else (total <= limit)


@given(st.data(), st.one_of(predicates(), sums()), st.sampled_from("rs"), st.sampled_from([1, 2, 4]),
       st.sampled_from([1, 3, 8]), registers)
@settings(max_examples=examples(14))
def test_match_is_the_predicate_for_every_probe_and_lane(data, config, side, lanes, probes, built_with):
    """Batch by batch: the bounds are loaded while the keys of the batch before are compared."""
    config = replace(config, lanes=lanes, probes=probes, registers=built_with)
    keys, bounds = config.keys(side), config.bounds(other_side(side))

    def values(width):
        near = st.integers(max(0, 2**(width - 1) - 5), min(2**width - 1, 2**(width - 1) + 5))
        return st.one_of(st.sampled_from([0, 1, 2**width - 2, 2**width - 1]), st.integers(0, 2**width - 1), near)

    limits = {f"limit{j}": sum_.limit + 1 for j, sum_ in enumerate(config.sums)}

    def records(record, count):
        # A probe's limit is at most the sum's own plus 1.
        fields = [st.one_of(st.integers(0, most), st.just(most)) if (most := limits.get(name)) is not None
                  else values(w) for name, w in record.fields]
        return st.lists(st.tuples(*fields), min_size=count, max_size=count)

    batches = data.draw(st.lists(st.tuples(records(bounds, probes), records(keys, lanes * (probes + 1))), min_size=1,
                                 max_size=3))
    wanted = []
    for loaded, rows in batches:
        for n in range(probes + 1):
            read, word = rows[n * lanes:(n + 1) * lanes], 0
            for p, bound in enumerate(loaded):
                for lane, key in enumerate(read):
                    named = dict(zip((name for name, _ in bounds.fields), bound, strict=True))
                    tests = [interval_holds(config, side, j, key, named) for j in range(len(config.tests))]
                    tests += [sum_holds(sum_, side, key, named | {"sum": j}) for j, sum_ in enumerate(config.sums)]
                    word |= holds(config.tree, tests) << p * lanes + lane
            wanted.append(word)

    def packed(record, values):
        return pack(record, dict(zip((n for n, _ in record.fields), values, strict=True)))

    async def body(tb):
        match = tb.watch("match")
        seen, at = [], []  # the matches in every cycle; the cycles in which they belong to a read
        places = [0]

        async def cycle(load, swap, read=None, *, fill=0):
            # The bounds registered in the last cycle are loaded to their place in this one.
            tb.set("load", places.pop())
            places.append(0 if load is None else 1 << load[0])
            tb.set("swap", swap)
            if config.tables:
                tb.set("fill", fill)
            if load is not None:
                tb.set("bounds", packed(bounds, load[1]))
            if read is not None:
                at.append(len(seen) + config.stages)
            for lane in range(lanes):
                tb.set(f"keys__{lane}", packed(keys, read[lane]) if read else 0)
            await tb.step()
            seen.append(match())

        async def collect(loaded, reads=()):
            for n, bound in enumerate(loaded):
                await cycle((n, bound), 0, reads[n * lanes:(n + 1) * lanes] if reads else None)
                if config.tables and (n % GROUP == GROUP - 1 or n == probes - 1):
                    # With the last bounds of a group, and as soon before the next one or the swap as can be.
                    await cycle(None, 0, fill=1 << n // GROUP)
                    for _ in range(WRITING - 1):
                        await cycle(None, 0)

        await collect(batches[0][0])
        await cycle(None, 1)
        for (_, rows), following in zip(batches, [*batches[1:], batches[0]], strict=True):
            # A swap in the last cycle, while the next batch's last bounds have just been loaded.
            await collect(following[0], rows)
            await cycle(None, 1, rows[probes * lanes:])
        for _ in range(config.stages):
            await cycle(None, 0)
        assert [seen[n] for n in at] == wanted

    simulation(Matcher, config, side).run(body)
