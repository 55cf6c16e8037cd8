"""The AXI ports in Amaranth's simulator, in every detail; `tests/sim/test_axi.py` has third-party agents on them."""

import random

from hypothesis import given, settings, strategies as st

from splitjoin.circuit.registers import REGISTERS
from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.link.axi import Packetizer
from splitjoin_hw.link.axil import AxiLiteSlave
from tests.testbench.pauses import random_pauses

from ...support.sampling import examples
from ...support.simulations import simulation

WORDS = {reg.address + n: reg for reg in REGISTERS for n in range(reg.bits // 32)}
WRITABLE = {at for at, reg in WORDS.items() if reg.access == "rw"}
HIGHS = {reg.address + 1: reg.address for reg in REGISTERS if reg.bits == 64}
IDLE, BEATS = 5, 7


class Bus:
    """The register bus as the circuit has it: words three cycles late, high words latched with their low words."""

    def __init__(self, tb, words):
        self._tb, self._words, self._high = tb, words, {at: words[at] for at in HIGHS}
        self._addr, self._w_stb, self._w_data = tb.watch("addr"), tb.watch("w_stb"), tb.watch("w_data")
        self._late = [0, 0]
        self.written = []

    def drive(self):
        self._tb.set("r_data", self._late[0])

    def observe(self, cycle):
        at = self._addr()
        if at + 1 in HIGHS:
            self._high[at + 1] = self._words[at + 1]
        value = self._high[at] if at in HIGHS else self._words.get(at, 0xDEAD)
        self._late = [self._late[1], value]
        if self._w_stb():
            self.written.append((at, self._w_data()))
            self._words[at] = self._w_data()


class Channel:
    """One AXI channel that a master drives: offers ``items`` (dicts of fields) in order, and keeps each offer."""

    def __init__(self, tb, name, items, pauses):
        self._tb, self._name, self._items, self._pauses = tb, name, list(items), pauses
        self._ready = tb.watch(f"{name}ready")
        self._offering = False

    def drive(self):
        if not self._offering and self._items and not next(self._pauses):
            self._offering = True
            for field, value in self._items[0].items():
                self._tb.set(f"{self._name}{field}", value)
        self._tb.set(f"{self._name}valid", self._offering)

    def observe(self, cycle):
        if self._offering and self._ready():
            self._items.pop(0)
            self._offering = False


class Replies:
    """A channel that a master takes replies from; a reply must stay as it is until it is taken."""

    def __init__(self, tb, name, fields, pauses):
        self._tb, self._name, self._pauses = tb, name, pauses
        self._valid = tb.watch(f"{name}valid")
        self._fields = [tb.watch(f"{name}{field}") for field in fields]
        self._waiting, self._accepts = None, False
        self.got = []

    def drive(self):
        self._accepts = not next(self._pauses)
        self._tb.set(f"{self._name}ready", self._accepts)

    def observe(self, cycle):
        values = tuple(get() for get in self._fields)
        if self._waiting is not None:
            assert self._valid() and values == self._waiting, f"{self._name}: a reply changed before it was taken"
        self._waiting = None
        if self._valid() and self._accepts:
            self.got.append(values)
        elif self._valid():
            self._waiting = values


def test_a_write_of_some_bytes_of_a_high_word_keeps_the_others_of_this_word():
    """The high word that a read gives is the one latched with its low word, here of another register."""
    async def body(tb):
        high = next(at for at in HIGHS if at in WRITABLE)
        words = {at: 0x01010101 * at for at in WORDS}
        bus = Bus(tb, words)
        bus._high[high] = 0xFFFFFFFF
        b = Replies(tb, "b", ["resp"], random_pauses(0, 0.0))
        for agent in (bus, b, Channel(tb, "aw", [{"addr": 4 * high}], random_pauses(0, 0.0)),
                      Channel(tb, "w", [{"data": 0xAABBCCDD, "strb": 4}], random_pauses(0, 0.0))):
            tb.attach(agent)
        await tb.run(lambda: b.got, limit=100)
        assert bus.written == [(high, (0x01010101 * high) & ~0xFF0000 | 0xBB0000)]

    simulation(AxiLiteSlave, 5).run(body)


@given(st.lists(st.tuples(st.sampled_from([ItemKind.PAIR, ItemKind.PAIR, ItemKind.STAR, ItemKind.END]),
                          st.integers(0, 2**14 - 1)), min_size=1, max_size=40), st.integers(0, 2**32))
@settings(max_examples=examples(40))
def test_packets_end_in_time_and_lose_nothing(items, seed):
    async def body(tb):
        chance = random.Random(seed)
        sent = [kind | value << 2 for kind, value in items]
        source = tb.source("i", sent, random_pauses(chance.getrandbits(32), chance.choice([0.0, 0.4, 0.9])))
        sink = tb.sink("o", random_pauses(chance.getrandbits(32), chance.choice([0.0, 0.4])))
        await tb.run(lambda: len(sink.items) == len(sent), limit=4000)
        got = [(item % 2**16, item >> 16) for item in sink.items]
        assert [item for item, _ in got] == sent
        assert got[-1][1], "the last item of all ends a packet"
        beat = 0
        for n, (item, last) in enumerate(got):
            beat += 1
            must = item & 3 == ItemKind.END or beat == BEATS
            quick = n + 1 < len(got) and source.cycles[n + 1] - source.cycles[n] <= 1
            assert last or not must, "a packet must end with END, and when it is full"
            assert not last or must or not quick, "a packet ended although another item followed at once"
            beat = 0 if last else beat

    simulation(Packetizer, 16, idle=IDLE, beats=BEATS).run(body)


def test_packets_have_no_bubbles():
    async def body(tb):
        sink = tb.sink("o")
        tb.source("i", [4 * n for n in range(30)])
        await tb.run(lambda: len(sink.items) == 30, limit=100)
        assert sink.cycles[28] - sink.cycles[0] == 28
        assert [item >> 16 for item in sink.items] == [n % BEATS == BEATS - 1 for n in range(29)] + [True]
        assert sink.cycles[29] - sink.cycles[28] <= IDLE + 1

    simulation(Packetizer, 16, idle=IDLE, beats=BEATS).run(body)
