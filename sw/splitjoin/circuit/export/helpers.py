"""A Python module beside a circuit's Verilog that packs records and unpacks items, without dependencies."""

from __future__ import annotations

import pprint
from dataclasses import asdict

from ..axi import AxiShape
from ..registers import REGISTERS
from ..wire import NO_ITEM, Configuration, ItemKind, Op
from .rows import RowFields, Term

_HELPERS = '''\
"""Packs rows and input records, and unpacks result items of the circuit {abi}; needs nothing but Python.

Fields are (name, bits), from bit 0 on. Numbers go on the wire least significant byte first.
"""

import datetime
import struct
from fractions import Fraction

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

#: Row functions: what a row's columns must be, and the values of the fields by it.
_ROWS = '''

COLUMNS = {columns}
_TICKS = {{"day": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1, "ns": Fraction(1, 1_000)}}  # in microseconds
_EPOCH = datetime.datetime(1970, 1, 1)


def _values(side, row):
    return {{name: _value(f"{{side}}.{{name}}", column, row, name) for name, column in COLUMNS[side].items()}}


def _value(said, column, row, name):
    if not hasattr(row, "keys"):
        raise ValueError(f"a row must be a mapping of columns to values, not {{type(row).__name__}}")
    if name not in row:
        raise ValueError(f"a row must have the column {{said}}, but has {{sorted(row)}}")
    value = row[name]
    if value is None:
        if column["null"]:
            return None
        raise ValueError(f"{{said}} must not be NULL")
    must = f"{{said}} must be of type {{column['type']}}"
    try:
        if column["bits"]:
            return struct.unpack(*_float(column["bits"], value))[0]
        number = Fraction(_whole(column, value)) * column["scale"]
    except (TypeError, ValueError, OverflowError, struct.error) as error:
        raise ValueError(f"{{must}}, not {{value!r}}: {{error}}") from None
    if number.denominator != 1 or not column["low"] <= number <= column["high"]:
        low, high, scale = column["low"], column["high"], column["scale"]
        of = "" if scale == 1 else f" / {{scale}}"
        raise ValueError(f"{{must}}, a whole number from {{low}} to {{high}}{{of}}, not {{value!r}}")
    return int(number)


def _whole(column, value):
    """A number, or the ticks of a time since 1970, in UTC if it has a zone; numbers are ticks already."""
    if column["unit"] and isinstance(value, datetime.date):
        if isinstance(value, datetime.datetime):
            if column["zoned"] != (value.tzinfo is not None):
                raise ValueError(f"it must have {{'a' if column['zoned'] else 'no'}} time zone")
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if column["zoned"] else value
        else:
            value = datetime.datetime(value.year, value.month, value.day)
        value -= _EPOCH
    if column["unit"] and isinstance(value, datetime.timedelta):
        return Fraction(value // datetime.timedelta(microseconds=1)) / _TICKS[column["unit"]]
    if isinstance(value, str):
        raise TypeError("it is a text")
    return value


def _float(bits, value):
    form = "<f" if bits == 32 else "<d"
    return form, struct.pack(form, value)


def _code(value, bits, nan):
    """The code of a float: its bits, so that codes compare as floats do; ``nan``: the code of NaN."""
    if value != value:
        return nan
    number = int.from_bytes(_float(bits, value or 0.0)[1], "little")
    return (1 << bits) - 1 - number if number >> bits - 1 else number | 1 << bits - 1
{clock}

def _record(side, fields{ts}):
    body = {{name: fields[name] & (1 << bits) - 1 for name, bits in FIELDS[f"body_{{side}}"]}}
    return tuple_record(side, body{ts})
'''
_CLOCK = '''

class Clock:
    """The time of a %s as the circuit counts it; ``clock(ts)`` for each tuple of both streams, in their order."""

    def __init__(self):
        self.last, self.now = None, 0

    def __call__(self, ts):
        """The number for event time ``ts``, in ticks. Raises ValueError if it is before the last one."""
        if self.last is not None and ts < self.last:
            raise ValueError(f"event times must not decrease, but {ts} comes after {self.last}")
        self.now = %s
        self.last = ts
        return self.now %% 2**%d
'''
_ENCODE = '''

def encode_{side}(row{clock}):
    """The bytes of a beat with the tuple of {title} whose columns ``row`` has by name; further columns are ignored.

    Decimals are Decimal or int, times of the package datetime or ticks, NULL is None. Raises ValueError.
    """
    {body}
'''


def _python(term: Term) -> str:
    """``term`` as an expression of the values ``v``."""
    if isinstance(term, int):
        return f"({term})" if term < 0 else str(term)
    if isinstance(term, str):
        return f"v[{term!r}]"
    op, *parts = term
    if op == "null":
        return f"(v[{parts[0]!r}] is None)"
    if op == "float":
        return f"_code(v[{parts[0]!r}], {parts[1]}, {parts[2]})"
    made = [_python(part) for part in parts]
    if op == "pick":
        return f"({made[1]} if {made[0]} else {made[2]})"
    if op in ("least", "most"):
        return f"{'min' if op == 'least' else 'max'}({', '.join(made)})"
    infix = " or " if op == "|" else f" {op} "
    return f"({infix.join(made)})"


def _row_functions(config: Configuration, rows: dict[str, RowFields] | str) -> str:
    clock = ", clock" if config.time_bits else ""
    if isinstance(rows, str):
        return "".join(_ENCODE.format(side=side, title=side.upper(), clock=clock,
                                      body=f"raise NotImplementedError({rows!r})") for side in "rs")
    columns = {side: {name: asdict(column) for name, column in of.columns.items()} for side, of in rows.items()}
    out = _ROWS.format(
        columns=pprint.pformat(columns, width=110, sort_dicts=False), ts=", ts" if clock else "",
        clock=_CLOCK % (*_counted(rows["r"].gap), config.time_bits) if clock else "")
    for side, of in rows.items():
        fields = "".join(f"        {name!r}: {_python(term)},\n" for name, term in of.fields.items())
        out += _ENCODE.format(side=side, title=side.upper(), clock=clock, body=(
            f'v = _values("{side}", row)\n    return _record("{side}", {{\n{fields}    }}'
            + (f", clock(v[{of.time!r}]))" if clock else ")")))
    return out


def _counted(gap: int | None) -> tuple[str, str]:
    """Whose time a clock counts, and the expression of its next number."""
    if gap is None:
        return "source", "ts"
    return "session", f"self.now + min(ts - (ts if self.last is None else self.last), {gap})"


def wire_helpers(config: Configuration, rows: dict[str, RowFields] | str) -> str:
    """The text of ``splitjoin_wire.py``, a module without dependencies for the records and items of ``config``.

    ``rows``: as of `splitjoin.circuit.export.rows.row_fields`, or the reason why there are no row functions.
    """
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
        registers=pprint.pformat({reg.name: reg.address for reg in REGISTERS}, width=100, sort_dicts=False),
        ) + _row_functions(config, rows)
