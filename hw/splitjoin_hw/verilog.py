"""Verilog for a configuration: one module for each kind of part, and a sidecar that describes it to tools."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from splitjoin.base.errors import InputError
from splitjoin.base.version import __version__
from splitjoin.circuit.axi import CONTROL_WORD, IDLE_CYCLES, AxiShape, described_memory
from splitjoin.circuit.memory import line_bits, lines
from splitjoin.circuit.registers import MAGIC, REGISTERS, Register
from splitjoin.circuit.wire import Configuration, ItemKind, Op, OrderMode

from .backend.library import Converted, Library
from .backend.names import is_keyword
from .backend.source_names import source_names
from .circuit import circuit, circuit_ports
from .link.axi import AxiJoin, axi_ports
from .memory.port import MasterSignature
from .parts import Instances

#: Name of the top module, unless another one is given; the core's module is this with ``_core``.
TOP = "splitjoin"


def axi_top(name: str) -> str:
    """The name of the top module with AXI ports around an instance of the module ``name``."""
    return f"{name}_axi"


#: Name of the top module with AXI ports, which has an instance of `TOP`.
AXI_TOP = axi_top(TOP)
#: Verilator's rules that the Verilog breaks on purpose, each with its reason.
WAIVERS = Path(__file__).with_name("waivers.vlt")
#: The module of the testbench, beside a circuit's own.
_TESTBENCH = "testbench"
_LONGEST_NAME = 64
#: Columns of the header.
_WIDTH = 113


def check_name(name: str) -> str:
    """``name``, if it can be the name of a circuit's top module and begin those of its files.

    Raises `InputError` unless it is an identifier of Verilog, VHDL and Python that no other module has.
    """
    if (not re.fullmatch(r"[A-Za-z](_?[A-Za-z0-9])*", name, re.ASCII) or len(name) > _LONGEST_NAME
            or name == _TESTBENCH or is_keyword(name)):
        raise InputError(f"a circuit's name must be a letter, then letters and digits, with single underscores between "
                         f"them, up to {_LONGEST_NAME} characters, and neither a keyword of Verilog or C++ nor "
                         f"{_TESTBENCH}, but it is {name!r}; give another --name")
    return name


@lru_cache(maxsize=16)  # takes seconds, and every session needs it again
def to_verilog(config: Configuration, name: str = TOP) -> str:
    """The circuit as Verilog-2001; the names of all modules begin with ``name``, the top's. A pure function."""
    return _written(config, name)[0]


@lru_cache(maxsize=16)
def part_modules(config: Configuration) -> tuple[str, ...]:
    """The modules of `to_verilog` that the circuit repeats with its cores: the cores, and nodes of the trees."""
    return _written(config, TOP)[1]


@lru_cache(maxsize=16)
@source_names()
def _written(config: Configuration, name: str) -> tuple[str, tuple[str, ...]]:
    parts = Instances(name)
    top = Converted.of(circuit(config, parts), name)
    library = Library(name)
    # The modules that the top has instances of are known only now.
    for module, part in sorted(parts.modules.items()):
        library.add(Converted.of(part, module))
    library.add(top)
    return f"{header(config)}\n{library.text()}", tuple(sorted(parts.modules))


@lru_cache(maxsize=16)
@source_names()
def to_axi_verilog(config: Configuration, name: str = TOP) -> str:
    """The module ``name`` with ``_axi``: AXI ports around an instance of the circuit that `to_verilog` writes."""
    top = axi_top(name)
    library = Library(top)
    library.declare(name, wiring.Signature(circuit_ports(config)))
    library.add(Converted.of(AxiJoin(config, join=name), top))
    return f"{header(config)}\n{library.text()}"


