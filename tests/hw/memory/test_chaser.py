# amaranth: UnusedElaboratable=no
"""Regions whose windows lie in external memory: the same items as any region, whatever the memory does; and planted
faults, which are found.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.core.kinds import MemoryComponents
from splitjoin_hw.core.region import Region
from splitjoin_hw.core.storage import Storage
from splitjoin_hw.memory.chaser import Chaser
from splitjoin_hw.memory.port import AxiMaster
from splitjoin_hw.memory.store_unit import StoreUnit
from splitjoin_sim.memory import MemoryModel, SimulatedMemory
from tests.testbench.bodies import region
from tests.testbench.models import Operation, Window
from tests.testbench.on_amaranth import Simulation
from tests.testbench.pauses import Stalls

from ...support.planting import faulty
from ...support.sampling import at_length

#: Rings of 64 tuples, and four probes and stores at once.
CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=64, core="hash", index=(0,),
                       memory="axi", contexts=4)
#: Lines of several heads without records; cells of three neighbouring keys each, of which a probe looks up two at most.
SHARED, CELLS = replace(CONFIG, memory="sdram"), replace(CONFIG, core="bucket")
#: One of two cores: the first one has every other key; or, with lines of two heads, every other two.
ROUTED = replace(CONFIG, cores=2)
ROUTED_SHARED = replace(ROUTED, keys_r=(32,), keys_s=(32,), memory_width=64)
#: Answers, and reads and writes, overtake each other; none do; channels stall.
WILD, CALM, SLOW = (SimulatedMemory(latency=2, reorder=60), SimulatedMemory(latency=1), SimulatedMemory(
    latency=1, interval=3, stall=0.5))


#: Operations, the rows of the window, a memory and its seed.
Case = tuple[list[Operation], int, SimulatedMemory, int]


class RegionWithMaster(Region):
    """A region of S behind an AXI4 master, ``bus``, of which it has one side."""

    def __init__(self, config: Configuration) -> None:
        super().__init__(config, "s")
        self.master = AxiMaster(config)
        self.bus = self.master.bus

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        m.submodules.master = self.master
        wiring.connect(m, self.memory, self.master.regions[1])
        return m


class Bench:
    """A region that is simulated again and again, each time with a memory of its own."""

    def __init__(self, config: Configuration = CONFIG, index: int = 0) -> None:
        self._config, self._index = config, index
        component = RegionWithMaster(config)
        self._memory, self._seed = WILD, 0

        async def memory(context: Any) -> None:
            await MemoryModel(component.bus, self._memory, self._seed).play(context)

        self._simulation = Simulation(component)
        self._simulation.add_process(memory)

    def run(self, case: Case) -> None:
        """Its items are those of the model."""
        ops, rows, self._memory, self._seed = case

        async def body(tb: Any) -> None:
            await region(tb, self._config, "s", self._index, Window(rows=rows),
                         [*ops, Operation(Op.FLUSH)], Stalls(False, False), limit=2500)

        self._simulation.run(body)


def stored(key: int) -> Operation:
    return Operation(Op.TUPLE, 1, 0, (key,), ((0, 0),))


def probe(key: int) -> Operation:
    return Operation(Op.TUPLE, 0, 0, (0,), ((key, key),))


def wide(low: int, high: int) -> Operation:
    """A probe that reads the whole window, as it asks for several keys."""
    return Operation(Op.TUPLE, 0, 0, (0,), ((low, high),))


def mixed(seed: int) -> list[Operation]:
    """Stores and probes of few keys, so that they meet, in runs; of all bits of a bucket's number, and of two cores."""
    rng = random.Random(seed)
    return [rng.choice((stored, probe))(rng.choice((0, 1, 1, 38))) for _ in range(24)]


def bands(seed: int) -> list[Operation]:
    """Stores of few neighbouring keys, and probes of three of them, in runs."""
    rng = random.Random(seed)
    return [rng.choice((stored(key), wide(key, key + 2))) for key in (rng.randrange(7) for _ in range(30))]


CASES: dict[str, Case] = {
    "wild": (mixed(0), 8, WILD, 0), "slow": (mixed(2), 8, SLOW, 2),
    # Probes that read the whole window, right behind stores.
    "whole": ([stored(1), wide(0, 9), stored(7), stored(0), wide(0, 9), *mixed(3)[:8], wide(1, 2), stored(5), stored(1),
               stored(4), wide(0, 5)], 8, WILD, 3),
    # A tuple of a key that is longer gone than a link reaches.
    "old": ([stored(1), *(stored(2 + n % 7) for n in range(129)), stored(1), probe(1)], 64, CALM, 0),
}
#: The last candidate of these probes has come with its head, when the list of hits is full.
FULL: Case = ([stored(4), *[stored(1)] * 16, *[wide(1, 4)] * 4], 64, CALM, 0)
CELL_CASES: dict[str, Case] = {"bands": (bands(0), 8, WILD, 0), "slow": (bands(1), 8, SLOW, 1),
                               "whole": CASES["whole"], "full": FULL}


