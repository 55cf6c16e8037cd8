"""Models of whole circuits with the pins of their link, compiled from Verilog and cached: what the emulator runs."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from amaranth.back import verilog

from splitjoin.base.cache import cached
from splitjoin.base.errors import ToolError
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.link.linked import LinkedJoin

from .build import _design, _name, _recipe
from .runtime import FLAGS, header, objects, run_tool
from .tools import Verilator, cxx, find_verilator

_HARNESS = Path(__file__).with_name("pins.cpp")
#: Cycles of a bit where no board says otherwise: the fewest, as they cost time.
_BIT = 4


@dataclass(frozen=True)
class Pins:
    """Ports of the Verilog module ``module``: clock, UART, and reset with its active level, or None. Without a UART, it
    has those that ``pins.cpp`` joins to an FT232H.
    """

    module: str
    clk: str
    rx: str | None
    tx: str | None
    reset: tuple[str, int] | None


@dataclass(frozen=True)
class EmulatedTop:
    """A circuit with the pins of a UART, or of an FT232H.

    Attributes:
        key: What tells it from other circuits, beside the sources of `splitjoin`.
        make: Gives its Verilog and the names of its pins.
        bit: Cycles of a bit on the UART, from 4 on, which need not be a whole number.
        clkout: With an FT232H, cycles of the circuit's clock in one of the chip's; else None.
    """

    key: tuple[str, ...]
    make: Callable[[], tuple[str, Pins]]
    bit: float = _BIT
    clkout: float | None = None


def linked_top(config: Configuration, *, pack: bool = False) -> EmulatedTop:
    """The circuit of ``config`` with its UART, without a board. ``pack``: items are packed on the link."""

    def make() -> tuple[str, Pins]:
        top = LinkedJoin(config, clock_hz=1_000_000 * _BIT, baud=1_000_000, pack=pack)
        return verilog.convert(top, name="linked", emit_src=False), Pins("linked", "clk", "rx", "tx", ("rst", 1))

    return EmulatedTop(("linked", repr(config), *(["packed"] if pack else [])), make, _BIT)


def model(top: EmulatedTop) -> Any:
    """The compiled model of ``top``, from the cache or built, as a library with the functions of ``pins.cpp``. Raises
    `ToolError` if a build fails.
    """
    verilator, compiler = find_verilator(), cxx()
    name = _name(*top.key, _design(), _HARNESS.read_text(), *_recipe(verilator, compiler))
    return _load(cached(name, lambda work: _build(top, verilator, compiler, work)))


def _build(top: EmulatedTop, verilator: Verilator, compiler: tuple[str, ...], work: Path) -> Path:
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    source = work / "linked.v"
    text, pins = top.make()
    _check_directions(text, pins)
    source.write_text(text)
    run_tool([str(verilator.program), "--cc", str(source), "--top-module", pins.module, "--prefix", "Vlinked",
              "--Mdir", str(work / "cc"), "-O3", "--no-timing", "-Wno-fatal", "-Wno-lint"], verilator)
    unit = work / "unit.cpp"
    parts = [*sorted((work / "cc").glob("*.cpp")), _HARNESS]
    unit.write_text("".join(f'#include "{part}"\n' for part in parts))
    names = [f"-DPIN_{name}={pin.replace('__', '___05F')}"
             for name, pin in (("CLK", pins.clk), ("RX", pins.rx), ("TX", pins.tx)) if pin is not None]
    names += ["-DFIFO"] if pins.rx is None else []
    if pins.reset is not None:
        names += [f"-DPIN_RESET={pins.reset[0].replace('__', '___05F')}", f"-DRESET_ACTIVE={pins.reset[1]}"]
    first = header(verilator, compiler, ("-O2", "-DVM_TRACE=0"))
    root = verilator.root / "include"
    made = work / "model.so"
    run_tool([*compiler, *FLAGS, "-O2", "-DVM_TRACE=0", *names, f"-I{work / 'cc'}", f"-I{root}",
              f"-I{root / 'vltstd'}", "-include", str(first), "-shared", "-o", str(made), str(unit),
              *map(str, objects(verilator, compiler, "-O2")), "-lpthread"], verilator)
    return made


def _check_directions(text: str, pins: Pins) -> None:
    """Raise `ToolError` for a pin that is ``inout``: Verilator would make it a constant, and the circuit be silent."""
    for name in filter(None, (pins.clk, pins.rx, pins.tx)):
        if re.search(rf"\binout\b[^;,)]*\b{re.escape(name)}\b", text):
            raise ToolError(f"the pins of an emulated circuit must be inputs or outputs, but {name} is inout; give it "
                            f"the direction that it is used in")


@cache
def _load(path: Path) -> Any:
    lib = ctypes.CDLL(str(path))
    lib.em_open.restype, lib.em_open.argtypes = ctypes.c_void_p, [ctypes.c_double]
    lib.em_close.restype, lib.em_close.argtypes = None, [ctypes.c_void_p]
    lib.em_broken.restype, lib.em_broken.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    lib.em_run.restype = ctypes.c_uint64
    lib.em_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64,
                           ctypes.c_uint64]
    return lib
