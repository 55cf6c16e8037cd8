"""A board's whole top with its pads as Verilog for simulation: the board's pins, without the vendor's primitives."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from amaranth.back import rtlil, verilog
from amaranth.build.plat import Platform

from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.link.linked import LinkedJoin
from splitjoin_sim.emulated import EmulatedTop, Pins

from .catalog import Board
from .top import BoardTop

__all__ = ["PadPlatform", "board_top", "uart_pins"]

_TOP = "top"


class PadPlatform(Platform):  # type: ignore[misc]  # amaranth has no types
    """A platform with the resources, the clock and the reset of another one, ``of``, and Amaranth's generic pads.

    `prepare` returns the Verilog of a design. Where the vendor's platform has primitives for pads, clock buffers, and
    the reset after configuration, the generic ones of Amaranth stand, which any simulator knows.
    """

    def __init__(self, of: Any):
        self.default_clk, self.default_rst = of.default_clk, of.default_rst
        super().__init__()
        self.add_resources(of.resources.values())
        self.add_connectors(of.connectors.values())

    resources: Any = ()
    connectors: Any = ()
    required_tools: Any = ()

    def toolchain_prepare(self, fragment: Any, name: str, **kwargs: Any) -> str:
        """The Verilog of the design ``fragment``."""
        text, _ = rtlil.convert_fragment(fragment, name, emit_src=False)
        return str(verilog._convert_rtlil_text(text))


def uart_pins(board: Board, platform: Any, text: str) -> Pins:
    """The ports of ``board``'s top in its Verilog ``text``, made for ``platform``."""
    found = re.search(rf"^module {_TOP}\((.*?)\);", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    ports = [port.strip().lstrip("\\").strip() for port in found[1].split(",")]
    link = f"{board.link[0]}_{board.link[1]}__"

    def pin(start: str) -> str:
        name, = (port for port in ports if port.startswith(start) and not port.endswith("__n"))
        return name

    reset = None
    if platform.default_rst is not None:
        inverted = platform.lookup(platform.default_rst).ios[0].invert
        reset = pin(f"{platform.default_rst}_"), int(not inverted)
    return Pins(_TOP, pin(f"{platform.default_clk}_"), pin(f"{link}rx"), pin(f"{link}tx"), reset)


def board_top(board: Board, config: Configuration, baud: int | None = None, *, pack: bool = False) -> EmulatedTop:
    """The top of ``board`` with the join of ``config``, for the emulator.

    ``baud``: rate of the UART in Hz, as the circuit divides the board's clock; the highest one by default, which is
    simulated fastest. ``pack``: items are packed on the link. Raises `UnsupportedError` for a rate that the clock
    cannot make. There is no PLL: the pin of the clock has the frequency that the PLL would make.
    """
    clock = board.clock_hz
    baud = clock // 4 if baud is None else baud
    if not (baud > 0 and 4 * baud <= clock <= 1024 * baud):
        raise UnsupportedError(f"the rate must be {-(-clock // 1024)} to {clock // 4} Hz on board {board.name}, whose "
                               f"clock has {clock} Hz, not {baud}; choose another --baud")

    def make() -> tuple[str, Pins]:
        platform = PadPlatform(board.platform())
        linked = LinkedJoin(config, clock_hz=clock, baud=baud, pack=pack)
        text = platform.prepare(BoardTop(replace(board, clock=None), linked), _TOP)
        return text, uart_pins(board, platform, text)

    return EmulatedTop((board.name, repr(config), str(baud), *(["packed"] if pack else [])), make, clock / baud)
