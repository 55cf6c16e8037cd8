from itertools import pairwise

import pytest

from splitjoin.circuit.geometry import position_bits
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.layouts import found_layout, task_layout
from splitjoin_hw.core.scanner import Scanner

from ...support.simulations import simulation

CAPACITY = 32
#: The ring holds those tuples and 16 more; its size is a power of two.
SLOTS = 64


def configuration(lanes, probes, wide=None):
    """A circuit with one test. ``wide``: the width of its interval, for look-up; None if probes have both ends."""
    tables = wide is not None
    return Configuration(keys_r=(4,), keys_s=(4,), tests=((0, 0),), tree=0, cores=3, capacity=CAPACITY, lanes=lanes,
                         probes=probes, widths=(wide,) if tables else (), tables=tables)


class Ring:
    """Memories behind the read ports, two cycles away, of a ring whose position p holds ``contents[p]``."""

    def __init__(self, tb, config, contents):
        self._tb, self._contents, self._lanes = tb, contents, config.lanes
        self._rows = [tb.watch(f"rows__{n}") for n in range(config.lanes)]
        self._pipeline = [[0] * config.lanes] * 2

    def drive(self):
        for lane, key in enumerate(self._pipeline.pop(0)):
            self._tb.set(f"keys__{lane}", key)

    def observe(self, cycle):
        slots = [row() * self._lanes + lane for lane, row in enumerate(self._rows)]
        self._pipeline.append([self._contents[slot] for slot in slots])


class Outcomes:
    """The outcomes of the scanner, pass by pass: a list of hits per read."""

    def __init__(self, tb, config):
        self._layout = found_layout(config)
        self._valid, self._found = tb.watch("found_valid"), tb.watch("found")
        self.passes = [[]]
        self.cycles = []

    def drive(self):
        pass

    def observe(self, cycle):
        if self._valid():
            found = self._layout.from_bits(self._found())
            self.passes[-1].append(found.hits)
            self.cycles.append(cycle)
            if found.last:
                self.passes.append([])


def prepare(tb, config, contents, tasks, idle=None):
    tb.attach(Ring(tb, config, contents))
    outcomes = Outcomes(tb, config)
    tb.attach(outcomes)
    tb.set("room", 1)
    layout = task_layout(config, "r")
    bits = position_bits(config)
    source = tb.source("task", [
        layout.const({"start": start % 2**bits, "end": end % 2**bits, "count": end - start, "row": 3 * start,
                      "flush": flush, "bounds": {"lo0": low} if config.tables else {"lo0": low, "hi0": high}}).as_bits()
        for start, end, low, high, flush in tasks], idle)
    return source, outcomes


@pytest.mark.parametrize(("lanes", "probes"), [(1, 1), (1, 4), (2, 8), (4, 2), (4, 8)])
@pytest.mark.parametrize("start", [0, 5])
def test_a_read_a_cycle_with_no_cycle_between_passes(lanes, probes, start):
    """Windows of the whole ring, that begin in any lane, for four full batches."""
    config = configuration(lanes, probes)
    passes = 4 if probes * 2 <= CAPACITY // lanes else 2

    async def body(tb):
        tasks = [(start, start + CAPACITY, 0, 15, False)] * (probes * passes)
        _, outcomes = prepare(tb, config, [1] * SLOTS, tasks)
        tb.sink("batch")
        compared = tb.watch("compared")
        total = 0
        for _ in range(passes * CAPACITY + 60):
            await tb.step()
            total += compared()
        assert total == CAPACITY * probes * passes
        # The first probe finds the scanner idle and starts alone, so the last batch lacks one probe.
        sizes = [len(reads) for reads in outcomes.passes[:-1]]
        assert set(sizes) == {CAPACITY // lanes}
        assert {b - a for a, b in pairwise(outcomes.cycles)} == {1}
        # A pass must be long enough for the whole next batch to arrive meanwhile.
        assert (outcomes.passes[1][0] == (1 << probes * lanes) - 1) == (2 * probes < CAPACITY // lanes)

    simulation(Scanner, config, "r").run(body)


@pytest.mark.parametrize(("lanes", "probes"), [(1, 4), (2, 2), (1, 8)])
def test_passes_with_tables_follow_each_other_too(lanes, probes):
    """A pass is long enough here for the next batch to arrive and to be written meanwhile."""
    config = configuration(lanes, probes, 3)

    async def body(tb):
        _, outcomes = prepare(tb, config, [1] * SLOTS, [(5, 5 + CAPACITY, 0, 3, False)] * (1 + 4 * probes))
        tb.sink("batch")
        await tb.run(lambda: len(outcomes.passes) == 6, limit=6 * CAPACITY + 60)
        assert {len(reads) for reads in outcomes.passes[:-1]} == {CAPACITY // lanes}
        assert {b - a for a, b in pairwise(outcomes.cycles)} == {1}
        assert [reads[0].bit_count() for reads in outcomes.passes[1:-1]] == [probes * lanes] * 4

    simulation(Scanner, config, "r").run(body)


def test_no_read_without_room():
    config = configuration(2, 2)

    async def body(tb):
        _, outcomes = prepare(tb, config, [1] * SLOTS, [(0, 12, 0, 15, False)])
        tb.sink("batch")
        scanning, position = tb.watch("scanning"), tb.watch("position")
        await tb.run(lambda: tb.cycle and position() == 2, limit=30)
        tb.set("room", 0)
        await tb.steps(30)
        assert (scanning(), position(), len(outcomes.passes[0])) == (1, 4, 2)
        tb.set("room", 1)
        await tb.steps(30)
        assert (scanning(), len(outcomes.passes[0])) == (0, 6)

    simulation(Scanner, config, "r").run(body)


def test_probes_that_wait_protect_their_windows():
    config = configuration(1, 2)

    async def body(tb):
        tasks = [(start, start + 20, 0, 15, False) for start in (3, 7, 9, 11)]
        prepare(tb, config, [1] * SLOTS, tasks)
        waiting, first, scanning, position = (tb.watch(n) for n in ("waiting", "first", "scanning", "position"))
        tb.sink("batch")
        await tb.steps(9)
        assert (scanning(), waiting(), first()) == (1, 1, 7)
        # The second batch, of the probes from 7 and 9 on, begins only after the first one's pass.
        assert 3 < position() < 23
        await tb.steps(23)
        assert (scanning(), waiting(), first()) == (1, 1, 11)
        await tb.steps(60)
        assert (scanning(), waiting()) == (0, 0)

    simulation(Scanner, config, "r").run(body)
