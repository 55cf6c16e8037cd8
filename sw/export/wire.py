"""The wire format of circuits in words and bytes: the page docs/wire.md, and helpers beside a circuit's Verilog.

Run ``python -m splitjoin.export.wire`` to print the page. Both come from `splitjoin.circuit.wire` and
`splitjoin.circuit.registers`.
"""

from __future__ import annotations

import pprint
import textwrap

import pyarrow as pa

from ..arrival import arrivals
from ..circuit.axi import CONTROL_WORD, AxiShape
from ..circuit.lowering import configure, plan_for
from ..circuit.parameters import CircuitParameters
from ..circuit.registers import REGISTERS
from ..circuit.wire import Configuration, ItemKind, Op, OrderMode, Record
from ..lang.query import Query
from ..lang.schema import Schema
from .vectors import vectors

__all__ = ["wire_helpers", "wire_page"]

_ON = "abs(r.x - s.a) <= 3 AND r.p < s.q"
_MEANINGS = {
    "op": "the kind of the record", "stream": "0: R, 1: S", "ts": "event time, modulo 2^width, in ticks of the host",
    "body": "a tuple's keys and bounds, low bits first; or a core number for MASK",
    "kind": "the kind of the item", "side": "the stream whose probe found it: 0 R, 1 S", "r": "row id of the R tuple",
    "s": "row id of the S tuple",
}


def _table(record: Record, width: int) -> list[str]:
    lines = ["| bits | field | |", "|---|---|---|"]
    for name, (at, bits) in record.offsets().items():
        lines.append(f"| {at + bits - 1 if bits > 1 else ''}{':' if bits > 1 else ''}{at} | `{name}` | "
                     f"{_MEANINGS.get(name, _key_meaning(name))} |")
    return [*lines, f"| {width - 1}:{record.width} | | 0 |"] if width > record.width else lines


def _key_meaning(name: str) -> str:
    number = name.removeprefix("key").removeprefix("lo").removeprefix("hi")
    if name.startswith("key"):
        return f"key {number}, with which the tuple is stored"
    return f"{'lowest' if name.startswith('lo') else 'highest'} key of the other stream that test {number} accepts"


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
    plan = plan_for(query, parameters)
    config = configure(query, plan, parameters)
    given = vectors(query, plan, config, arrivals(query, r, s))
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
    settings = [f"| {next(reg.name for reg in REGISTERS if reg.address <= at < reg.address + reg.bits // 32)} | {at} | "
                f"`{value:08x}` |" for at, value in given.writes]
    registers = [f"| {reg.address} | 0x{4 * reg.address:02X} | `{reg.name}` | {reg.bits} | {reg.access} | {reg.unit} | "
                 f"{reg.description.replace('|', '/')} |" for reg in REGISTERS]
    return "\n".join([
        "# The wire format", "",
        _text("""A circuit takes input records and gives result items; settings and counters are registers.
            `python -m splitjoin.export.wire` writes this page from the definitions that circuits and drivers use, and a
            test compares them. A record's fields are packed from bit 0 on without gaps. On AXI and on the
            [link](link.md), byte 0 holds bits 7 to 0. Which fields a record has follows from the query: the JSON file
            beside the Verilog lists them, and with `--testbench` a Python module beside it packs and
            unpacks them."""), "",
        "## An example", "",
        _text(f"""The query is `{_ON}` with the window RANGE 100; `x` and `a` are of type int32, `p` and `q` of type
            float32. Its records have {record.width} bits, in beats of {shape.record_bytes} bytes on AXI4-Stream. An
            input record:"""), "",
        *_table(record, 8 * shape.record_bytes), "",
        "The body of an R tuple:", "", *_table(config.body("r"), 0), "",
        _text("Kinds of records: " + ", ".join(f"{op.value} {op.name}" for op in Op) + ". Orders: "
              + ", ".join(f"{mode.value} {mode.name.lower()}" for mode in OrderMode) + "."), "",
        _text("""Keys are unsigned. A signed integer becomes its distance from the least value of its type: −2^31 is
            0, and −5 is 0x7ffffffb. A float becomes its bits, with the sign bit set if it is positive, and all of them
            inverted if it is negative, so that keys compare as floats do (−0.0 is 0.0). A tuple that may match no key
            brings an interval whose low end is above its high end. Where all intervals of a test are equally wide, as
            in the band of this query, the circuit knows the width, and a record has the low end alone, modulo twice the
            key's range."""), "",
        _text("""R's tuple (ts 1000, x −5, p −0.25) and S's tuple (ts 1001, a −3, q 1.5), low byte first, without
            trailing zeros; event times count from the first tuple:"""),
        "", "| record | bytes | fields |", "|---|---|---|", *worked, "",
        "Before them the driver writes the settings:", "", "| register | word address | value |", "|---|---|---|",
        *settings, "",
        "## Items", "", *_table(config.item_record, 8 * shape.item_bytes), "",
        _text("Kinds: " + ", ".join(f"{kind.value} {kind.name}" for kind in ItemKind) + """ (SLICE stays within the
            circuit). With `root_width` 2 or 4 a record has two or four places for items, the first one in the lowest
            bits and each with the fields above. There kind 3 marks a place without an item, behind the last item, and
            an END comes alone. In a STAR the row id of the stream `side` is the last probe that it covers; the other
            row id has no meaning, as have both in END. The answer to the example, with 0 where there is no
            meaning:"""), "",
        "| item | bytes | fields |", "|---|---|---|", *items, "",
        "## Registers", "",
        _text("""Registers are words of 32 bits, at word addresses on the register bus and the link, and at byte
            addresses on AXI4-Lite. A register of 64 bits has its low word first; reading it latches the high
            word."""), "",
        "| word | byte | register | bits | access | unit | |", "|---|---|---|---|---|---|---|", *registers,
        f"| {CONTROL_WORD} | 0x{4 * CONTROL_WORD:02X} | `control` | 32 | w | | AXI only: writing 1 to bit 0 resets the "
        f"join |", ""])


