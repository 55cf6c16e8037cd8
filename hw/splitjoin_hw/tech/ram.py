"""A memory with one write port and one read port, with both registers that block RAM has on its read side."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Shape, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import MEMORY_LATENCY

from .target import family

#: Rows of an ECP5 block RAM → bits per row.
_BLOCKS = {512: 36, 1024: 18, 2048: 9, 4096: 4, 8192: 2, 16384: 1}
#: Largest number of rows for which LUT RAM is smaller than block RAM.
_SMALL = 16


class Ram(wiring.Component):
    """A memory of ``depth`` rows of ``shape``; read data is valid `latency` cycles after its address.

    A read of the address that is written in the same cycle returns undefined data, as block RAM does without logic that
    detects the collision. The content of a row before its first write is undefined too.

    Ports: ``w_en``, ``w_addr``, ``w_data``; ``r_addr``, ``r_data``; with ``stallable``, ``r_en``: the cycles in which a
    read goes on, which alone count for `latency`. On ECP5 the second register of ``r_data`` is the
    block's own: without it a block takes 5.6 ns from clock to output, and with it 1 ns.
    """

    #: Cycles from ``r_addr`` to ``r_data``.
    latency = MEMORY_LATENCY

    def __init__(self, shape: Any, depth: int, *, stallable: bool = False):
        if not (isinstance(depth, int) and depth >= 2):
            raise ValueError(f"Depth must be an integer of at least 2, not {depth!r}")
        self.shape, self.depth, self.stallable = shape, depth, stallable
        super().__init__({
            "w_en": In(1), "w_addr": In(range(depth)), "w_data": In(shape),
            "r_addr": In(range(depth)), "r_data": Out(shape), **({"r_en": In(1)} if stallable else {}),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        if family(platform) == "ecp5" and _SMALL < self.depth <= max(_BLOCKS):
            self._blocks(m)
            return m
        m.submodules.rows = rows = memory.Memory(shape=self.shape, depth=self.depth, init=[],
                                                 attrs={"no_rw_check": True})
        write, read = rows.write_port(), rows.read_port()
        r_data = Signal(Shape.cast(self.shape), reset_less=True)
        m.d.comb += [
            write.en.eq(self.w_en), write.addr.eq(self.w_addr), Cat(write.data).eq(Cat(self.w_data)),
            read.addr.eq(self.r_addr), read.en.eq(self._read_enable), Cat(self.r_data).eq(r_data),
        ]
        with m.If(self._read_enable):
            m.d.sync += r_data.eq(Cat(read.data))
        return m

    @property
    def _read_enable(self) -> Any:
        return self.r_en if self.stallable else Const(1)

    def _blocks(self, m: Module) -> None:
        # With 36 bits the output registers of both ports hold read data, and one of them belongs to the write port.
        rows = min(n for n in _BLOCKS if n >= self.depth and not (self.stallable and _BLOCKS[n] == 36))
        width = _BLOCKS[rows]
        w_data, r_data = Cat(self.w_data), Cat(self.r_data)
        for n, first in enumerate(range(0, len(w_data), width)):
            part = w_data[first:first + width]
            out = Signal(width, name=f"block{n}_data")
            m.d.comb += r_data[first:first + width].eq(out)
            m.submodules[f"block{n}"] = _block(rows, width, self.w_en, self.w_addr, part, self.r_addr,
                                               self._read_enable, out)


def _block(rows: int, width: int, w_en: Any, w_addr: Any, w_data: Any, r_addr: Any, r_en: Any,
           r_data: Signal) -> Instance:
    """One DP16KD: port A writes, port B reads; 36 bits are written to and read from both ports' halves at once."""
    shift = 14 - (rows - 1).bit_length()  # narrower words have more of the 14 address bits
    wires: dict[str, Any] = {
        "i_CLKA": ClockSignal(), "i_CLKB": ClockSignal(),
        # The output registers are always enabled, those of port A too: with 36 bits they output half of the read data.
        "i_CEA": Const(1), "i_OCEA": Const(1), "i_CEB": r_en, "i_OCEB": r_en,
        "i_WEA": Const(1) if width >= 18 else w_en, "i_WEB": Const(0),
        "i_RSTA": Const(0), "i_RSTB": Const(0),
        **{f"i_CS{port}{n}": Const(0) for port in "AB" for n in range(3)},
    }
    w_addr, r_addr = Cat(Const(0, shift), w_addr), Cat(Const(0, shift), r_addr)
    for n in range(14):
        # Words of two and four bytes have one write enable per byte in place of the lowest address bits.
        wires[f"i_ADA{n}"] = w_en if n < width // 9 and width >= 18 else _bit(w_addr, n)
        wires[f"i_ADB{n}"] = _bit(r_addr, n)
    for n in range(18):
        wires[f"i_DIA{n}"] = _bit(w_data, n)
        wires[f"i_DIB{n}"] = _bit(w_data, n + 18)
        if width == 36:
            wires[f"o_DOA{n}"], wires[f"o_DOB{n}"] = r_data[n], r_data[n + 18]
        elif n < width:
            wires[f"o_DOB{n}"] = r_data[n]
    modes: dict[str, Any] = {"p_RESETMODE": "SYNC", "p_ASYNC_RESET_RELEASE": "SYNC", "p_GSR": "DISABLED"}
    for port in "AB":
        modes |= {f"p_DATA_WIDTH_{port}": width, f"p_REGMODE_{port}": "OUTREG", f"p_CSDECODE_{port}": "0b000",
                  f"p_CLK{port}MUX": f"CLK{port}", f"p_WRITEMODE_{port}": "NORMAL"}
    return Instance("DP16KD", **modes, **wires)


def _bit(value: Any, n: int) -> Any:
    return value[n] if n < len(value) else Const(0)
