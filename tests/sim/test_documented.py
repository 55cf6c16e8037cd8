"""A bench that knows a circuit from its JSON file and the pages docs/wire.md, axi.md and circuits.md alone.

It packs records itself, drives the ports that the JSON file names, and compares the items with joins by brute force. It
also checks that the vectors of testbenches are the same records and items.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from amaranth.hdl import Fragment
from amaranth.sim import Simulator

import splitjoin
from splitjoin.circuit.export.vectors import random_arrivals, vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.joins.circuit_component import query_description
from splitjoin_hw.component import JoinComponent
from splitjoin_hw.link.axi import AxiJoin
from splitjoin_hw.verilog import AXI_TOP, sidecar

from ..support.sampling import at_length

R = pa.schema([pa.field("ts", pa.int64()), pa.field("x", pa.int32(), nullable=False)])
S = pa.schema([pa.field("ts", pa.int64()), pa.field("a", pa.int32(), nullable=False), pa.field("p", pa.int16())])
#: RANGE of both windows, in ticks.
RANGE = 40
TUPLES = 24

Design = dict[str, Any]


class Sort(NamedTuple):
    """A sort of circuit: the reach of its band, 0 for an equality, parameters, kind and order of the query."""

    parameters: dict[str, Any]
    reach: int = 3
    how: str = "inner"
    aggregate: dict[str, str] | None = None
    order: str = "total"
    window: Any = f"RANGE {RANGE}"
    axi: bool = False


AGGREGATES = {"n": "count(*)", "total": "sum(s.p)", "low": "min(s.p)", "mean": "avg(s.p)"}
SORTS = {
    "scan": Sort({"cores": 2, "probes": 2}),
    "axi": Sort({"cores": 1}, axi=True),
    "hash": Sort({"cores": 1, "core": "hash"}, reach=0),
    "bucket": Sort({"cores": 1, "core": "bucket"}),
    "tables": Sort({"cores": 1, "tables": True, "probes": 4}),
    "queue": Sort({"cores": 1, "queue": 64}, order="none"),
    "wide-2": Sort({"cores": 1, "root_width": 2}),
    "wide-4": Sort({"cores": 2, "root_width": 4}, order="outer(1)"),
    "fold": Sort({"cores": 2}, how="left", aggregate=AGGREGATES),
    "fold-axi": Sort({"cores": 1}, how="left", aggregate={"n": "count(*)"}, axi=True),
    "fold-earlier": Sort({"cores": 1}, how="left", aggregate=AGGREGATES, window=("RANGE 0", f"RANGE {RANGE}")),
    "semi": Sort({"cores": 1}, how="semi"),
    "asof": Sort({"cores": 1}, how="asof"),
    "small": Sort({"small": True}),
}
#: The sorts that differ most in what a bench must know.
SHORT = {"axi", "bucket", "fold", "semi", "small"}


class Tuple(NamedTuple):
    """A tuple of stream ``side``, 0 for R: its time, its key as an integer of 32 bits, and S's nullable value."""

    side: int
    ts: int
    key: int
    value: int | None = None


# What follows is written from the pages.

def pack(fields: list[Any], values: dict[str, int]) -> int:
    number = at = 0
    for name, bits in fields:
        value = values.pop(name, 0)
        assert 0 <= value < 1 << bits, (name, value)
        number |= value << at
        at += bits
    assert not values, values
    return number


def unpack(fields: list[Any], number: int) -> dict[str, int]:
    out = {}
    for name, bits in fields:
        out[name] = number & (1 << bits) - 1
        number >>= bits
    return out


