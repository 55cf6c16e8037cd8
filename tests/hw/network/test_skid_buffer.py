import pytest
from amaranth.lib import data

from splitjoin_hw.network.skid_buffer import SkidBuffer
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import flowing, scripted

from ...support.simulations import simulation


def test_an_item_a_cycle_with_a_latency_of_one():
    async def body(tb):
        source, sink = tb.source("i", range(50)), tb.sink("o")
        await tb.run(lambda: len(sink.items) == 50, limit=100)
        assert source.cycles == list(range(50))
        assert sink.cycles == list(range(1, 51))

    simulation(SkidBuffer, 8).run(body)


@pytest.mark.parametrize("wait", [1, 2, 3, 10])
def test_ready_is_a_register(wait):
    """A transfer at the output affects ``i.ready`` a cycle later, never in the same cycle."""
    async def body(tb):
        source = tb.source("i", range(9), flowing())
        tb.sink("o", scripted([True] * (1 + wait)))
        ready = tb.watch("i__ready")
        seen = []
        for _ in range(wait + 4):
            await tb.step()
            seen.append(ready())
        # The buffer holds two items; one leaves in cycle wait + 1, and ``i.ready`` is high in the cycle after it.
        assert seen == [1] * min(2, wait + 1) + [0] * max(0, wait) + [1] * (4 - min(2, wait + 1))
        assert source.cycles[:2] == [0, 1]

    simulation(SkidBuffer, 8).run(body)


def test_payload_may_be_a_struct():
    shape = data.StructLayout({"a": 3, "b": 5})

    async def body(tb):
        tb.source("i", [0b10101_011])
        sink = tb.sink("o")
        await tb.run(lambda: sink.items, limit=10)
        assert sink.items == [0b10101_011]

    buffer = SkidBuffer(shape)
    assert buffer.shape == shape
    simulate(buffer, body)
