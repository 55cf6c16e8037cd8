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


@given(st.data(), predicates(), st.sampled_from("rs"))
@settings(max_examples=40)
def test_match_is_the_predicate_of_two_cycles_ago(data, config, side):
    keys, bounds = config.keys(side), config.bounds("s" if side == "r" else "r")

    def values(width):
        return st.one_of(st.sampled_from([0, 1, 2**width - 2, 2**width - 1]), st.integers(0, 2**width - 1))

    pairs = data.draw(st.lists(st.tuples(*(st.tuples(*(values(w) for _, w in rec.fields)) for rec in (keys, bounds))),
                               min_size=1, max_size=12))
    wanted = []
    for key, bound in pairs:
        tests = []
        for j, (r, s) in enumerate(config.tests):
            tests.append(bound[2 * j] <= key[r if side == "r" else s] <= bound[2 * j + 1])
        wanted.append(holds(config.tree, tests))

    async def body(tb):
        match = tb.watch("match")
        seen = []
        for key, bound in [*pairs, *pairs[-1:] * Matcher.latency]:
            tb.set("keys", pack(keys, dict(zip((n for n, _ in keys.fields), key, strict=True))))
            tb.set("bounds", pack(bounds, dict(zip((n for n, _ in bounds.fields), bound, strict=True))))
            await tb.step()
            seen.append(bool(match()))
        assert seen[Matcher.latency:] == wanted

    simulate(Matcher(config, side), body)