def tuple_record(design: Design, given: Tuple, reach: int) -> int:
    """The record of a tuple: its key and the interval around it, and its cells and values where there are such."""
    fields = dict(design["records"][f"body_{'rs'[given.side]}"])
    key = given.key + 2**31
    low, high = max(0, key - reach), min(2**32 - 1, key + reach)
    body = {"key0": key}
    width = (design["configuration"]["widths"] or [None])[0]
    body |= {"lo0": low, "hi0": high} if width is None else {"lo0": (key - width // 2) % 2 ** fields["lo0"]}
    if "cell0" in fields:
        cells = 1 << fields["cell0"]
        body |= {"cell0": key // 8 % cells, "first0": low // 8 % cells, "span0": min(2, high // 8 - low // 8)}
    if given.side == 1 and design.get("state"):
        for value in design["state"]["values"]:
            assert value["of"] == "s.p"
            body[value["field"]] = (int(given.value is not None) if value["field"].startswith("present") else
                                    (given.value or 0) % 2 ** fields[value["field"]])
    return record(design, "TUPLE", given.side, given.ts, pack(list(fields.items()), body))


def record(design: Design, op: str, stream: int = 0, ts: int = 0, body: int = 0) -> int:
    return pack(design["records"]["input"], {"op": design["opcodes"][op], "stream": stream, "ts": ts, "body": body})


def read_tuple(design: Design, number: int) -> Tuple:
    """The tuple of a record that the host made."""
    fields = unpack(design["records"]["input"], number)
    assert fields["op"] == design["opcodes"]["TUPLE"]
    body = unpack(design["records"][f"body_{'rs'[fields['stream']]}"], fields["body"])
    value = None
    if "value0" in body and body.get("present0", 1):
        bits = dict(design["records"]["body_s"])["value0"]
        value = body["value0"] - (body["value0"] >> bits - 1 << bits)
    return Tuple(fields["stream"], fields["ts"], body["key0"] - 2**31, value)


def items(design: Design, payload: int) -> Iterator[dict[str, int]]:
    """The items of an output record, without what has no meaning."""
    fields = unpack(design["records"]["output"], payload)
    width = design["configuration"].get("root_width", 1)
    for n in range(width):
        item = {name: fields[name if width == 1 else f"{name}{n}"] for name in ("kind", "side", "r", "s")}
        if item["kind"] != 3:
            yield meaning(design, item)


def meaning(design: Design, item: dict[str, int]) -> dict[str, int]:
    if item["kind"] == design["item_kinds"]["END"]:
        return item | {"side": 0, "r": 0, "s": 0}
    if item["kind"] == design["item_kinds"]["STAR"] and (item["side"] or not design.get("state")):
        return item | {"r" if item["side"] else "s": 0}
    return item


def state_items(design: Design, row: int, state: dict[str, int]) -> list[dict[str, int]]:
    """The items that carry ``state`` of R's tuple ``row``."""
    fields = design["records"]["state"]
    number = pack(fields, {name: state.get(name, 0) % 2**bits for name, bits in fields})
    kinds, out = design["item_kinds"], []
    for n in range(design["state"]["items"] - 1):
        part = number >> 64 * n
        out.append({"kind": kinds["PAIR"], "side": 0, "r": part % 2**32, "s": part >> 32 & 2**32 - 1})
    last = number >> 64 * len(out)
    return [*out, {"kind": kinds["STAR"], "side": 0, "r": row, "s": last}]


def state_of(design: Design, partners: list[tuple[int, int | None]]) -> dict[str, int]:
    """The state of a tuple of R that has ``partners``: their row ids and values."""
    values = [value for _, value in partners if value is not None]
    state = {"any": int(bool(partners))} | {slot["field"]: slot["initial"] for slot in design["state"]["slots"]}
    fold = {"count(*)": [len(partners)], "sum(s.p)": [sum(values)], "min(s.p)": [min(values)] if values else [],
            "avg(s.p)": [sum(values), len(values)],
            "max of the row ids of S": [max(row for row, _ in partners)] if partners else []}
    for result in design["state"]["results"]:
        state |= dict(zip(result["slots"], fold[result["of"]], strict=False))
        for name in result["slots"]:
            part = f"added{name.removeprefix('slot').partition('_')[0]}"
            state |= {part: int(bool(values))} if part in dict(design["records"]["state"]) else {}
    return state


class Model:
    """The join by brute force: what each record adds to the answer, in order ``total``."""

    def __init__(self, design: Design, sort: Sort):
        self._design, self._sort, self._kinds = design, sort, design["item_kinds"]
        state = design.get("state")
        self._whole, self._first = (state["whole"], state["first_hits"]) if state else (False, False)
        self._stored: tuple[list[Tuple], list[Tuple]] = ([], [])
        self._partners: list[list[tuple[int, int | None]]] = []
        self._left = 0  # tuples of R whose whole states have left
        self._masked: set[int] = set()
        self._hit: set[int] = set()

    def tuple(self, given: Tuple) -> list[dict[str, int]]:
        """The items that follow from a tuple."""
        out = self.tick(given.ts)
        side, others = given.side, self._stored[1 - given.side]
        row, earlier = len(self._stored[side]), []
        length = self._design["settings"][f"range_{'sr'[side]}"]
        for n, other in enumerate(others):
            if (abs(given.key - other.key) <= self._sort.reach and given.ts - other.ts <= length
                    and (self._sort.how != "asof" or side == 1 or other.ts <= given.ts)
                    and n % self._design["configuration"]["cores"] not in self._masked):
                earlier.append((n, other.value))
        self._stored[side].append(given)
        if side == 0:
            self._partners.append(earlier)
        if self._whole:
            for n, _ in earlier if side else []:
                self._partners[n].append((row, given.value))
            return out
        if side == 0 and self._design.get("state"):
            return state_items(self._design, row, state_of(self._design, earlier))
        for n, _ in earlier:
            if not (self._first and n in self._hit):
                r, s = (n, row) if side else (row, n)
                out.append({"kind": self._kinds["PAIR"], "side": side, "r": r, "s": s})
                self._hit |= {n} if side else set()
        star = [] if not self._design["settings"]["precision"] else [
            {"kind": self._kinds["STAR"], "side": side, "r": 0 if side else row, "s": row if side else 0}]
        return out + star

    def tick(self, now: int | None) -> list[dict[str, int]]:
        """The whole states that leave when event time reaches ``now``, or None for its end."""
        out: list[dict[str, int]] = []
        while self._whole and self._left < len(self._partners) and (
                now is None or now - self._stored[0][self._left].ts > self._design["settings"]["range_r"]):
            out += state_items(self._design, self._left, state_of(self._design, self._partners[self._left]))
            self._left += 1
        return out

    def mask(self, core: int) -> None:
        """From here on core ``core`` is masked."""
        self._masked.add(core)

    @property
    def end(self) -> list[dict[str, int]]:
        """The item END."""
        return [{"kind": self._kinds["END"], "side": 0, "r": 0, "s": 0}]


class Ports:
    """The ports of a component by the names in the JSON file."""

    def __init__(self, component: Any, design: Design):
        self._signals = {}
        for name, port in design["ports"].items():
            found = component
            for part in name.split("__"):
                found = getattr(found, part, None)
            assert name in ("clk", "rst") or len(found) == port["width"], name
            self._signals[name] = found
        self.axi = "axi" in design

    def __getitem__(self, name: str) -> Any:
        return self._signals[name]


def drive(component: Any, design: Design, records: list[int]) -> list[dict[str, int]]:
    """The items that the circuit answers to ``records``, sent with random pauses after the settings."""
    ports, rng = Ports(component, design), random.Random(1)
    axi = ports.axi
    sink = ("s_axis_tdata", "s_axis_tvalid", "s_axis_tready") if axi else ("i__payload", "i__valid", "i__ready")
    source = ("m_axis_tdata", "m_axis_tvalid", "m_axis_tready") if axi else ("o__payload", "o__valid", "o__ready")
    got: list[dict[str, int]] = []
    ends = sum(unpack(design["records"]["input"], number)["op"] == design["opcodes"]["FLUSH"] for number in records)

    async def write(ctx: Any, address: int, word: int) -> None:
        if not axi:
            ctx.set(ports["addr"], address)
            ctx.set(ports["w_data"], word)
            ctx.set(ports["w_stb"], 1)
            await ctx.tick()
            ctx.set(ports["w_stb"], 0)
            return
        ctx.set(ports["s_axil_awaddr"], 4 * address)
        ctx.set(ports["s_axil_wdata"], word)
        ctx.set(ports["s_axil_wstrb"], 15)
        waiting = {"aw", "w"}
        for channel in waiting:
            ctx.set(ports[f"s_axil_{channel}valid"], 1)
        while waiting:
            _, _, *taken = await ctx.tick().sample(*(ports[f"s_axil_{channel}ready"] for channel in sorted(waiting)))
            for channel, ready in zip(sorted(waiting), taken, strict=True):
                if ready:
                    ctx.set(ports[f"s_axil_{channel}valid"], 0)
                    waiting.remove(channel)
        ctx.set(ports["s_axil_bready"], 1)
        await ctx.tick().until(ports["s_axil_bvalid"])
        ctx.set(ports["s_axil_bready"], 0)

    async def send(ctx: Any) -> None:
        if axi:
            ctx.set(ports["aresetn"], 0)
            await ctx.tick().repeat(2)
            ctx.set(ports["aresetn"], 1)
        words = {reg["name"]: reg for reg in design["registers"]}
        for name, value in design["settings"].items():
            for n in range(words[name]["bits"] // 32):
                await write(ctx, words[name]["address"] + n, value >> 32 * n & 0xFFFFFFFF)
        for number in records:
            while rng.random() < 0.2:
                await ctx.tick()
            ctx.set(ports[sink[0]], number)
            ctx.set(ports[sink[1]], 1)
            await ctx.tick().until(ports[sink[2]])
            ctx.set(ports[sink[1]], 0)

    async def receive(ctx: Any) -> None:
        found = 0
        for _ in range(20_000):
            ctx.set(ports[source[2]], rng.random() < 0.8)
            _, _, valid, ready, payload = await ctx.tick().sample(ports[source[1]], ports[source[2]], ports[source[0]])
            if valid and ready:
                got.extend(items(design, payload))
                found = sum(item["kind"] == design["item_kinds"]["END"] for item in got)
            if found == ends:
                return
        raise AssertionError(f"{found} of {ends} ENDs came")

    simulator = Simulator(Fragment.get(component, None))
    simulator.add_clock(1e-6)
    simulator.add_testbench(send, background=True)
    simulator.add_testbench(receive)
    simulator.run()
    return got


@pytest.mark.parametrize("name", [name if name in SHORT else at_length(name) for name in SORTS])
def test_a_circuit_answers_as_the_pages_say(name: str) -> None:
    sort = SORTS[name]
    on = f"abs(r.x - s.a) <= {sort.reach}" if sort.reach else "r.x = s.a"
    query = splitjoin.query(R, S, on=on, window=sort.window, time="ts", how=sort.how, aggregate=sort.aggregate,
                            order=sort.order)
    parameters = {"capacity": 64, **sort.parameters}
    circuit = chosen_circuit(query, CircuitParameters(**parameters))
    if sort.axi:
        design = sidecar(circuit.config, AXI_TOP, axi=True) | query_description(query, circuit, parameters, on)
        component: Any = AxiJoin(circuit.config)
    else:
        component = splitjoin.component(query, **parameters)
        assert isinstance(component, JoinComponent)
        design = component.description
    assert bool(design.get("state")) == bool(circuit.config.folds)

    # The vectors of a testbench are the tuples' records, up to the cells of an index, and the answer by brute force.
    given = vectors(query, circuit, random_arrivals(query, TUPLES, seed=3))
    tuples = [read_tuple(design, number) for number in given.records[:-1]]
    model = Model(design, sort)
    wanted = [item for one in tuples for item in model.tuple(one)]
    wanted += (model.tick(None) if design["flush"]["stream"] else []) + model.end
    place = [(name.rstrip("0123456789"), bits) for name, bits in design["records"]["output"][:4]]
    assert_same([meaning(design, unpack(place, number)) for number in given.items], wanted, given.ordered)
    if "core" not in sort.parameters or sort.parameters["core"] == "hash":
        assert given.records[:-1] == [tuple_record(design, one, sort.reach) for one in tuples]
    assert unpack(design["records"]["input"], given.records[-1])["stream"] == design["flush"]["stream"]

    # In the middle comes a FLUSH, behind which the windows stay; in some circuits a mask, or a tick.
    model, half = Model(design, sort), len(tuples) // 2
    records, wanted = [], []
    for n, one in enumerate(tuples):
        if n == half:
            if design["configuration"]["cores"] > 1 and not design.get("state"):
                records.append(record(design, "MASK", 1, body=1))
                model.mask(1)
            if name.startswith("fold"):
                records.append(record(design, "TICK", ts=one.ts))
                wanted += model.tick(one.ts)
            # Circuits whose states do not leave whole ignore its stream bit.
            records.append(record(design, "FLUSH", 1 - design["flush"]["stream"]))
            wanted += model.end
        records.append(tuple_record(design, one, sort.reach))
        wanted += model.tuple(one)
    records.append(record(design, "FLUSH", design["flush"]["stream"]))
    wanted += (model.tick(None) if design["flush"]["stream"] else []) + model.end
    assert_same(drive(component, design, records), wanted, given.ordered)


def assert_same(found: list[dict[str, int]], wanted: list[dict[str, int]], ordered: bool) -> None:
    """The same items, in the same sequence if ``ordered``; otherwise END is the last one in both."""
    if ordered:
        assert found == wanted
    else:
        assert found[-1] == wanted[-1]
        assert Counter(tuple(item.items()) for item in found) == Counter(tuple(item.items()) for item in wanted)