@pytest.mark.parametrize("config", [at_length(CONFIG), SHARED, CELLS])
def test_same_items_as_the_model(config: Configuration) -> None:
    bench = Bench(config)
    for case in CELL_CASES.values() if config is CELLS else CASES.values():
        bench.run(case)


@pytest.mark.parametrize(("config", "index"), [at_length(ROUTED, 0), at_length(ROUTED, 1), (ROUTED_SHARED, 1)])
def test_a_core_of_several_gives_the_pairs_of_its_keys_and_all_stars(config: Configuration, index: int) -> None:
    bench = Bench(config, index)
    for case in CASES.values():
        bench.run(case)


@pytest.mark.parametrize(("case", "part", "function", "old", "new"), [
    # A look-up reads a line of heads while a store in it is under way; so does the next store.
    ("wild", StoreUnit, "elaborate",
     "step.any() | Cat(under_way[n] & (lines[n] == self.look) for n in range(k)).any()", "step.any()"),
    ("wild", StoreUnit, "elaborate", "Cat(asked[n] & (lines[n] == lines[asks]) for n in range(k)).any()", "Const(0)"),
    # A probe that reads the whole window does so before its youngest tuples are written.
    ("whole", Chaser, "_accept", "~(held.whole & self.storing)", "1"),
    # A link reaches further than its bits.
    ("old", StoreUnit, "elaborate", "(head != 0) & (distance <= reach)", "head != 0"),
    # Tuples that came after the probe; a hit in another probe's list; a probe that leaves before it has read all.
    ("slow", Chaser, "_step", "valid & records & (before.offset < f.count)", "valid & records"),
    ("wild", Chaser, "_step", "Cat(count_read.data[:-1], step.context)", "Cat(count_read.data[:-1], c.oldest)"),
    ("wild", Chaser, "_drain", "opened & drained & of['finished'] & ~again.due", "opened & drained & ~again.due"),
    # A request has the id of the one behind it.
    ("wild", AxiMaster, "elaborate", "Cat(reads.o.p.number, reads.source)",
     "Cat(regions[1].read.payload.number, reads.source)")])
def test_planted_faults_are_found(case: str, part: type, function: str, old: str, new: str) -> None:
    with patch.object(part, function, faulty(part, function, old, new)):
        bench = Bench()  # its parts are elaborated here
    with pytest.raises(AssertionError):
        bench.run(CASES[case])


@pytest.mark.parametrize(("case", "old", "new"), [
    # The outcome of another chain's comparison; a link that came with another answer; a list without room; a chain
    # whose youngest tuple counts twice.
    ("bands", "Mux(step.looked[n], match[0], step.cursors[n].match)",
     "Mux(step.looked.any(), match[0], step.cursors[n].match)"),
    ("bands", "Mux(before.known, before.link, link)", "link"),
    ("full", "done & reads & room & decision.known", "done & reads & decision.known"),
    ("bands", "(cause == Cause.START) | (records & (number == n))", "cause == Cause.START")])
def test_faults_planted_where_heads_have_records_are_found(case: str, old: str, new: str) -> None:
    with patch.object(Chaser, "_step", faulty(Chaser, "_step", old, new)):
        bench = Bench(CELLS)
    with pytest.raises(AssertionError):
        bench.run(CELL_CASES[case])


@pytest.mark.parametrize(("case", "index", "part", "function", "old", "new"), [
    # A star passes a core that still has hits of an earlier probe; a probe that finds nothing in a core has no star.
    ("wild", 0, Chaser, "_drain", "Mux(c.level != 0, ahead, (c.passed != 0) & ~c.allocated)", "c.passed != 0"),
    ("wild", 0, Storage, "elaborate", "self.here | (self.window.precision != 0)", "self.here"),
    # A probe that reads the whole window reads one core's, and what other cores have not written.
    ("whole", 1, MemoryComponents, "route", "whole | Cat(due & mine(bucket) for due, bucket in lookups).any()",
     "lookups[0][0] & mine(lookups[0][1])"),
    ("whole", 0, StoreUnit, "elaborate", "given.before.eq(self.youngest)", "given.before.eq(1)")])
def test_faults_planted_between_cores_are_found(case: str, index: int, part: type, function: str, old: str,
                                                new: str) -> None:
    with patch.object(part, function, faulty(part, function, old, new)):
        bench = Bench(ROUTED, index)
    with pytest.raises(AssertionError):
        bench.run(CASES[case])
