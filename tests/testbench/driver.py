"""The whole circuit in a bench: its register bus, and queries with the golden model's answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from splitjoin.circuit.encode import Encoder, Words
from splitjoin.circuit.lowering import configure, settings, unlowered
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.registers import MAGIC, REGISTERS, register
from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import STAR, Items
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.pipeline import make_plan

from .bodies import combined
from .checks import check_answer
from .models import Item, Window, first_without_room
from .pauses import Stalls
from .testbench import StreamSink, Testbench

__all__ = ["Case", "Registers", "answer", "case", "check_counters", "overflowing", "top_configuration"]

#: The predicate of all cases.
_ON = "abs(r.x - s.a) <= 3"


class Registers:
    """The register bus."""

    def __init__(self, tb: Testbench):
        self._tb = tb
        self._data = tb.watch("r_data")

    async def read(self, name: str) -> int:
        """The value of register ``name``."""
        reg = register(name)
        value = 0
        for n in range(reg.bits // 32):
            self._tb.set("addr", reg.address + n)
            await self._tb.steps(4)  # one edge registers the address, two read; the next sample is the word
            value |= self._data() << 32 * n
        return value

    async def write(self, name: str, value: int) -> None:
        """Set register ``name``."""
        reg = register(name)
        for n in range(reg.bits // 32):
            self._tb.set("addr", reg.address + n)
            self._tb.set("w_data", value >> 32 * n & 0xFFFFFFFF)
            self._tb.set("w_stb", 1)
            await self._tb.step()
        self._tb.set("w_stb", 0)


@dataclass(frozen=True)
class Case:
    """A query, its input as records and as (stream, event time), and the golden model's answer as (stream, item)."""

    query: Query
    config: Configuration
    tuples: tuple[int, int]
    records: list[int]
    arrivals: list[tuple[str, int]]
    wanted: list[tuple[int, Item]]
    comparisons: int


def top_configuration(cores: int, fanout: int, fanin: int, capacity: int = 4, lanes: int = 1, probes: int = 1,
                      ) -> Configuration:
    """The circuit that `case` runs on."""
    query = Query.make(*_schemas(), on=_ON, window="RANGE 9", time="ts")
    parameters = CircuitParameters(cores=cores, capacity=capacity, fanout=fanout, fanin=fanin, lanes=lanes,
                                   probes=probes)
    return configure(query, unlowered(make_plan(query.predicate), parameters), parameters)


def case(config: Configuration, rng: random.Random, *, window: tuple[str, str], order: str, count: int = 50,
         pace: float = 1.0) -> Case:
    """``count`` tuples of both streams, in bursts; ``pace``: event time per tuple, on average."""
    rows: dict[str, list[tuple[int, int]]] = {"r": [], "s": []}
    now = 0
    while sum(map(len, rows.values())) < count:
        side = rng.choice("rs")
        for _ in range(rng.choice([1, 1, 5])):
            now += int(rng.expovariate(1 / pace))
            rows[side].append((now, rng.randrange(-6, 7)))
    r, s = (_table(side, rows[side]) for side in "rs")
    query = Query.make(*_schemas(), on=_ON, window=window, time="ts", order=order)
    incoming = arrivals(query, r, s)
    lengths = [w.length for w in (query.window_r, query.window_s) if w.length is not None]
    parameters = CircuitParameters(core=config.core, capacity=config.capacity)
    encoder = Encoder(unlowered(make_plan(query.predicate), parameters), config, max(lengths))
    records = [*_integers(encoder.encode(incoming)), *_integers(encoder.flush(last=True))]
    with device("golden", cores=config.cores).open(query) as session:
        session.push(incoming)
        wanted, counters = _plain(session.flush()), session.counters()
    assert incoming.ts is not None
    times = list(zip(("rs"[n] for n in incoming.stream), incoming.ts.tolist(), strict=True))
    return Case(query, config, (len(r), len(s)), records, times, wanted, counters["comparisons"])


