"""Verilator's options file and a wrapper module for a circuit's Verilog, so that models build quickly and run fast."""

from __future__ import annotations

import re
from collections.abc import Sequence

from splitjoin_hw.verilog import TOP

#: The module that a model is made of: the circuit, with its reset in a register.
MODEL = f"{TOP}_model"


def options(source: str, parts: Sequence[str]) -> str:
    """Verilator's options for Verilog ``source``: one class, and one set of functions, for all instances of each of
    the modules ``parts``.

    Verilator schedules the whole circuit and moves logic and constants across the ports of instances, so that each
    instance gets code of its own. It does not do so for signals that a user may read. Ports are therefore public, and
    so is the reset, as each instance has a register of it.
    """
    lines = ["`verilator_config"]
    for module in parts:
        lines.append(f'no_inline -module "{module}"')
        lines += [f'public_flat_rd -module "{module}" -var "{name}"' for _, _, name in _ports(source, module)
                  if name != "clk"]
    return "\n".join([*lines, ""])


def wrapper(source: str, memory: str = "") -> str:
    """Verilog of the module `MODEL` around ``source``'s top module, and the module ``memory`` at its memory port.

    Verilator evaluates all logic that depends on an input of the model at every call, three times per cycle, and almost
    every register depends on the reset.
    """
    ports = _ports(source, TOP)
    inner = [(width, name) for _, width, name in ports if memory and name.startswith("m__")]
    outer = [port for port in ports if (port[1], port[2]) not in inner]
    names = ", ".join(name for _, _, name in outer)
    wires = ", ".join(f".{name}({'reset' if name == 'rst' else name})" for _, _, name in ports)
    at_memory = [f"  {memory} memory(.clk(clk), .rst(reset)" + "".join(
        f", .bus{name.removeprefix('m')}({name})" for _, name in inner) + ");"] if memory else []
    return "\n".join([f"module {MODEL}({names});", *(f"  {way} {width} {name};" for way, width, name in outer),
                      *(f"  wire {width} {name};" for width, name in inner),
                      "  reg reset = 1;", "  always @(posedge clk) reset <= rst;", f"  {TOP} circuit({wires});",
                      *at_memory, "endmodule", ""])


def _ports(source: str, module: str) -> list[tuple[str, str, str]]:
    """Direction, range and name of each port of ``module``."""
    found = re.search(rf"^module {module} ?\((.*?)^endmodule", source, re.MULTILINE | re.DOTALL)
    assert found is not None, module
    port = r"^  (input|output) +(?:(?:wire|reg) +)?(\[\d+:0\]|) *(\w+) ?(?:=.*)?[;,]?$"
    return re.findall(port, found[1], re.MULTILINE)
