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
from splitjoin_hw.memory.sdram import board_controller
from splitjoin_sim.emulated import EmulatedTop, Pins
from splitjoin_sim.sdram import SdramChip, sdram_verilog

from .catalog import Board
from .ft232h import FT232H_HZ
from .top import BoardTop

_TOP, _WITH_CHIPS = "top", "board"


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


def link_pins(board: Board, platform: Any, text: str) -> Pins:
    """The ports of ``board``'s top in its Verilog ``text``, made for ``platform``; with an FT232H not those of it."""
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
    rx, tx = (None, None) if board.link[0] == "ft232h" else (pin(f"{link}rx"), pin(f"{link}tx"))
    return Pins(_TOP, pin(f"{platform.default_clk}_"), rx, tx, reset)


def _with_chips(text: str, pins: Pins) -> str:
    """``text``, the Verilog of a board's top with ``pins``, with a module around it that joins it to an ``sdram_chip``
    if it has one's pins, and has the ports of ``pins.cpp`` if it has those of an FT232H.

    Once the SDRAM has found that a time was not kept, the board is silent.
    """
    at = {chip: {name: (pin, int(high or 0) + 1) for high, pin, name in re.findall(
        rf"^  (?:input|output|inout) (?:\[(\d+):0\] )?({chip}_0__(\w+)__io);", text, re.MULTILINE)}
        for chip in ("sdram", "ft232h")}
    pads = [pad for of in at.values() for pad in of.values()]
    inputs = [pins.clk, *([] if pins.reset is None else [pins.reset[0]])]
    joined = [f".{name}({name})" for name in [*inputs, *(pin for pin, _ in pads)]]
    body = [*(f"  wire [{bits - 1}:0] {pin};" for pin, bits in pads), "  wire [4:0] faults;"]
    if pins.rx is None:
        inputs += [f"fifo_{name}" for name in ("clkout", "rxf", "txe", "drives")]
        ports = [*map("input {}".format, inputs), "input [7:0] fifo_d", "output [7:0] fifo_q",
                 *(f"output fifo_{name}" for name in ("rd", "wr", "oe", "driven", "fault"))]
        body += [f"  assign ft232h_0__{name}__io = {value};" for name, value in (
            ("clkout", "fifo_clkout"), ("rxf", "~fifo_rxf"), ("txe", "~fifo_txe"),
            ("d", "fifo_drives ? fifo_d : 8'bz"))]
        body += [f"  assign fifo_{name} = {value};" for name, value in (
            ("rd", "~ft232h_0__rd__io"), ("wr", "~ft232h_0__wr__io"), ("oe", "~ft232h_0__oe__io"),
            ("driven", "top.ft232h_d.oe"), ("q", "ft232h_0__d__io"), ("fault", "|faults"))]
    else:
        inputs.append(pins.rx)
        ports = [*map("input {}".format, inputs), f"output {pins.tx}"]
        joined += [f".{pins.rx}({pins.rx})", f".{pins.tx}(sends)"]
        body += ["  wire sends;", f"  assign {pins.tx} = sends | (|faults);"]
    body += [f"  {_TOP} top ({', '.join(joined)});", _sdram(at["sdram"]) if at["sdram"] else "  assign faults = 0;"]
    return "\n".join([text, f"module {_WITH_CHIPS} ({', '.join(ports)});", *body, "endmodule", ""])


def _sdram(sdram: dict[str, tuple[str, int]]) -> str:
    """The ``sdram_chip`` at the pins ``sdram`` of a board's top: names of ports, and bits."""
    selected = "~sdram_0__cs__io & sdram_0__clk_en__io" if "cs" in sdram else "1'b1"
    at_chip = ", ".join([*(f".pins__{name}(selected & ~sdram_0__{name}__io)" for name in ("ras", "cas", "we")),
                         *(f".pins__{name}(sdram_0__{name}__io)" for name in ("ba", "a"))])
    dq, masked = sdram["dq"][0], f"|{sdram['dqm'][0]}" if "dqm" in sdram else "1'b0"
    return f"""  wire drives;
  wire [{sdram["dq"][1] - 1}:0] word;
  wire selected = {selected};
  sdram_chip chip (.clk({sdram["clk"][0]}), .rst(1'b0), {at_chip}, .pins__dqm({masked}), .pins__dq_o({dq}),
    .pins__dq_oe(top.sdram_dq.oe), .pins__dq_i(word), .drives(drives), .faults(faults));
  assign {dq} = drives ? word : {sdram["dq"][1]}'bz;"""


def board_top(board: Board, config: Configuration, baud: int | None = None, *, pack: bool = False) -> EmulatedTop:
    """The top of ``board`` with the join of ``config``, for the emulator.

    ``baud``: rate of the UART in Hz, as the circuit divides the board's clock; the highest one by default, which is
    simulated fastest; without meaning for a board `with_ft232h`. ``pack``: items are packed on the link. Raises
    `UnsupportedError` for a rate that the clock cannot make. There is no PLL: the pin of the clock has the frequency
    that the PLL would make.
    """
    clock, fifo = board.clock_hz, board.link[0] == "ft232h"
    baud = clock // 4 if baud is None else baud
    if not (baud > 0 and 4 * baud <= clock <= 1024 * baud):
        raise UnsupportedError(f"the rate must be {-(-clock // 1024)} to {clock // 4} Hz on board {board.name}, whose "
                               f"clock has {clock} Hz, not {baud}; choose another --baud")

    def make() -> tuple[str, Pins]:
        platform = PadPlatform(board.platform())
        controller = board_controller(config, board.sdram, clock)
        linked = LinkedJoin(config, clock_hz=clock, baud=None if fifo else baud, pack=pack, sdram=controller)
        text = platform.prepare(BoardTop(replace(board, clock=None), linked), _TOP)
        pins = link_pins(board, platform, text)
        joined = replace(pins, module=_WITH_CHIPS)
        if config.memory != "sdram" or board.sdram is None:
            return (_with_chips(text, pins), joined) if fifo else (text, pins)
        chip = SdramChip(board.sdram, board.sdram.cycles(clock), board.sdram.burst(config), words=True)
        return _with_chips(text, pins) + sdram_verilog(chip, "sdram_chip"), joined

    key = (board.name, repr(config), str(baud), *(["packed"] if pack else []), *(["ft232h"] if fifo else []))
    return EmulatedTop(key, make, clock / baud, clock / FT232H_HZ if fifo else None)
