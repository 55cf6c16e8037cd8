"""The wire format of circuits in words and bytes: the page docs/wire.md.

``python -m bench.wire_page`` writes it, from `splitjoin.circuit.wire` and
`splitjoin.circuit.registers`.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pyarrow as pa

from splitjoin.circuit.axi import CONTROL_WORD, MEMORY_WORD, AxiShape
from splitjoin.circuit.export.states import described_states
from splitjoin.circuit.export.vectors import vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import folding_circuit, pairs_circuit
from splitjoin.circuit.registers import REGISTERS, Register
from splitjoin.circuit.wire import ItemKind, Op, Record
from splitjoin.engines.arrival import arrivals
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

PAGE = Path(__file__).parents[1] / "docs" / "wire.md"

#: Of each kind of record: the meaning of ``stream``, the other fields that count, and what the circuit does.
_OPS = {
    Op.TUPLE: ("0: R, 1: S", "`ts`, `body`", "Tuples expire as of `ts`; then the tuple probes the other stream's "
               "window and is stored. Its row id is the number of tuples of its stream before it."),
    Op.TICK: ("–", "`ts`", "Event time has reached `ts`: tuples expire, and no item answers. Optional: a host sends "
              "one where no tuple comes for a while, so that states of expired tuples leave."),
    Op.FLUSH: ("1: no tuple follows; 0 otherwise", "–", "Closes each open group by a last star, and is answered by "
               "END behind all results so far; the windows stay. Where states leave whole, `stream` 1 makes all tuples "
               "of R expire, so that every state leaves; other circuits ignore the bit. The JSON file has the record "
               "that ends the input as `flush`."),
    Op.MASK: ("1: mask, 0: unmask", "`body`: a core's number", "From here on probes find nothing in this core, or find "
              "it again. No item answers."),
}
_ON = "abs(r.x - s.a) <= 3 AND r.p < s.q"
_MEANINGS = {
    "op": "the kind of the record", "stream": "0: R, 1: S", "ts": "event time, modulo 2^width, in ticks of the host",
    "body": "a tuple's keys and bounds, low bits first; or a core number for MASK",
    "kind": "the kind of the item", "side": "the stream whose probe found it: 0 R, 1 S", "r": "row id of the R tuple",
    "s": "row id of the S tuple",
}


#: Fields that the example's query does not have.
_FURTHER = (
    ("`atJ_N`", "sum tests ([sums](circuits.md#sums))", "the key of the other stream for which axis N of sum test J is "
     "0, modulo 2^bits; `sums` of `configuration` has the axes"),
    ("`keyN`", "formula tests ([formulas](circuits.md#formulas))", "a probe's own key, which is also its key to be "
     "stored: it is on the link once"),
    ("`limitJ`", "sum tests whose limit a column gives", "the sum of the axes, and of the stored tuple's added key if "
     "it has one, must be less"),
    ("`cellN`", "cores of kind `bucket` and `ordered` ([with an index](circuits.md#with-an-index))", "the cell of the "
     "tuple's key of test N of the index: any numbers that never decrease as keys grow, modulo the field's width"),
    ("`firstN`, `spanN`", "cores of kind `bucket`", "the first cell of the interval that the tuple probes with; the "
     "interval ends in it (0), in the next one (1), further (2), or is empty (3)"),
    ("`first0`, `cells0`", "cores of kind `ordered`", "the first cell that the tuple looks up, and the number of those "
     "that it looks up from there on, modulo the number of all: 0 to all"),
    ("`valueN`", "S, where states leave ([states](#states))", "a value to be folded, modulo 2^bits"),
    ("`presentN`", "S, where states leave", "1 if value N is not NULL"),
    ("`wrongN`", "S, where states leave", "1 if value N is outside the width that the aggregate's class states"),
)


def _table(record: Record, width: int) -> list[str]:
    lines = ["| bits | field | |", "|---|---|---|"]
    for name, (at, bits) in record.offsets().items():
        lines.append(f"| {_bit_range(at, bits)} | `{name}` | "
                     f"{_MEANINGS.get(name) or _key_meaning(name)} |")
    return [*lines, f"| {width - 1}:{record.width} | | 0 |"] if width > record.width else lines


#: Names of further fields, each with the number of a test, value or part, and their meanings.
_NUMBERED = (
    ("key", "key {0}, with which the tuple is stored"),
    ("lo", "lowest key of the other stream that test {0} accepts"),
    ("hi", "highest key of the other stream that test {0} accepts"),
    ("value", "value {0}, to be folded"),
    ("any", "1 if there is a partner"),
    ("slot", "number {0[1]} of part {0[0]}"),
)


def _key_meaning(name: str) -> str:
    kind = name.rstrip("0123456789_")
    number = name.removeprefix(kind)
    return dict(_NUMBERED)[kind].format(number.split("_") if "_" in number else number)


def _bit_range(low: int, bits: int) -> str:
    return f"{low}" if bits == 1 else f"{low + bits - 1}:{low}"


def _reset(reg: Register) -> str:
    if reg.reset is None:
        return {"abi": "its value", "cycles": "0, and counts"}[reg.name]
    return "all ones" if reg.reset == (1 << reg.bits) - 1 else f"0x{reg.reset:X}" if reg.reset > 9 else f"{reg.reset}"


def _bytes(number: int, count: int) -> str:
    return number.to_bytes(count, "little").hex(" ")


def wire_page() -> str:
    """The page docs/wire.md."""
    r = pa.table({"ts": pa.array([1000], pa.int64()), "x": pa.array([-5], pa.int32()),
                  "p": pa.array([-0.25], pa.float32())})
    s = pa.table({"ts": pa.array([1001], pa.int64()), "a": pa.array([-3], pa.int32()),
                  "q": pa.array([1.5], pa.float32())})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=_ON, window="RANGE 100", time="ts")
    parameters = CircuitParameters(cores=2, capacity=64)
    circuit = pairs_circuit(query, parameters)
    config = circuit.config
    given = vectors(query, circuit, arrivals(query, r, s))
    first, second, flush = given.records[:2] + given.records[-1:]
    shape, record = AxiShape.of(config), config.input_record
    body = record.offsets()["body"][0]

    def fields(of: Record, number: int) -> str:
        return ", ".join(f"`{name}` 0x{number >> at & (1 << bits) - 1:x}" for name, (at, bits) in of.offsets().items())

    records = [("the R tuple", first, config.body("r")), ("the S tuple", second, config.body("s")),
               ("FLUSH, the end of the input", flush, None)]
    worked = [f"| {name} | `{_bytes(number, -(-record.width // 8))}` | "
              f"{fields(Record(record.fields[:-1]), number)}{'; ' + fields(of, number >> body) if of else ''} |"
              for name, number, of in records]
    items = [f"| {ItemKind(number & 3).name} | `{_bytes(number, 9)}` | {fields(config.item_record, number)} |"
             for number in given.items]
    settings = ", ".join(f"{value:#x} to word {at}" for at, value in given.writes)
    registers = [f"| {reg.address} | `{reg.name}` | {reg.bits} | {reg.access} | "
                 f"{_reset(reg)} | {reg.unit} | {reg.description.replace('|', '/')} |" for reg in REGISTERS]
    parts = [f"| `{reg.name}` | {_bit_range(field.low, field.bits)} | `{field.name}` | {field.description} | "
             f"{', '.join(f'{number} `{name}`' for name, number in field.values)} |"
             for reg in REGISTERS if len(reg.fields) > 1 for field in reg.fields
             if not field.name.startswith("unused")]
    return "\n".join([
        "# The wire format", "",
        _text("""A circuit takes input records and gives result items; settings and counters are registers. `python -m
            bench.wire_page` writes this page. A record's fields are packed from bit 0 on without gaps. On AXI and on
            the [link](link.md), byte 0 holds bits 7 to 0. Which fields a record has follows from the query: the JSON
            file beside the Verilog lists them; with `--testbench`,
            [a Python module and a C header](circuits.md#pack-rows-for-a-circuit) pack rows into them and unpack
            items."""),
            "",
        "## An example", "",
        _text(f"""The query is `{_ON}` with the window RANGE 100; `x` and `a` are of type int32, `p` and `q` of type
            float32. Its records have {record.width} bits, in beats of {shape.record_bytes} bytes on AXI4-Stream. An
            input record:"""), "",
        *_table(record, 8 * shape.record_bytes), "",
        "The body of an R tuple:", "", *_table(config.body("r"), 0), "",
        "Kinds of records:", "",
        "| op | | `stream` | other fields | |", "|---|---|---|---|---|",
        *(f"| {op.value} | {op.name} | {' | '.join(_OPS[op])} |" for op in Op), "",
        _text("""Keys are unsigned. A signed integer becomes its distance from the least value of its type: −2^31 is
            0, and −5 is 0x7ffffffb. A float becomes its bits, with the sign bit set if it is positive, and all of them
            inverted if it is negative, so that keys compare as floats do (−0.0 is 0.0). A tuple that may match no key
            brings an interval whose low end is above its high end. Where all intervals of a test are equally wide, as
            in the band of this query, the circuit knows the width, and a record has the low end alone, modulo twice the
            key's range; without a key to match, that is the length of the key's range. `widths` of `configuration`
            in the JSON file has the width of each test, or null where a record has both ends."""), "",
        _text("""A text, or another key that is not a number, becomes any number that the host gives to it. A column
            that may be NULL has a key of one bit more, or a test of its own (`explain` in the JSON file)."""), "",
        _text("""Event times may begin anywhere. A gap between two records that is longer than the longest RANGE may be
            sent as one of RANGE + 1 ticks, and must be where the field is too narrow for it, as no stored tuple's age
            may reach the field's range."""), "",
        _text("Bodies of other queries have further fields:"), "",
        "| field | in | |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in _FURTHER), "",
        _text("""R's tuple (ts 1000, x −5, p −0.25) and S's tuple (ts 1001, a −3, q 1.5), low byte first, without
            trailing zeros; event times count from the first tuple:"""),
        "", "| record | bytes | fields |", "|---|---|---|", *worked, "",
        _text(f"Before them the driver writes the settings to the [registers](#registers): {settings}."), "",
        "## Items", "", *_table(config.item_record, 8 * shape.item_bytes), "",
        _text("Kinds: " + ", ".join(f"{kind.value} {kind.name}" for kind in ItemKind) + """ (SLICE stays within the
            circuit). With `root_width` 2 or 4 a record has two or four places for items, the first one in
            the lowest bits and each with the fields above. There kind 3 marks a place without an item,
            behind the last item, and an END comes alone. In a STAR the row id of the stream `side` is the
            last probe that it covers; the other row id has no meaning unless it carries a [state](#states),
            and in END neither has one. The answer to the example, with 0 where there is no meaning:"""), "",
        "| item | bytes | fields |", "|---|---|---|", *items, "",
        *_states_section(), "",
        "## Registers", "",
        _text("""Registers are words of 32 bits. The register bus and the link address words, AXI4-Lite bytes: 4 × the
            word. A register of 64 bits has its low word first; reading it latches the high word. *Reset* is the value
            after a reset and after power-up; it means no stars, and windows without limits. The host writes all
            settings before the first record."""), "",
        "| word | register | bits | access | reset | unit | |", "|---|---|---|---|---|---|---|", *registers,
        f"| {MEMORY_WORD} | `memory_base` | 64 | rw | 0 | | AXI with [external memory]"
        "(external-windows.md#with-axi-ports) only: where the windows lie |",
        f"| {CONTROL_WORD} | `control` | 32 | w | 0 | | AXI only: writing 1 to bit 0 resets the join |", "",
        _text("Circuits with `small` count tuples alone, and give results in the order total, whatever `order` says."),
        "",
        "Registers with fields (write 0 to all other bits):", "",
        "| register | bits | field | | values |", "|---|---|---|---|---|", *parts, "",
        _text("""With `fault_timeout`, `dead_cores` is the number of cores that are left out, and `last_probe` the row
            id of the probe of the region's last item (bits 31:0), 1 if that probe was complete (bit 32), and 1 if the
            core is left out (bit 33)."""), ""])


