"""What the flow knows of a board beyond what amaranth-boards declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Board"]


@dataclass(frozen=True)
class Board:
    """A board that bitstreams are built for.

    ``platform`` makes its platform of amaranth-boards, which declares pins, the default clock and the FPGA; each build
    needs a new one. ``link``: the platform's resource that carries the link, a UART. ``bitstream``: suffix of the file
    that the tool chain makes, as Amaranth names it. ``options``: overrides of Amaranth's build templates.
    """

    name: str
    title: str
    family: str
    platform: Callable[[], Any]
    bitstream: str
    link: tuple[str, int] = ("uart", 0)
    options: tuple[tuple[str, str], ...] = ()

    @property
    def clock_hz(self) -> int:
        """Frequency of the default clock, which the circuit runs on, in Hz."""
        return int(self.platform().default_clk_frequency)
