# amaranth: UnusedElaboratable=no
"""The prober against a plain model: the tuples that a probe is compared with, and its hits, youngest first."""

from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.core_kinds import Span
from splitjoin.circuit.geometry import PASSES, position_bits, ring_rows
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.kinds import CORE_COMPONENTS
from splitjoin_hw.core.layouts import batch_layout, found_layout, task_layout
from tests.testbench.core_kinds import CORE_MODELS, cell_of
from tests.testbench.pauses import flowing, scripted

from ...support.simulations import simulation

CAPACITY = 16
CONFIGS = {
    "hash": Configuration(keys_r=(4,), keys_s=(4,), tests=((0, 0),), tree=0, capacity=CAPACITY, core="hash",
                          index=(0,)),
    "bucket": Configuration(keys_r=(5,), keys_s=(5,), tests=((0, 0),), tree=0, capacity=CAPACITY, core="bucket",
                            index=(0,)),
    "bucket, two tests": Configuration(keys_r=(5, 4), keys_s=(5, 4), tests=((0, 0), (1, 1)), tree=("and", 0, 1),
                                       capacity=CAPACITY, core="bucket", index=(0, 1)),
    "bucket, one of two": Configuration(keys_r=(5, 4), keys_s=(5, 4), tests=((0, 0), (1, 1)), tree=("and", 0, 1),
                                        capacity=CAPACITY, core="bucket", index=(0,))}