def header(config: Configuration, query: Sequence[str] = ()) -> str:
    """Comment lines: version and licence, ``query`` line by line, and the parameters of ``config``.

    Characters that could end a comment are escaped.
    """
    unsaid = [("root_width", 1), ("sources", 1), ("formula", None), ("stage_counters", False), ("memory", "bram"),
              ("contexts", 0),
              ("architecture", "splitjoin"), ("architecture", "small")]
    given = asdict(config)
    if config.formula is not None:
        given["formula"] = f"of {len(config.formula.graph.nodes)} operations in {config.formula.ahead} cycles"
    settings = ", ".join(f"{name} {value}" for name, value in given.items() if (name, value) not in unsaid)
    baseline = [f"Baseline: {config.structure.title}, which exists to be compared with splitjoin's own architecture."]
    lines = [f"splitjoin {__version__}: a join of two streams as a circuit, Verilog-2001. "
             "SPDX-License-Identifier: Apache-2.0", *(baseline if config.structure.baseline else []), *query,
             *textwrap.wrap(f"Parameters: {settings}.", _WIDTH), f"ABI hash: {config.abi_hash:016x}."]
    return "".join(f"// {_printable(line)}".rstrip() + "\n" for line in lines)


def _printable(text: str) -> str:
    """``text`` in one line of ASCII, without comments within comments and without a backslash at its end."""
    plain = "".join(c if c.isascii() and c.isprintable() else ascii(c)[1:-1] for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *") + ("." if plain.endswith("\\") else "")


def sidecar(config: Configuration, top_module: str = TOP, *, axi: bool = False) -> dict[str, Any]:
    """Description of the Verilog as plain data: ports of ``top_module``, records, registers, parameters, ABI hash.

    ``axi``: True if ``top_module`` has AXI ports.
    """
    ports: dict[str, dict[str, Any]] = {}
    if axi:
        top = wiring.Signature(axi_ports(config)).create()
    else:
        ports |= {"clk": {"direction": "in", "width": 1}, "rst": {"direction": "in", "width": 1}}
        top = wiring.Signature(circuit_ports(config)).create()
    for path, member, value in top.signature.flatten(top):
        ports["__".join(map(str, path))] = {
            "direction": "in" if member.flow == In else "out", "width": len(Value.cast(value))}
    shape = AxiShape.of(config)
    described = {"axi": {
        "record_bytes": shape.record_bytes, "item_bytes": shape.item_bytes, "packet_beats": shape.packet_beats,
        "idle_cycles": IDLE_CYCLES, "control": {"byte_address": 4 * CONTROL_WORD, "bit 0": "write 1: reset the join"},
        "byte_addresses": {reg.name: 4 * reg.address for reg in REGISTERS},
        **({} if config.memory == "bram" else {"memory": described_memory(config)})}}
    return {
        "top": top_module,
        "abi_hash": f"{config.abi_hash:016x}",
        "id": f"{MAGIC:08x}",
        **({"baseline": config.structure.title} if config.structure.baseline else {}),
        "ports": ports,
        **config.describe(),
        "records": {name: list(record.fields) for name, record in config.records.items()},
        "opcodes": {op.name: op.value for op in Op},
        "flush": {"op": Op.FLUSH.value, "stream": int(config.whole_states)},
        "item_kinds": {kind.name: kind.value for kind in ItemKind},
        "orders": {mode.name: mode.value for mode in OrderMode},
        "output_record": list(config.output_record.fields),
        "registers": [_described(reg, config) for reg in REGISTERS],
        **(described if axi else {"memory": _memory_ports(config)} if config.memory == "axi" else {}),
    }


def _memory_ports(config: Configuration) -> dict[str, Any]:
    """The ports to external memory as plain data: their names, the lines of the memory behind each, and the fields of
    their payloads with their widths, from the lowest bit on.
    """
    payloads = {name: list(member.signature.members["payload"].shape.members.items())
                for name, member in MasterSignature(config).members.items()}
    return {"ports": ["m"] if config.cores == 1 else [f"m__{n}" for n in range(config.cores)],
            "lines": lines(config), "line_bytes": line_bits(config) // 8, "payloads": payloads}


def _described(reg: Register, config: Configuration) -> dict[str, Any]:
    """A register as plain data: its reset value (None if it counts on at once), and its fields' values by name."""
    fields = [asdict(field) | {"values": dict(field.values)} for field in reg.fields]
    return asdict(reg) | {"reset": config.reset_value(reg), "fields": fields}