def _states_section() -> list[str]:
    """The section on folded states, with an example."""
    r = pa.table({"ts": pa.array([1000, 1002], pa.int64()), "x": pa.array([5, 80], pa.int32())})
    s = pa.table({"ts": pa.array([1000, 1001], pa.int64()), "a": pa.array([4, 7], pa.int32()),
                  "p": pa.array([-2, 9], pa.int16())})
    on, window, aggregate = "abs(r.x - s.a) <= 3", "RANGE 100", {"n": "count(*)", "low": "min(s.p)"}
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=window, time="ts",
                       how="left", aggregate=aggregate)
    circuit = folding_circuit(query, CircuitParameters(cores=2, capacity=64))
    config = circuit.config
    given = vectors(query, circuit, arrivals(query, r, s))
    state, shape = config.state, AxiShape.of(config)
    items = [f"| {ItemKind(number & 3).name} | `{_bytes(number, 9)}` | "
             + ", ".join(f"`{name}` 0x{number >> at & 2**bits - 1:x}"
                         for name, (at, bits) in config.item_record.offsets().items()) + " |" for number in given.items]
    described = described_states(query, circuit)["state"]
    # One line for each value, slot and result.
    lists = [f'  "{name}": [\n    ' + ",\n    ".join(map(json.dumps, rows)) + "\n  ]"
             for name, rows in described.items() if isinstance(rows, list)]
    plain = [f"  {json.dumps({name: value})[1:-1]}" for name, value in described.items() if not isinstance(value, list)]
    shown = "{\n" + ",\n".join([*plain, *lists]) + "\n}"
    return [
        "## States", "",
        _text("""A circuit that [folds aggregates](aggregates.md#in-circuits), or that runs a semi, anti or as-of join
            ([kinds](kinds.md#in-circuits)), gives a state of each tuple of R in place of pairs. Then the
            JSON file has the layout of a state as the record `state`, and its meaning as `state`."""), "",
        _text(f"""For example, with the condition `{on}`, the window {window}, and the aggregates
            {" and ".join(f"`{text}`" for text in aggregate.values())}, where `p` is of type int16, a state has
            {state.width} bits:"""), "",
        *_table(state, 0), "",
        _text("""The fields of a state are, from bit 0 on, `any`, which is 1 if the tuple has a partner, and then for
            each part N of the state: `addedN`, where values may be NULL: 1 if a partner is not NULL; `overN`, where a
            class of the user's states a width: 1 if a number has left it, and then the part has no meaning; and
            numbers `slotN_0`, `slotN_1` …, as `slots` describes them. Without a partner, or with NULLs alone, they have
            their initial values."""), "",
        "```text", shown, "```", "",
        _text("""An average has two slots, the sum and the count. A variance has three: the sum, the sum of the squares
            in units of 1/`denominator`², and the count. In as-of joins, slot `slot0_0` is the row id of the nearest of
            the earlier partners. In semi and anti joins a state has no number: `any` says all."""), "",
        _text("""`items` items with `side` 0 carry a state, its low bits first: items of kind PAIR carry 64 bits each,
            the low half in `r` and the high half in `s`, and then a STAR carries the last 32 bits in `s`, and the row
            id of its tuple in `r`. The states are those of R's tuples 0, 1, 2 …, without a gap; an item of side 1 may
            come between two of one state, unless the order is total."""), "",
        _bullet("""*`whole` true.* A state has all partners of its tuple, and leaves when that tuple expires: by a
            tuple or TICK of a later time, by ROWS, or by a FLUSH with `stream` 1. No items have side 1."""),
        _bullet("""*`whole` false.* A state has the partners that came before its tuple, and leaves in the tuple's
            turn as a probe, in every order of results. A partner that comes later leaves as an item PAIR of side 1 as
            in other circuits, and S has its stars. With `first_hits` true only the first such partner of each tuple of
            R leaves: so a tuple of a semi join has a partner if `any` is 1 or such a pair comes."""), "",
        _text(f"""R's tuples (ts 1000, x 5) and (1002, 80) and S's tuples (1000, 4, p −2) and (1001, 7, 9) arrive in the
            order of their times, and FLUSH with `stream` 1 follows. Items of {shape.item_bytes} bytes on AXI4-Stream
            answer:"""), "",
        "| item | bytes | fields |", "|---|---|---|", *items, "",
        _text("The first state is `any` 1, count 2, least value −2; the second tuple has no partner."),
    ]


def _text(words: str, first: str = "", others: str = "") -> str:
    return textwrap.fill(" ".join(words.split()), 120, break_on_hyphens=False, break_long_words=False,
                         initial_indent=first, subsequent_indent=others)


def _bullet(words: str) -> str:
    return _text(words, "- ", "  ")


def main() -> None:
    """Write the page."""
    PAGE.write_text(wire_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
