"""The register map: 32-bit words, defined once for the circuit, the drivers, the benches and the sidecar.

A 64-bit value takes two addresses, the low word first. Settings are written before the first record after reset and
must not change while records are in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: The bit of the register ``overflow`` that is set when external memory has answered with an error.
MEMORY_FAULT = 2
#: The ID register: "SJ01" in ASCII.
MAGIC = 0x534A3031


@dataclass(frozen=True)
class RegisterField:
    """Some bits of a register of 32 bits: the lowest one, their number, and their meaning.

    ``values``: name → number of the values that have names.
    """

    name: str
    low: int
    bits: int
    description: str
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Register:
    """One register: word address, width in bits (32 or 64), access, meaning, and unit.

    ``reset``: its value after a reset and after power-up; None if the configuration says it (``abi``), or if it counts
    on at once (``cycles``). `splitjoin.circuit.wire.Configuration.reset_value` has the value in a circuit.
    ``fields``: its fields, from bit 0 on, if it has more than one meaning.
    """

    name: str
    address: int
    bits: int
    access: Literal["r", "rw"]
    unit: str
    description: str
    reset: int | None = 0
    fields: tuple[RegisterField, ...] = ()


#: Width of a region's counters.
COUNTER_BITS = 48
#: Cycles from a write of ``select`` until ``selected`` can be read.
SELECTION_CYCLES = 4


@dataclass(frozen=True)
class RegionCounter:
    """A counter in each region of every core, in circuits with region counters. ``high``: a high-water mark."""

    name: str
    unit: str
    description: str
    high: bool = False


#: A region stores one stream, and probes of the other scan it. A counter's number is its place in this list.
REGION_COUNTERS = (
    RegionCounter("comparisons", "pairs", "stored tuples compared with a probe"),
    RegionCounter("matches", "pairs", "comparisons that were true"),
    RegionCounter("reads", "cycles", "a pass reads the ring"),
    RegionCounter("stall_results", "cycles", "probes or a pass wait for results of the batch before to leave"),
    RegionCounter("stall_probe", "cycles", "a probe waits, as the batch that is collected is full"),
    RegionCounter("stall_store", "cycles", "a tuple to store waits: its slot is to be read, or the index is busy"),
    RegionCounter("stall_expiry", "cycles", "a record waits for old tuples to leave"),
    RegionCounter("stall_output", "cycles", "a result waits for its merger"),
    RegionCounter("spills", "probes", "probes that span too many buckets and read the sub-window"),
    RegionCounter("stores_high", "tuples", "most that were stored before what they replace was read", high=True),
    RegionCounter("list_high", "reads", "most that found something and had not been emitted", high=True),
)

#: Stages of a probe in a circuit with stage counters, whose numbers are their places here. Of each there is the sum of
#: its probes over all cycles, and over all cores but for the last stage (SplitJoin, section 7, Figures 14, 15 and 18).
STAGES = ("distribution", "waiting", "scan", "emitting", "gather", "combiner")


#: In circuits with a fault time-out: the number for ``select`` that shows how many cores are left out; and the one that
#: shows, of a region of a core, the probe of the last item that it gave (bits 0 to 31), whether the probe was complete
#: with it (bit 32), and whether the core is left out (bit 33).
DEAD_CORES, LAST_PROBE = 14, 15
#: Bits of the latter beside the row id.
COMPLETE_BIT, DEAD_BIT = 32, 33


def selection(core: int, side: int, counter: int) -> int:
    """The word for register ``select``: ``side`` 0 is the region that stores S, 1 the one that stores R."""
    return core | side << 16 | counter << 20


#: Values of the register ``order``, in lower case those of `splitjoin.circuit.wire.OrderMode`.
_ORDERS = (("none", 0), ("outer", 1), ("total", 2), ("inner", 3))
_UNUSED = "kept as written; write 0"
_FIELDS = {
    "id": (RegisterField("magic", 0, 32, "the constant", (("sj01", MAGIC),)),),
    "order": (RegisterField("mode", 0, 2, "the order of results", _ORDERS), RegisterField("unused", 2, 30, _UNUSED)),
    "select": (RegisterField("core", 0, 16, "the core"),
               RegisterField("region", 16, 1, "the region of that core", (("stores_s", 0), ("stores_r", 1))),
               RegisterField("unused_17", 17, 3, _UNUSED),
               RegisterField("counter", 20, 4, "the counter of that region",
                     (*((counter.name, n) for n, counter in enumerate(REGION_COUNTERS)),
                      ("dead_cores", DEAD_CORES), ("last_probe", LAST_PROBE))),
               RegisterField("unused_24", 24, 8, _UNUSED)),
    "overflow": (RegisterField("stream_r", 0, 1, "the first tuple without room was of R"),
                 RegisterField("stream_s", 1, 1, "the first tuple without room was of S")),
}
#: Registers with another value than 0 after a reset.
_RESETS = {"id": MAGIC, "abi": None, "rows_r": 2**32 - 1, "rows_s": 2**32 - 1, "range_r": 2**64 - 1,
           "range_s": 2**64 - 1, "cycles": None}


def _layout(*rows: tuple[str, int, Literal["r", "rw"], str, str]) -> tuple[Register, ...]:
    out, at = [], 0
    for name, bits, access, unit, description in rows:
        out.append(Register(name, at, bits, access, unit, description, _RESETS.get(name, 0), _FIELDS.get(name, ())))
        at += bits // 32
    return tuple(out)


REGISTERS = _layout(
    ("id", 32, "r", "", "the constant 'SJ01'"),
    ("abi", 64, "r", "", "the ABI hash of the configuration"),
    ("order", 32, "rw", "", "the order of results"),
    ("precision", 32, "rw", "probes", "a star after this many probes of a stream; 0 for no stars"),
    ("slice", 32, "rw", "tuples", "order inner: a star after this many tuples of each sub-window; 0 for none"),
    ("rows_r", 32, "rw", "tuples", "ROWS of R's window; all ones for no limit"),
    ("rows_s", 32, "rw", "tuples", "ROWS of S's window; all ones for no limit"),
    ("range_r", 64, "rw", "ticks", "RANGE of R's window; all ones for no limit"),
    ("range_s", 64, "rw", "ticks", "RANGE of S's window; all ones for no limit"),
    ("select", 32, "rw", "", "which counter of which region `selected` shows"),
    ("selected", 64, "r", "", "the counter that `select` names; 0 where the circuit is built without"),
    ("overflow", 32, "r", "", "which stream's tuple was the first without room; sticky, and input stops"),
    ("overflow_row_r", 32, "r", "row id", "the first R tuple that did not fit"),
    ("overflow_row_s", 32, "r", "row id", "the first S tuple that did not fit"),
    ("cycles", 64, "r", "cycles", "clock cycles since reset"),
    ("tuples_r", 64, "r", "tuples", "R tuples accepted at the input"),
    ("tuples_s", 64, "r", "tuples", "S tuples accepted at the input"),
    ("comparisons", 64, "r", "pairs", "stored tuples compared with a probe, all cores"),
    ("matches", 64, "r", "pairs", "comparisons that were true, all cores"),
    ("input_stalls", 64, "r", "cycles", "cycles in which a record was offered and not accepted"),
    ("output_stalls", 64, "r", "cycles", "cycles in which an item was offered and not taken"),
)


#: The counters of events since the reset.
COUNTERS = ("cycles", "tuples_r", "tuples_s", "comparisons", "matches", "input_stalls", "output_stalls")


def register(name: str) -> Register:
    """The register called ``name``."""
    for reg in REGISTERS:
        if reg.name == name:
            return reg
    raise KeyError(f"there is no register {name!r}; registers are {', '.join(r.name for r in REGISTERS)}")
