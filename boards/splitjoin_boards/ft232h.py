"""Boards with an FT232H at pins of their connectors, which carries the link in place of their UART."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal

from splitjoin.base.errors import UnsupportedError

from .catalog import Board, Bridge

#: Frequency of the chip's clock, CLKOUT, in Hz.
FT232H_HZ = 60_000_000
#: The chip's pins beside D0 to D7, in the order in which `with_ft232h` takes them.
_STROBES = ("rxf", "txe", "rd", "wr", "oe", "siwu", "clkout")


def with_ft232h(board: Board, pins: str) -> Board:
    """``board`` with the chip at ``pins``: 15 names with commas between them, of D0 to D7, RXF#, TXE#, RD#, WR#, OE#,
    SIWU# and CLKOUT; each a connector's pin, as ``gpio_0:5+``, or one of the FPGA, as ``B11``.

    Raises `UnsupportedError` unless they are 15 pins of an ECP5 that nothing else of the circuit is at.
    """
    if board.family != "ecp5":
        raise UnsupportedError(f"an FT232H needs a board with an ECP5, but {board.name} is of {board.family}; choose "
                               f"another board, or leave --ft232h out")
    names, made = [name.strip() for name in pins.split(",")], board.platform()
    if unknown := [name for name in names if ":" in name and name not in made._conn_pins]:
        raise UnsupportedError(f"board {board.name} has no pins {', '.join(unknown)}; its connectors have "
                               f"{', '.join(made._conn_pins) or 'none: give pins of the FPGA'}")
    places = [made._conn_pins.get(name, name) for name in names]
    if len(set(places) - {""}) != 8 + len(_STROBES) or len(places) != 8 + len(_STROBES):
        raise UnsupportedError(f"--ft232h must be {8 + len(_STROBES)} different pins, of D0 to D7, RXF#, TXE#, RD#, "
                               f"WR#, OE#, SIWU# and CLKOUT, not {pins!r}")
    if taken := sorted(set(places) & _taken(board, made)):
        raise UnsupportedError(f"the pins of an FT232H must be free, but {', '.join(taken)} of board {board.name} are "
                               f"those of its clock, reset or SDRAM; choose other pins")

    def platform() -> Any:
        found, strobes = board.platform(), dict(zip(_STROBES, names[8:], strict=True))
        found.add_resources([Resource(
            "ft232h", 0, Subsignal("d", Pins(" ".join(names[:8]), dir="io")),
            *(Subsignal(name, PinsN(strobes[name], dir="i")) for name in ("rxf", "txe")),
            *(Subsignal(name, PinsN(strobes[name], dir="o")) for name in ("rd", "wr", "oe", "siwu")),
            Subsignal("clkout", Pins(strobes["clkout"], dir="i"), Clock(FT232H_HZ)), Attrs(IO_TYPE="LVCMOS33"))])
        return found

    return replace(board, platform=platform, link=("ft232h", 0), bridge=Bridge("FT232H"))


def ft232h_pins(pins: dict[str, str]) -> str:
    """The ``pins`` for `with_ft232h` of a built circuit, whose pins of the FPGA a sidecar lists by name."""
    return ",".join([*pins.get("d", "").split(), *(pins.get(name, "") for name in _STROBES)])


def _taken(board: Board, platform: Any) -> set[str]:
    """The FPGA's pins of clock, reset and SDRAM."""
    kinds = [(platform.default_clk, 0), *([(platform.default_rst, 0)] if platform.default_rst else []),
             *([("sdram", 0)] if board.sdram else [])]
    found: set[str] = set()
    for kind in kinds:
        resource = platform.lookup(*kind)
        for part in resource.ios:
            for group in part.ios if isinstance(part, Subsignal) else [part]:
                pair = [group] if hasattr(group, "map_names") else [group.p, group.n]
                found.update(name for one in pair for name in one.map_names(platform._conn_pins, resource))
    return found
