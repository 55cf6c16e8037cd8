from dataclasses import replace

from hypothesis import given, settings, strategies as st
from splitjoin.device.wire import Configuration
from splitjoin.hw.hls.matcher import Matcher
from splitjoin.sim.bench.models import holds, pack
from splitjoin.sim.bench.on_amaranth import simulate


@st.composite
def predicates(draw):
    """A configuration with up to three tests on keys of 1 to 64 bits, combined in any way."""
    width = st.sampled_from([1, 2, 7, 32, 63, 64])
    keys_r, keys_s = (tuple(draw(st.lists(width, min_size=1, max_size=2))) for _ in "rs")
    tests = draw(st.lists(st.tuples(st.integers(0, len(keys_r) - 1), st.integers(0, len(keys_s) - 1)), min_size=1,
                          max_size=3))
    leaves = st.integers(0, len(tests) - 1)
    tree = draw(st.recursive(leaves, lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner)))
    return Configuration(keys_r=keys_r, keys_s=keys_s, tests=tuple(tests), tree=tree)


@given(st.data(), predicates(), st.sampled_from("rs"), st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 8]))
@settings(max_examples=30)
def test_match_is_the_predicate_for_every_probe_and_lane(data, config, side, lanes, probes):
    """Batch by batch: the bounds are loaded while the keys of the batch before are compared."""
    config = replace(config, lanes=lanes, probes=probes)
    keys, bounds = config.keys(side), config.bounds("s" if side == "r" else "r")

    def values(width):
        return st.one_of(st.sampled_from([0, 1, 2**width - 2, 2**width - 1]), st.integers(0, 2**width - 1))

    def records(record, count):
        return st.lists(st.tuples(*(values(w) for _, w in record.fields)), min_size=count, max_size=count)

    batches = data.draw(st.lists(st.tuples(records(bounds, probes), records(keys, lanes * (probes + 1))), min_size=1,
                                 max_size=3))
    wanted = []
    for loaded, rows in batches:
        for n in range(probes + 1):
            read, word = rows[n * lanes:(n + 1) * lanes], 0
            for p, bound in enumerate(loaded):
                for lane, key in enumerate(read):
                    tests = [bound[2 * j] <= key[r if side == "r" else s] <= bound[2 * j + 1]
                             for j, (r, s) in enumerate(config.tests)]
                    word |= holds(config.tree, tests) << p * lanes + lane
            wanted.append(word)

    def packed(record, values):
        return pack(record, dict(zip((n for n, _ in record.fields), values, strict=True)))

    async def body(tb):
        match = tb.watch("match")
        seen = []

        places = [0]

        async def cycle(load, swap, read=None):
            # The bounds of the last cycle go where they belong in this one.
            tb.set("load", places.pop())
            places.append(0 if load is None else 1 << load[0])
            tb.set("swap", swap)
            if load is not None:
                tb.set("bounds", packed(bounds, load[1]))
            for lane in range(lanes):
                tb.set(f"keys__{lane}", packed(keys, read[lane]) if read else 0)
            await tb.step()
            seen.append(match())

        for load in enumerate(batches[0][0]):
            await cycle(load, 0)
        await cycle(None, 1)
        seen.clear()
        for (_, rows), following in zip(batches, [*batches[1:], batches[0]], strict=True):
            # A swap in the last cycle, while the next batch's last bounds have just been loaded.
            for n in range(probes):
                await cycle((n, following[0][n]), 0, rows[n * lanes:(n + 1) * lanes])
            await cycle(None, 1, rows[probes * lanes:])
        for _ in range(config.stages):
            await cycle(None, 0)
        assert seen[config.stages:] == wanted

    simulate(Matcher(config, side), body)
