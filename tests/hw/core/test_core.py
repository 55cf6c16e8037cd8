# amaranth: UnusedElaboratable=no
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.core.core import Core
from splitjoin_hw.layouts import settings_layout
from tests.testbench.models import Operation, RegionModel, Window, item_of, packed_operation, packed_window

from ...support.sampling import examples
from ...support.simulations import simulation
from ...support.stimuli import cells, configurations, operations, windows

SMALL = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=64, probes=2)


def packed_settings(config, window_r, window_s):
    layout = settings_layout(config)
    at = {name: layout[name].offset for name in ("r", "s")}
    return packed_window(config, window_r) << at["r"] | packed_window(config, window_s) << at["s"]


@given(st.data(), configurations(), cells())
@settings(max_examples=examples(8))
def test_both_regions_emit_the_items_of_their_models(data, config, stalls):
    window_r, window_s = data.draw(windows(config)), data.draw(windows(config))
    index = data.draw(st.integers(0, config.cores - 1))
    ops = data.draw(operations(config, max_size=40))
    left, right = RegionModel(config, "s", index, window_s), RegionModel(config, "r", index, window_r)
    wanted = [[item.essence() for item in model.run(ops)] for model in (left, right)]

    async def body(tb):
        tb.set("settings", packed_settings(config, window_r, window_s))
        await tb.steps(4)  # they stand before the first record
        tb.set("index", index)
        tb.source("i", [packed_operation(config, op) for op in ops], stalls.source())
        sinks = [tb.sink("left", stalls.sink(0)), tb.sink("right", stalls.sink(1))]
        pins = {name: tb.watch(name) for name in ("overflow_r", "overflow_s", "overflow_row_r", "overflow_row_s",
                                                   "compared__0", "compared__1", "matched")}
        counts = [[0, 0], [0, 0]]
        last = 300 + 60 * len(ops) + 12 * sum(map(len, wanted))
        while tb.cycle < last:
            await tb.step()
            if left.overflow is right.overflow is None and [len(sink.items) for sink in sinks] == [*map(len, wanted)]:
                last = min(last, tb.cycle + 100)  # nothing more may come
            for side in (0, 1):
                counts[side][0] += pins[f"compared__{side}"]()
                counts[side][1] += pins["matched"]() >> side & 1
        for n, (model, sink, items) in enumerate(zip((left, right), sinks, wanted, strict=True)):
            found = [item_of(p) for p in sink.items]
            stopped = (right if n == 0 else left).overflow is not None  # then the core takes no more for either
            assert found == (items[:len(found)] if stopped else items)
            if model.overflow is None:
                assert not pins[f"overflow_{model.side}"]()
            elif pins[f"overflow_{model.side}"]():
                assert pins[f"overflow_row_{model.side}"]() == model.overflow
            else:
                assert stopped
            if not stopped:
                assert counts[n] == [model.compared, sum(i.kind == 0 for i in items)]

    simulation(Core, config).run(body)


@pytest.mark.parametrize("behind", [0, 60])
def test_a_region_may_fall_behind_its_twin(behind):
    """While the left region scans 64 tuples for R probes, the right one proceeds as long as the left one can buffer the
    input: a batch of probes, and stores into free slots. Then the core accepts no more, for either region.
    """
    def tuple_(stream):
        return Operation(Op.TUPLE, stream, 0, (1,), ((1, 1),))

    async def body(tb):
        tb.set("settings", packed_settings(SMALL, Window(rows=64), Window(rows=64)))
        await tb.steps(4)  # they stand before the first record
        ops = [tuple_(1)] * 64 + [tuple_(0)] * 3 + [tuple_(1)] * (4 + behind)
        tb.source("i", [packed_operation(SMALL, op) for op in ops])
        left, right = tb.sink("left"), tb.sink("right")
        # Each of the S tuples behind the R tuples finds all three of them.
        await tb.run(lambda: len(right.items) >= 64 + 4 * 4, limit=600)
        assert len(left.items) < 65, "the left region has not finished its first probe"
        await tb.run(lambda: len(left.items) >= 3 * 65, limit=600)
        await tb.steps(600)
        assert (len(left.items), len(right.items)) == (3 * 65, 64 + 4 * (4 + behind))

    simulation(Core, SMALL).run(body)