async def answer(tb: Testbench, job: Case, stalls: Stalls) -> tuple[Registers, StreamSink]:
    """Program the circuit, run ``job``, and fail unless the answer is the golden model's."""
    registers = Registers(tb)
    assert await registers.read("id") == MAGIC
    assert await registers.read("abi") == job.config.abi_hash
    for name, value in settings(job.query, job.config).items():
        await registers.write(name, value)
        assert await registers.read(name) == value, f"register {name} does not hold what was written"
    tb.source("i", job.records, stalls.source())
    sink = tb.sink("o", stalls.sink())
    await tb.run(lambda: bool(sink.items) and sink.items[-1] & 3 == ItemKind.END,
                 limit=2000 + 60 * (len(job.records) + len(job.wanted)) + len(job.records) * 3 * job.config.capacity)
    await tb.steps(24)
    found = [combined(payload) for payload in sink.items]
    assert found[-1][1].kind == ItemKind.END, f"{found[-1]} came after END"
    check_answer(found[:-1], job.wanted, job.query.order.kind)
    return registers, sink


async def check_counters(registers: Registers, job: Case) -> None:
    """Fail unless the counters agree with the golden model. To be called after `answer`."""
    values = {reg.name: await registers.read(reg.name) for reg in REGISTERS if reg.access == "r"}
    pairs = sum(item.kind == ItemKind.PAIR for _, item in job.wanted)
    wanted = {"tuples_r": job.tuples[0], "tuples_s": job.tuples[1], "comparisons": job.comparisons, "matches": pairs,
              "overflow": 0}
    assert {name: values[name] for name in wanted} == wanted


async def overflowing(tb: Testbench, config: Configuration, rng: random.Random, order: str, stalls: Stalls) -> None:
    """RANGE windows that outgrow the circuit: it must stop, and name the first tuple in arrival order without room."""
    while True:
        length = rng.randint(4, 12) * config.cores
        job = case(config, rng, window=(f"RANGE {length}", f"RANGE {length}"), order=order, count=30 * config.cores,
                   pace=1.2)
        wanted = first_without_room(job.arrivals, config, {side: Window(length=length) for side in "rs"})
        if wanted is not None:
            break
    registers = Registers(tb)
    for name, value in settings(job.query, config).items():
        await registers.write(name, value)
    source = tb.source("i", job.records, stalls.source())
    sink = tb.sink("o", stalls.sink())
    moved, quiet = 0, 0
    while quiet < 600:
        await tb.steps(50)
        quiet, moved = (quiet + 50 if len(source.cycles) + len(sink.cycles) == moved else 0,
                        len(source.cycles) + len(sink.cycles))
        assert tb.cycle < 60000, "the circuit must stop when a window outgrows it"
    assert not sink.items or sink.items[-1] & 3 != ItemKind.END, "END in spite of an overflow"
    side, row = wanted
    assert await registers.read("overflow") == (1 if side == "r" else 2), f"{side}#{row} was first without room"
    assert await registers.read(f"overflow_row_{side}") == row
    # All results that were emitted are right.
    found = [combined(payload) for payload in sink.items]
    wrong = {item for item in found if item[1].kind == ItemKind.PAIR} - set(job.wanted)
    assert not wrong, f"wrong pairs before the overflow: {wrong}"


def _table(side: str, rows: Sequence[tuple[int, int]]) -> pa.Table:
    return pa.table([[row[n] for row in rows] for n in (0, 1)], schema=_columns(side))


def _columns(side: str) -> pa.Schema:
    value = "x" if side == "r" else "a"
    return pa.schema([pa.field("ts", pa.int64(), nullable=False), pa.field(value, pa.int16(), nullable=False)])


def _schemas() -> tuple[Schema, Schema]:
    return Schema.from_table("r", _columns("r").empty_table()), Schema.from_table("s", _columns("s").empty_table())


def _integers(records: Words) -> list[int]:
    return [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in records]


def _plain(items: Items) -> list[tuple[int, Item]]:
    out = []
    for i in items:
        side, ids = int(i["side"]), (int(i["r"]), int(i["s"]))
        kind = ItemKind.STAR if i["kind"] == STAR else ItemKind.PAIR
        out.append((side, Item(kind, ids[side], ids[1 - side]).essence()))
    return out
