"""The emulator: a whole circuit with its UART in Verilator, behind a pseudo-terminal, with faults on the line."""

from __future__ import annotations

import ctypes
import os
import random
import select
import threading
import tty
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from amaranth.back import verilog
from splitjoin.cache import locked
from splitjoin.circuit.wire import Configuration
from splitjoin.errors import DeviceError
from splitjoin.hw.link.linked import LinkedJoin

from .build import _design, _recipe, _target, _work_folder
from .runtime import FLAGS, header, objects, run_tool
from .tools import cxx, find_verilator

__all__ = ["Emulator", "Faults"]

_HARNESS = Path(__file__).with_name("pins.cpp")
#: Cycles of a bit: the fewest, as they cost time.
_BIT = 4
#: Cycles per call of the model, about the time of a short frame.
_CYCLES = 1000
_ROOM = 4096
#: Calls without any byte after which the emulator waits for input. A reply begins much earlier.
_QUIET = 4


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Shares of bytes, 0 to 1 in all, that are dropped, have a bit flipped, or are doubled, in both directions."""

    drop: float = 0.0
    flip: float = 0.0
    double: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        shares = [getattr(self, f.name) for f in fields(self) if f.name != "seed"]
        if not all(isinstance(share, int | float) and share >= 0 for share in shares) or not sum(shares) <= 1:
            raise DeviceError(f"shares of faults must be numbers from 0 with a sum of at most 1, not {shares}")

    def applied(self, data: bytes, chance: random.Random) -> bytes:
        """``data`` with faults."""
        if not (self.drop or self.flip or self.double):
            return data
        out = bytearray()
        for byte in data:
            at = chance.random()
            if at < self.drop:
                continue
            out.append(byte)
            if at < self.drop + self.flip:
                out[-1] ^= 1 << chance.randrange(8)
            elif at < self.drop + self.flip + self.double:
                out.append(byte)
        return bytes(out)


class Emulator:
    """A board with the circuit of ``config``: `path` is its pseudo-terminal, from `start` to `close`.

    `unplug` closes the terminal at once, as pulling the plug does.
    """

    def __init__(self, config: Configuration, faults: Faults | None = None):
        self._faults = faults or Faults()
        self._lib = _load(_library(config))
        self._stop = threading.Event()
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Emulator:
        """Begin to answer."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End. The terminal's users get an error."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
        for end in (self._master, self._slave):
            if end >= 0:
                os.close(end)
        self._master = self._slave = -1

    unplug = close

    def __enter__(self) -> Emulator:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        chance = random.Random(self._faults.seed)
        model = ctypes.c_void_p(self._lib.em_open(_BIT))
        received = ctypes.create_string_buffer(_ROOM)
        quiet = 0
        try:
            while not self._stop.is_set():
                ready, _, _ = select.select([self._master], [], [], 0.05 if quiet >= _QUIET else 0)
                data = self._faults.applied(os.read(self._master, 4096), chance) if ready else b""
                cycles = max(_CYCLES, 10 * _BIT * len(data))
                got = self._lib.em_run(model, data, len(data), received, _ROOM, cycles)
                quiet = 0 if data or got else quiet + 1
                if got:
                    os.write(self._master, self._faults.applied(received.raw[:got], chance))
        finally:
            self._lib.em_close(model)


def _library(config: Configuration) -> Path:
    """The compiled model for ``config``, from the cache or built. Raises `ToolError` if a build fails."""
    verilator, compiler = find_verilator(), cxx()
    target = _target("linked", repr(config), _design(), _HARNESS.read_text(), *_recipe(verilator, compiler))
    with locked(target.with_suffix(".lock")):
        if not target.exists():
            with _work_folder(target) as work:
                os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
                source = work / "linked.v"
                top = LinkedJoin(config, clock_hz=1_000_000 * _BIT, baud=1_000_000)
                source.write_text(verilog.convert(top, name="linked", emit_src=False))
                run_tool([str(verilator.program), "--cc", str(source), "--top-module", "linked", "--prefix", "Vlinked",
                          "--Mdir", str(work / "cc"), "-O3", "--no-timing", "-Wno-fatal", "-Wno-lint"], verilator)
                unit = work / "unit.cpp"
                parts = [*sorted((work / "cc").glob("*.cpp")), _HARNESS]
                unit.write_text("".join(f'#include "{part}"\n' for part in parts))
                first = header(verilator, compiler, ("-O2", "-DVM_TRACE=0"))
                root = verilator.root / "include"
                made = work / "model.so"
                run_tool([*compiler, *FLAGS, "-O2", "-DVM_TRACE=0", f"-I{work / 'cc'}", f"-I{root}",
                          f"-I{root / 'vltstd'}", "-include", str(first), "-shared", "-o", str(made), str(unit),
                          *map(str, objects(verilator, compiler, "-O2")), "-lpthread"], verilator)
                made.replace(target)
    return target


@cache
def _load(path: Path) -> Any:
    lib = ctypes.CDLL(str(path))
    lib.em_open.restype, lib.em_open.argtypes = ctypes.c_void_p, [ctypes.c_uint]
    lib.em_close.restype, lib.em_close.argtypes = None, [ctypes.c_void_p]
    lib.em_run.restype = ctypes.c_uint64
    lib.em_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64,
                           ctypes.c_uint64]
    return lib