class Bench(wiring.Component):
    """A prober whose look-ups are granted in the cycles in which ``free`` is high, as an index does."""

    def __init__(self, config):
        self._prober = CORE_COMPONENTS[config.core].processing(config, "s")
        self.latency = self._prober.latency
        ports = {name: member for name, member in self._prober.signature.members.items() if name != "granted"}
        super().__init__({**ports, "free": In(1), "granted": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.prober = prober = self._prober
        for name in self._prober.signature.members:
            if name != "granted":
                wiring.connect(m, *self._ends(name)) if name in ("task", "batch") else self._wire(m, name)
        m.d.comb += [prober.granted.eq(prober.look & self.free), self.granted.eq(prober.granted)]
        return m

    def _ends(self, name):
        return wiring.flipped(getattr(self, name)), getattr(self._prober, name)

    def _wire(self, m, name):
        outer, inner = getattr(self, name), getattr(self._prober, name)
        flow = self._prober.signature.members[name].flow
        pairs = zip(outer, inner, strict=True) if name in ("rows", "keys") else [(outer, inner)]
        for port, part in pairs:
            m.d.comb += part.eq(port) if flow == In else port.eq(part)


@dataclass(frozen=True)
class Task:
    """A probe of the tuples from number ``start`` to ``end``."""

    start: int
    end: int
    bounds: tuple[tuple[int, int], ...]
    masked: bool = False
    flush: bool = False


class Memories:
    """A ring with the tuples ``contents``, the first at position ``base``, and their index. Tuples enter the index one
    by one, except in pauses of ``slow``. Read data is valid two cycles later, the flag that a bucket has a tuple three.
    """

    def __init__(self, tb, config, contents, base, slow, free):
        self._tb, self._config, self._base, self._slow, self._free = tb, config, base, slow, free
        slots = [config.tests[j][1] for j in config.index]
        model = CORE_MODELS[config.core]
        self._contents = contents
        self._buckets = [model.bucket(config, "s", [model.cell(keys[n]) for n in slots]) for keys in contents]
        self._known = 0
        self._row, self._bucket = tb.watch("rows__0"), tb.watch("bucket")
        self._reads, self._heads, self._lives = [0, 0], [None, None], [None, None, None]
        tb.attach(self)

    def drive(self):
        tb, bits = self._tb, position_bits(self._config)
        tb.set("known", (self._base + self._known) % 2**bits)
        tb.set("free", not next(self._free))
        number = self._reads.pop(0)
        tb.set("keys__0", self._packed(number))
        tb.set("distance", self._distance(number))
        head, live = self._heads.pop(0), self._lives.pop(0)
        tb.set("head", 0 if head is None else (self._base + head) % 2**bits)
        tb.set("live", live is not None)

    def observe(self, cycle):
        number = (self._row() - self._base) % ring_rows(self._config)
        self._reads.append(number if number < len(self._contents) else 0)
        stored = [n for n in range(self._known) if self._buckets[n] == self._bucket()]
        self._heads.append(stored[-1] if stored else None)
        self._lives.append(stored[-1] if stored else None)
        if self._known < len(self._contents) and not next(self._slow):
            self._known += 1

    def _packed(self, number):
        keys, at, word = self._contents[number], 0, 0
        for key, width in zip(keys, self._config.keys_s, strict=True):
            word, at = word | key << at, at + width
        return word

    def _distance(self, number):
        older = [n for n in range(number) if self._buckets[n] == self._buckets[number]]
        return number - older[-1] if older else 0


class Outcomes:
    """Collects the hits of each pass, and the number of comparisons counted; drives ``room``, low in pauses."""

    def __init__(self, tb, config, blocked):
        self._tb, self._blocked, self._layout = tb, blocked, found_layout(config)
        self._valid, self._found, self._compared = (tb.watch(n) for n in ("found_valid", "found", "compared"))
        self._spills = tb.watch("spills")
        self.passes, self.compared, self.spills = [[]], 0, 0
        tb.attach(self)

    def drive(self):
        self._tb.set("room", not next(self._blocked))

    def observe(self, cycle):
        self.compared += self._compared()
        self.spills += self._spills()
        if self._valid():
            found = self._layout.from_bits(self._found())
            self.passes[-1] += [found.group] * found.hits
            if found.last:
                self.passes.append([])


def packed(config, base, task):
    bits = position_bits(config)
    fields = {"start": (base + task.start) % 2**bits, "end": (base + task.end) % 2**bits,
              "count": 0 if task.flush else task.end - task.start, "row": 5 * task.start, "masked": task.masked,
              "flush": task.flush,
              "bounds": {name: bound[edge] for n, bound in enumerate(task.bounds)
                         for edge, name in enumerate((f"lo{n}", f"hi{n}"))}}
    if config.core == "bucket":
        fields["reach"] = {}
        for n, (j, cell_bits) in enumerate(zip(config.index, config.kind.index_widths(config, "s"), strict=True)):
            low, high = task.bounds[j]
            span = Span.NONE if low > high else min(cell_of(high) - cell_of(low), Span.MANY)
            fields["reach"] |= {f"first{n}": cell_of(low) % 2**cell_bits, f"span{n}": span}
    return task_layout(config, "s").const(fields).as_bits()


def within(bounds, keys):
    return all(low <= key <= high for (low, high), key in zip(bounds, keys, strict=True))


async def run(tb, config, base, contents, tasks, *, slow, free, idle, blocked, backpressure):
    Memories(tb, config, contents, base, slow, free)
    outcomes = Outcomes(tb, config, blocked)
    source = tb.source("task", [packed(config, base, task) for task in tasks], idle)
    sink = tb.sink("batch", backpressure)
    await tb.run(lambda: not source.queue and len(sink.items) == len(tasks) == len(outcomes.passes) - 1,
                 limit=800 + len(tasks) * (40 + 6 * CAPACITY))
    await tb.steps(40)
    compared = spills = 0
    for task, payload, found in zip(tasks, sink.items, outcomes.passes, strict=False):
        batch = batch_layout(config).from_bits(payload)
        empty = task.flush or task.start == task.end
        assert (batch.row, batch.probes, batch.flush, batch.count) == (5 * task.start, 0, task.flush, 0 if empty else
                                                                       task.end - task.start)
        reached = CORE_MODELS[config.core].candidates(config, "s", task.bounds)
        live = [] if task.masked or empty else range(task.start, task.end)
        assert found == [n - task.start for n in reversed(live) if within(task.bounds, contents[n])]
        compared += sum(reached(contents[n]) for n in live)
        spills += bool(live) and all(map(reached, _every_key(config)))
    assert len(outcomes.passes) == len(tasks) + 1
    assert (outcomes.compared, outcomes.spills) == (compared, spills)
    return outcomes, sink


def _every_key(config):
    """Keys so far apart that no probe that looks up buckets reaches all of them."""
    first, *rest = config.keys_s
    return [(key, *[0] * len(rest)) for key in range(2**first)] + [(0, *[2**w - 1 for w in rest])] * bool(rest)


def test_no_look_up_before_the_tuples_that_came_before_are_in_the_index():
    config = CONFIGS["hash"]

    async def body(tb):
        granted = tb.watch("granted")
        Memories(tb, config, [(3,)] * 4, 0, scripted([True] * 50), flowing())
        tb.set("room", 1)
        tb.source("task", [packed(config, 0, Task(0, 4, ((3, 3),)))])
        for _ in range(52):
            await tb.step()
            assert not granted(), "the last tuple is not in the index"
        await tb.run(granted, limit=12)

    simulation(Bench, config).run(body)


def test_nothing_is_read_without_room():
    config = CONFIGS["bucket"]

    async def body(tb):
        Memories(tb, config, [(7,)] * CAPACITY, 0, flowing(), flowing())
        tb.source("task", [packed(config, 0, Task(0, CAPACITY, ((7, 7),)))] * 2)
        reads, valid = tb.watch("reads"), tb.watch("found_valid")
        tb.sink("batch")
        await tb.steps(80)
        assert not reads()
        tb.set("room", 1)
        await tb.run(reads, limit=3)
        tb.set("room", 0)
        await tb.steps(30)
        assert not (reads() or valid()), "one that was under way came, and no more"

    simulation(Bench, config).run(body)


def test_as_many_passes_begin_as_the_queue_of_batches_holds():
    """Batches are not taken: the next probe waits after its look-ups."""
    config = CONFIGS["hash"]

    async def body(tb):
        Memories(tb, config, [(7,)] * 2, 0, flowing(), flowing())
        outcomes = Outcomes(tb, config, flowing())
        source = tb.source("task", [packed(config, 0, Task(0, 2, ((7, 7),)))] * 9)
        waiting = tb.watch("waiting")
        sink = tb.sink("batch", scripted([True] * 300))
        await tb.steps(300)
        assert len(outcomes.passes) - 1 == PASSES
        assert (len(source.queue), waiting()) == (9 - PASSES - 1, 1)
        await tb.run(lambda: len(sink.items) == 9, limit=400)

    simulation(Bench, config).run(body)
