"""A Python module beside a circuit's Verilog that packs records and unpacks items, without dependencies."""

from __future__ import annotations

import pprint

from ..axi import AxiShape
from ..registers import REGISTERS
from ..wire import NO_ITEM, Configuration, ItemKind, Op

__all__ = ["wire_helpers"]

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


def record(op, values):
    """The bytes of a beat with a record of kind ``op`` that has ``values`` in its fields."""
    return pack(FIELDS["input"], {{"op": OPS[op], **values}}).to_bytes(RECORD_BYTES, "little")


def tuple_record(side, body, ts=0):
    """The bytes of a beat with a tuple of stream ``side`` ("r" or "s"); ``body``: its keys and bounds by name."""
    values = {{"stream": "rs".index(side), "body": pack(FIELDS[f"body_{{side}}"], body)}}
    if any(name == "ts" for name, _ in FIELDS["input"]):
        values["ts"] = ts
    return record("TUPLE", values)
{tick}

def flush_record(last=True):
    """The bytes of a beat that the circuit answers with an END behind all results. {last}"""
    return record("FLUSH", {{{flush}}})


def mask_record(core, masked):
    """The bytes of a beat from which on probes find nothing in core ``core``, or, if not ``masked``, find it again."""
    return record("MASK", {{"stream": int(masked), "body": core}})

{items}'''
_TICK = '''

def tick_record(ts):
    """The bytes of a beat that says that event time has reached ``ts``: tuples expire, and no item comes for it."""
    return record("TICK", {{"ts": ts}})
'''
_ITEM = '''
def unpack_item(data):
    """An item by its fields, from the bytes of a beat."""
    return unpack(FIELDS["output"], int.from_bytes(data, "little"))
'''
_ITEMS = '''
def unpack_items(data):
    """The items of a beat, each by its fields, in their order."""
    found = unpack(FIELDS["output"], int.from_bytes(data, "little"))
    items = [{{name: found[f"{{name}}{{n}}"] for name in ("kind", "side", "r", "s")}} for n in range({places})]
    return [item for item in items if item["kind"] != {no_item}]
'''
_STATES = '''

SIGNED = {signed}  # slots in two's complement


def unpack_states(items):
    """The states among ``items`` in their order: the row id of a tuple of R, and its state by fields.

    An item that carries a state is of kind PAIR or STAR, and has side 0. The first ``items`` must begin a state.
    """
    states, number, at = [], 0, 0
    for item in items:
        if item["side"] or item["kind"] > KINDS["STAR"]:
            continue
        if item["kind"] == KINDS["PAIR"]:
            number |= (item["r"] | item["s"] << 32) << at
            at += 64
            continue
        state = unpack(FIELDS["state"], number | item["s"] << at)
        for name, bits in FIELDS["state"]:
            if name in SIGNED and state[name] >> bits - 1:
                state[name] -= 1 << bits
        states.append((item["r"], state))
        number = at = 0
    return states
'''


def wire_helpers(config: Configuration) -> str:
    """The text of ``splitjoin_wire.py``, a module without dependencies for the records and items of ``config``."""
    shape = AxiShape.of(config)
    described = {name: list(record.fields) for name, record in config.records.items()}
    items = _ITEM.format() if config.root_width == 1 else _ITEMS.format(places=config.root_width, no_item=NO_ITEM)
    if config.folds:
        signed = {f"slot{n}_{i}" for n, part in enumerate(config.folds) for i, slot in enumerate(part.slots)
                  if slot.signed}
        items += _STATES.format(signed=sorted(signed))
    last = "``last``: no tuple follows, so all states leave." if config.whole_states else (
        "``last`` makes no difference to this circuit.")
    return _HELPERS.format(
        abi=f"{config.abi_hash:016x}", record_bytes=shape.record_bytes, item_bytes=shape.item_bytes,
        fields=pprint.pformat(described, width=110), ops={op.name: op.value for op in Op},
        kinds={kind.name: kind.value for kind in ItemKind}, tick=_TICK.format() if config.time_bits else "", last=last,
        flush='"stream": int(last)' if config.whole_states else "", items=items,
        registers=pprint.pformat({reg.name: reg.address for reg in REGISTERS}, width=100, sort_dicts=False))
