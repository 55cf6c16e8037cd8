# amaranth: UnusedElaboratable=no
import pytest
from amaranth.hdl import ClockDomain, Fragment, Module, Signal
from amaranth.lib import data
from amaranth.sim import Simulator

from splitjoin.circuit.geometry import register_tree_depth, register_tree_size
from splitjoin_hw.network.pipeline import PipelineRegister, pipelined, register_tree
from splitjoin_hw.parts import Submodules

LAYOUT = data.StructLayout({"low": 3, "high": 5})


class _Counted(Submodules):
    """Counts the parts that are made."""

    def __init__(self):
        self.parts = []

    def add(self, m, name, kind, make):
        assert kind == "pipeline_register8"
        self.parts.append(name)
        return super().add(m, name, kind, make)


@pytest.mark.parametrize(("loads", "late", "registers"),
                         [(1, 0, 0), (4, 0, 0), (5, 1, 4), (16, 1, 4), (17, 2, 8), (64, 2, 20), (65, 3, 24)])
def test_all_loads_see_the_source_at_most_as_many_cycles_late_as_the_tree_is_deep(loads, late, registers):
    m, parts, source = Module(), _Counted(), Signal(LAYOUT)
    found = register_tree(m, parts, "settings", source, loads)
    assert len(found) == loads
    assert register_tree_depth(loads) == late
    assert len(set(parts.parts)) == len(parts.parts) == registers == register_tree_size(loads)
    served = {id(place): sum(other is place for other in found) for place in found}
    assert max(served.values()) <= 4
    seen = [Signal(LAYOUT, name=f"seen{n}") for n in range(loads)]
    m.d.comb += [signal.eq(place) for signal, place in zip(seen, found, strict=True)]

    async def bench(ctx):
        for n in range(3 + late):
            ctx.set(source, {"low": 5, "high": 19})
            values = {(ctx.get(signal).low, ctx.get(signal).high) for signal in seen}
            assert values <= {(5, 19), (0, 0)}
            assert ((0, 0) not in values) == (n >= late)
            await ctx.tick()

    m.domains.sync = ClockDomain()
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_pipeline_register_has_the_shape_of_its_source():
    m = Module()
    assert pipelined(m, Submodules(), "a", Signal(LAYOUT)).shape() == LAYOUT
    assert len(pipelined(m, Submodules(), "b", Signal(7))) == 7
    Fragment.get(m, None)
    assert PipelineRegister(9).bits == 9
