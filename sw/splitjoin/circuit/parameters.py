"""The parameters of circuits, whatever the query: each is declared here once, with its range, unit and help.

Devices, `splitjoin.joins.explain`, the tuner and the command line are made from these declarations; so is the
configuration that a circuit is built from (`splitjoin.circuit.wire.Configuration`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from splitjoin.base.errors import DeviceError, UnsupportedError, check
from splitjoin.lang.schema import suggest

from .architectures import ARCHITECTURES, Architecture
from .core_kinds import KINDS

#: Values of the parameter ``core``; ``auto`` lets the query and the sub-window's size decide.
CORE_KINDS = ("auto", *KINDS)
#: Values of the parameter ``architecture`` that are for every device.
_ARCHITECTURES = tuple(name for name, one in ARCHITECTURES.items() if not one.baseline)
#: Values of the parameter ``fold``.
FOLD = ("auto", "always", "never")
#: Values of the parameter ``verify``.
VERIFY = ("auto", "core", "host")
#: Values of the parameter ``expire``.
EXPIRE = ("opposite", "own")
#: Values of the parameter ``merger``.
MERGER = ("ready", "fixed")
#: Memory → the largest capacity of a core whose windows lie there.
LARGEST = {"bram": 2**16, "axi": 2**24, "sdram": 2**24}
#: Buckets of a core, at least, where tuples are routed: a line of heads.
LEAST_ROUTED = 8
#: The default of a parameter that depends on another one.
_UNSET: Any = object()


def within(value: object, low: int, high: int) -> bool:
    """True if ``value`` is an int, not merely equal to one, from ``low`` to ``high``."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """The declaration of one parameter.

    Attributes:
        holds: True for a value in range.
        must: The range in words, to complete "… must be".
        unit: The unit of the number; empty for a value that is not a number.
        help: One clause for the command line, without the default.
        default: The default in words, as the command line's help prints it.
        metavar: The command line's placeholder; None for a switch.
        parse: Converts the command line's text to the value.
        choices: The allowed values, where they can be listed.
        tunable: True if the tuner chooses the value when the user gives none.
        baseline: True if only simulations and Verilog take another value than the default, in most cases as it exists
            for comparisons.
        later: True if it came when there were circuits that stay as they are: a description, and with it the ABI hash,
            has it only with another value than the default.
        error: The exception class for a value out of range.
    """

    holds: Callable[[object], bool]
    must: str
    unit: str = ""
    help: str
    default: str = ""
    metavar: str | None = None
    parse: Callable[[str], object] = int
    choices: tuple[str, ...] | None = None
    tunable: bool = False
    baseline: bool = False
    later: bool = False
    error: type[DeviceError | UnsupportedError] = UnsupportedError


def _parameter(initial: Any, /, **declaration: Any) -> Any:
    return field(default=initial, metadata={"parameter": Parameter(**declaration)})


def _switch(initial: Any = False, /, **declaration: Any) -> Any:
    return _parameter(initial, holds=lambda value: isinstance(value, bool), must="True or False", error=DeviceError,
                      **declaration)


def _number(initial: Any, low: int, high: int, /, **declaration: Any) -> Any:
    return _parameter(initial, **{"holds": lambda value: within(value, low, high), "must": f"{low} to {high}",
                                  "default": str(initial), **declaration})


def _choice(initial: str, values: tuple[str, ...], /, **declaration: Any) -> Any:
    must = " or ".join(values) if len(values) == 2 else f"one of {', '.join(values)}"
    return _parameter(initial, **{"holds": lambda value: value in values, "must": must, "parse": str,
                                  "choices": values, "default": initial, **declaration})


def _power_of_two(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and within(value, low, high) and value & (value - 1) == 0


def declared(cls: type) -> Iterator[tuple[Field[Any], Parameter]]:
    """The parameters among the fields of dataclass ``cls``, in the order of their declarations."""
    for found in fields(cls):
        if "parameter" in found.metadata:
            yield found, found.metadata["parameter"]


@dataclass(frozen=True, kw_only=True)
class BuildParameters:
    """The parameters that a circuit is built for without further choice. The constructor checks each of them.

    Attributes:
        cores: Join cores, 1 to 1024; by default 4, or 1 for a small circuit.
        capacity: Tuples of one stream that one core can hold, a power of two from 2 to 65536, and at least twice the
            lanes; in external memory from 64 to 2^24; None for what the ROWS windows need, and 1024 for RANGE windows
            alone.
        fanout: Children of a distribution-tree node (b), 2 to 16.
        fanin: Inputs of a merger (c), 2 to 16.
        lanes: Stored tuples that a region reads in a cycle (L), 1, 2, 4 or 8; of index cores 1.
        probes: Probes that a region compares each of them with (B), 1 to 16; of index cores 1.
        core: The way in which a region finds the matches of a probe: ``scan`` reads the sub-window; ``hash`` and
            ``bucket`` look up tuples whose keys share a bucket with the probe's bounds; ``ordered`` looks up all cells
            between the bounds; ``auto`` chooses by the condition and the sub-window's size
            (`splitjoin.circuit.core_choice`).
        queue: Records that can wait ahead of a region, in block RAM, a power of two from 16 to 512; 0 for none. With a
            queue the regions of a core need not keep in step, so streams may arrive in any order at full speed.
        region_counters: True if every region of every core has counters of its own
            (`splitjoin.circuit.registers.REGION_COUNTERS`).
        fault_timeout: Cycles after which a core that stands still with work to do is left out (semantics, section 6),
            at least `splitjoin.circuit.wire.Configuration.longest_silence`; 0 for never. It is left out within twice as
            many.
        tables: True if equalities and bands of constant width are looked up in LUT RAM instead of being computed; the
            probes of a batch are written to it before their pass begins. With many lanes and probes tables take fewer
            LUTs, and they add `splitjoin.circuit.geometry.TABLE_WRITE_CYCLES` cycles from a probe to its pass.
        row_bits: Width of row ids in items, 8 to 32, and enough for the windows (`splitjoin.circuit.wire`). The driver
            restores whole row ids; narrow ones save bytes on a link.
        root_width: Most results and stars that leave the circuit in a cycle, 1, 2 or 4. Above 1 an output record has so
            many items (`splitjoin.circuit.wire.Configuration.output_record`), for a link that takes them: AXI4-Stream,
            or simulation. 4 demands two cores.
        small: True for one circuit that processes a tuple at a time (`splitjoin_hw.small`), for small FPGAs: a quarter
            of the cells of one core, half as fast or less. It is one core that scans, with one lane and one probe.
        architecture: The name of the circuit's architecture (`splitjoin.circuit.architectures`): ``small`` with
            ``small``, else by default ``splitjoin``.
        expire: Of Kang's circuit, whether a probe's ``opposite`` window expires before the comparison, or as printed
            its ``own`` one after it is stored (semantics, section 2).
        merger: Whether a merger takes the results that are ``ready``, or in the paper's ``fixed`` order those of input
            after input (`splitjoin_hw.gather.fixed`).
        block, threshold: Of a cascade, the tuples that a core sends on together (ESJ's ς), 1 to 64, and the difference
            of two cores' loads from which on it does, 1 to 65536.
        sources: Streams of records, each in arrival order, that a gate in the circuit merges (ScaleGate): 1, without a
            gate, to 16. Simulations and Verilog have them.
        memory: Where windows and index lie: in block RAM (``bram``), or for cores of kind hash or bucket in external
            memory: behind an AXI4 master for each core (``axi``), which simulations and Verilog have, or for one core
            in a board's SDRAM (``sdram``), which boards and simulations have.
        contexts: Probes, and as many tuples that are being stored, that a region follows at once in external memory, a
            power of two from 2 to 64, by default 16; 0 in block RAM.
        memory_width: Bits of a line of memory behind an AXI4 master, and of its data: 64, if a record fits, 128 or 256.
        stage_counters: True for counters of the probes in each stage (`splitjoin.circuit.registers.STAGES`), which take
            the place of ``region_counters``: for cores that scan, with one probe a pass.

    Raises `UnsupportedError`, or for a switch `DeviceError`, for a value out of its range.
    """

    cores: int = _number(_UNSET, 1, 1024, unit="cores", metavar="K", help="join cores",
                         default="4; of a small circuit 1", tunable=True)
    capacity: int | None = _parameter(
        None, holds=lambda n: n is None or _power_of_two(n, 2, 2**24), must="a power of two from 2 to 65536",
        unit="tuples of one stream", metavar="N", help="tuples of one stream that a core holds, a power of two",
        default="what the windows need")
    fanout: int = _number(2, 2, 16, unit="children", metavar="B", help="children of a distribution-tree node")
    fanin: int = _number(2, 2, 16, unit="inputs", metavar="C", help="inputs of a merger")
    lanes: int = _parameter(1, holds=lambda n: _power_of_two(n, 1, 8), must="1, 2, 4 or 8", unit="tuples a cycle",
                            metavar="L", default="1", tunable=True,
                            help="stored tuples that a core reads in a cycle, of each stream: 1, 2, 4 or 8")
    probes: int = _number(1, 1, 16, unit="probes", metavar="P", tunable=True,
                          help="tuples that a core compares each of them with")
    core: str = _choice("auto", CORE_KINDS, metavar="KIND", tunable=True,
                        help=f"how cores find what a tuple matches: {', '.join(KINDS)}, or auto: what suits")
    queue: int = _parameter(0, holds=lambda n: within(n, 0, 0) or _power_of_two(n, 16, 512),
                            must="0 or a power of two from 16 to 512", unit="records", metavar="N", default="0",
                            tunable=True, help="records that can wait ahead of each region of a core, so that streams "
                            "may arrive at random or in bursts: a power of two from 16 to 512, or 0")
    region_counters: bool = _switch(help="build the circuit with counters in every region, and show them")
    fault_timeout: int = _number(
        0, 0, 2**20, unit="cycles", metavar="N", default="0, for never",
        help="leave out a core that stands still for N cycles with work to do, and go on with the others")
    tables: bool = _switch(help="look up equalities and bands of constant width instead of computing them: fewer LUTs "
                                "with many lanes and probes", tunable=True)
    row_bits: int = _number(32, 8, 32, unit="bits", metavar="BITS",
                            help="width of row ids in results on the way to the host, 8 to 32")
    root_width: int = _parameter(1, holds=lambda n: within(n, 1, 4) and n != 3, must="1, 2 or 4",
                                 unit="results a cycle", metavar="W", default="1",
                                 help="results that can leave in a cycle, through AXI or in simulation: 1, 2 or 4")
    small: bool = _switch(_UNSET, help="one core as small as it can be, which processes a tuple at a time; for "
                                       "small FPGAs")
    architecture: str = _parameter(
        _UNSET, holds=lambda name: name in tuple(ARCHITECTURES), must=f"one of {', '.join(ARCHITECTURES)}",
        metavar="NAME", choices=_ARCHITECTURES, parse=str, default="small with --small, else splitjoin",
        help=f"how the circuit is organized: {' or '.join(_ARCHITECTURES)}")
    expire: str = _choice("opposite", EXPIRE, metavar="WINDOW", baseline=True,
                          help="of kang, which window expires when a tuple arrives: opposite or own")
    merger: str = _choice("ready", MERGER, metavar="ORDER", baseline=True,
                          help="in which order mergers visit their inputs: ready or fixed")
    block: int = _number(1, 1, 64, unit="tuples", metavar="N", baseline=True,
                         help="of cascade, tuples that a core sends on together")
    threshold: int = _number(1, 1, 65536, unit="tuples", metavar="N", baseline=True,
                             help="of cascade, difference of loads from which on a core sends tuples on")
    sources: int = _number(1, 1, 16, unit="sources", metavar="N", baseline=True,
                           help="streams of records, each in arrival order, that a gate in the circuit merges by event "
                                "time, 1 to 16; without IP-XACT")
    memory: str = _choice("bram", tuple(LARGEST), metavar="WHERE", later=True,
                          help="where windows lie: bram, or for cores of kind hash or bucket sdram: a board's SDRAM, "
                               "of one core, or axi: memory behind an AXI4 master a core, in simulation and Verilog")
    contexts: int = _parameter(0, holds=lambda n: within(n, 0, 0) or _power_of_two(n, 2, 64),
                               must="0 or a power of two from 2 to 64", unit="probes", metavar="K", later=True,
                               default="16", help="probes that a region follows at once in external memory")
    memory_width: int = _parameter(128, holds=lambda n: within(n, 64, 256) and n in (64, 128, 256),
                                   must="64, 128 or 256", unit="bits", metavar="BITS", later=True, default="128",
                                   help="data of the AXI4 master, and a line of memory: 64, 128 or 256")
    stage_counters: bool = _switch(baseline=True, help="build the circuit with counters of the probes in each stage")

    def __post_init__(self) -> None:
        if self.architecture is _UNSET:
            object.__setattr__(self, "architecture", "small" if self.small is True else "splitjoin")
        if self.small is _UNSET:
            object.__setattr__(self, "small", self.architecture == "small")
        if self.cores is _UNSET:
            known = self.architecture in tuple(ARCHITECTURES)  # a wrong one is refused below
            object.__setattr__(self, "cores", (self.structure.cores if known else 4) if self.memory == "bram" else 1)
        if self.memory != "bram" and self.contexts == 0:
            object.__setattr__(self, "contexts", 16)
        for found, parameter in declared(type(self)):
            value = getattr(self, found.name)
            if not parameter.holds(value):
                raise parameter.error(f"{found.name} must be {parameter.must}, not {value!r}")
        if self.capacity is not None:
            check("capacity", self.capacity, self.capacity <= LARGEST[self.memory], "a power of two from 2 to 65536")
            check(f"capacity with {self.lanes} lanes", self.capacity, self.capacity >= 2 * self.lanes,
                  f"{2 * self.lanes} or more")
        if self.core in KINDS:
            KINDS[self.core].check_parameters(self)
        if self.root_width > 2:
            check(f"cores with root_width {self.root_width}", self.cores, self.cores >= 2,
                  "2 or more, as a core finds one result of each stream's probes in a cycle")
        check(f"small with architecture {self.architecture}", self.small, self.small is (self.architecture == "small"),
              f"{self.architecture == 'small'}")
        self._check_memory()
        self.structure.check_parameters(self)

    def _check_memory(self) -> None:
        """Raise `UnsupportedError` for parameters that circuits with external memory do not support."""
        if self.memory != "axi":
            check(f"memory_width with memory {self.memory}", self.memory_width, self.memory_width == 128, "128, as "
                  "without an AXI4 master the circuit chooses it")
        if self.memory == "bram":
            check("contexts with memory bram", self.contexts, self.contexts == 0, "0, as a region follows one probe")
            return
        name = f"with memory {self.memory}"
        check(f"architecture {name}", self.architecture, self.architecture == "splitjoin", "splitjoin")
        check(f"core {name}", self.core, self.core not in ("scan", "ordered"), "hash or bucket, as a scan would read "
              "the whole window for each probe, and an interval much of it; give memory='bram'")
        if self.memory == "sdram":
            check(f"cores {name}", self.cores, self.cores == 1, "1, as a board has one SDRAM")
        check(f"cores {name}", self.cores, self.cores in (1, 2, 4, 8, 16, 32), "1, 2, 4, 8, 16 or 32, as bits of a "
              "bucket's number choose one")
        least = max(64, LEAST_ROUTED * self.cores)
        check(f"capacity {name}{f' and {self.cores} cores' if self.cores > 1 else ''}", self.capacity,
              self.capacity is None or self.capacity >= least, f"{least} or more")
        for option, value, why in (("fault_timeout", 0, ", as a core waits for its memory for any time"),
                                   ("sources", 1, ""), ("root_width", 1, "")):
            check(f"{option} {name}", getattr(self, option), getattr(self, option) == value, f"{value}{why}")

    @property
    def routed(self) -> bool:
        """True if each tuple goes to the core of its bucket, as with a memory for each of several cores; in turn to
        all cores otherwise. A ring of these has a place for every tuple of its stream, so that no skew overfills it.
        """
        return self.memory != "bram" and self.cores > 1

    @property
    def turns(self) -> int:
        """The cores that have a place for each tuple in turn: 1 where tuples are routed."""
        return 1 if self.routed else self.cores

    def check_used(self, use: str, memories: Collection[str] = ("bram",)) -> None:
        """Raise `UnsupportedError` if the circuit exists for comparisons, and ``use``, such as "a component", is
        neither simulation nor Verilog; or if its memory is none of ``memories``.
        """
        self.structure.check_used(use)
        check(f"memory of {use}", self.memory, self.memory in memories, " or ".join(memories))
        for found, parameter in declared(type(self)):
            check(f"{found.name} of {use}", getattr(self, found.name),
                  not parameter.baseline or getattr(self, found.name) == found.default,
                  f"{found.default}, as only simulations and Verilog take another value")

    @property
    def structure(self) -> Architecture:
        """The circuit's architecture."""
        return ARCHITECTURES[self.architecture]


def offered(cls: type) -> Iterator[tuple[Field[Any], Parameter]]:
    """Those of `declared` that do not exist for comparisons alone."""
    return ((found, parameter) for found, parameter in declared(cls) if not parameter.baseline)


def _is_clock(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf)


@dataclass(frozen=True, kw_only=True)
class CircuitParameters(BuildParameters):
    """The parameters of a circuit that users choose: those that it is built for, and its required clock.

    Attributes:
        clock: MHz on ECP5 for which the datapaths get pipeline registers; None for the fewest registers.
        fold: Whether circuits fold aggregates, and give only the deciding pairs of semi, anti and as-of joins, instead
            of giving all pairs to the host: ``auto``, where they can; ``always``, where a query for which they cannot
            is refused; ``never``.
        verify: Where the parts of a condition are decided that no interval or sum test decides: ``core``, in the
            circuit for each pair (`splitjoin.circuit.formula`), where a condition that circuits cannot compute is
            refused; ``host``, on the pairs that the tests let through; ``auto``, in the circuit where it can.
    """

    clock: float | None = _parameter(
        None, holds=_is_clock, must="a number of MHz above 0", unit="MHz", metavar="MHZ", parse=float,
        help="clock that comparing gets registers for, on ECP5", default="as few registers as there can be")
    fold: str = _choice("auto", FOLD, metavar="WHEN", default="auto: where they can",
                        help="whether cores fold aggregates themselves, and give only those pairs that decide semi, "
                             "anti and as-of joins")
    verify: str = _choice(
        "auto", VERIFY, metavar="WHERE", default="auto: in the cores where they can",
        help="where what no test decides is decided: in the cores for each pair, or on the host for candidates")


def circuit_parameters(options: Mapping[str, Any]) -> CircuitParameters:
    """The parameters that a caller gave by name. Raises `UnsupportedError` for a name that is none of them, and for a
    value that no circuit has.
    """
    known = [found.name for found, _ in declared(CircuitParameters)]
    wrong = [name for name in options if name not in known]
    if wrong:
        raise UnsupportedError(f"a circuit has no parameter {', '.join(map(repr, wrong))}{suggest(wrong[0], known)}; "
                               f"its parameters are {', '.join(known)}")
    return CircuitParameters(**options)