def _text(words: str) -> str:
    return textwrap.fill(" ".join(words.split()), 120, break_on_hyphens=False, break_long_words=False)


_HELPERS = '''\
"""Packs input records and unpacks result items of the circuit {abi}; needs nothing but Python.

Fields are (name, bits), from bit 0 on. Numbers go on the wire least significant byte first.
"""

RECORD_BYTES, ITEM_BYTES = {record_bytes}, {item_bytes}  # of a beat of AXI4-Stream
FIELDS = {fields}
OPS = {ops}
KINDS = {kinds}
REGISTERS = {registers}  # word addresses; the byte address on AXI4-Lite is four times that


def pack(fields, values):
    """The number that has ``values`` (name -> unsigned integer, 0 if left out) in ``fields``."""
    unknown = set(values) - {{name for name, _ in fields}}
    if unknown:
        raise ValueError(f"fields must be among {{[name for name, _ in fields]}}, not {{sorted(unknown)}}")
    number = at = 0
    for name, bits in fields:
        value = values.get(name, 0)
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{{name}} must be from 0 to 2**{{bits}} - 1, not {{value}}")
        number |= value << at
        at += bits
    return number


def unpack(fields, number):
    """The values of ``fields`` in ``number``, by name."""
    values = {{}}
    for name, bits in fields:
        values[name] = number & (1 << bits) - 1
        number >>= bits
    return values


def tuple_record(side, body, ts=0):
    """The bytes of a beat with a tuple of stream ``side`` ("r" or "s"); ``body``: its keys and bounds by name."""
    values = {{"op": OPS["TUPLE"], "stream": "rs".index(side), "body": pack(FIELDS[f"body_{{side}}"], body)}}
    if any(name == "ts" for name, _ in FIELDS["input"]):
        values["ts"] = ts
    return pack(FIELDS["input"], values).to_bytes(RECORD_BYTES, "little")


def flush_record():
    """The bytes of a beat that ends the input."""
    return pack(FIELDS["input"], {{"op": OPS["FLUSH"]}}).to_bytes(RECORD_BYTES, "little")


def unpack_item(data):
    """An item by its fields, from the bytes of a beat."""
    return unpack(FIELDS["output"], int.from_bytes(data, "little"))
'''


def wire_helpers(config: Configuration) -> str:
    """The text of ``splitjoin_wire.py``, a module without dependencies for the records and items of ``config``."""
    shape = AxiShape.of(config)
    described = {name: [tuple(field) for field in fields] for name, fields in config.describe()["records"].items()}
    return _HELPERS.format(
        abi=f"{config.abi_hash:016x}", record_bytes=shape.record_bytes, item_bytes=shape.item_bytes,
        fields=pprint.pformat(described, width=110), ops={op.name: op.value for op in Op},
        kinds={kind.name: kind.value for kind in ItemKind},
        registers=pprint.pformat({reg.name: reg.address for reg in REGISTERS}, width=100, sort_dicts=False))


if __name__ == "__main__":
    print(wire_page(), end="")
