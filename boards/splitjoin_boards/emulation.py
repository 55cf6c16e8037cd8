"""The device ``emulator:BOARD`` or ``emulator:DESIGN``: the driver of boards, on a board that is emulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import ClassVar

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.driver import CircuitDevice, Transport
from splitjoin.circuit.wire import Configuration
from splitjoin.link.designed import DesignedDevice
from splitjoin.link.sidecar import Sidecar
from splitjoin.link.transport import LinkTransport
from splitjoin.link.uart import SerialChannel
from splitjoin_sim.emulator import Emulator, Faults

from .catalog import Board, find
from .ft232h import ft232h_pins, with_ft232h
from .pads import board_top
from .pll import clocked


class _EmulatedTransport(LinkTransport):
    """The link to an emulator that belongs to it."""

    def __init__(self, board: Emulator, config: Configuration, *, timeout: float, reconnect: float):
        self.board = board
        # Before its first tuple a board clears the heads of long windows, which the emulator takes minutes for.
        super().__init__(lambda: SerialChannel(board.path, 3_000_000), config, answer_within=timeout,
                         reconnect_within=reconnect, stalled_after=20 * timeout)

    def close(self) -> None:
        super().close()
        self.board.close()

    def _step(self) -> None:
        if self.board.broken:
            raise DeviceError(f"the circuit must keep the rules of the chips at its pins, but {self.board.broken}; "
                              f"report it, with the query and the options")
        super()._step()


@dataclass(frozen=True, kw_only=True)
class EmulatorDevice(DesignedDevice):
    """A board whose whole top, with pads and UART or FT232H, runs in Verilator, behind a pseudo-terminal and boards'
    driver.

    Parameters as of `CircuitDevice`, and:

    Attributes:
        target: The name of a board, or the sidecar ``design.json`` of a built circuit, whose parameters (except
            ``fold``) replace those of the device. Each session has a board of its own.
        ft232h: Pins of an FT232H that carries the link, as of `with_ft232h`; empty for the board's UART.
        clock_hz: Frequency of the circuit's clock in Hz, as of `clocked`; 0 for the board's own.
        pack: Items are packed on the link.
        timeout, reconnect: As of the device ``uart``. An emulated board may take long on a busy machine; it counts as
            stalled after 20 times ``timeout``.
        drop, flip, double, delay, unplug, reset, fault_seed: As of `Faults`. The board of each session has faults of
            its own, so that one that is opened anew does not fail at the same byte again.
    """

    name: ClassVar[str] = "emulator"

    target: str
    ft232h: str = ""
    clock_hz: int = 0
    pack: bool = False
    timeout: float = 60.0
    reconnect: float = 60.0
    drop: float = 0.0
    flip: float = 0.0
    double: float = 0.0
    delay: float = 0.0
    unplug: int = 0
    reset: int = 0
    fault_seed: int = 0
    _opened: Iterator[int] = field(default_factory=count, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.target, str) or not self.target:
            raise DeviceError(f"the device 'emulator' needs a board or a design, as in 'emulator:ulx3s_85f', not "
                              f"{self.target!r}")
        if type(self.pack) is not bool:
            raise DeviceError(f"pack must be True or False, not {self.pack!r}")
        self._faults(0)
        if not self._is_design:
            self._board()

    @property
    def _sidecar(self) -> str | None:
        return self.target if self._is_design else None

    def _built(self, design: Sidecar) -> CircuitDevice:
        chip = ft232h_pins(design.pins) if design.link == "ft232h" else ""
        device = replace(self, target=design.board, pack=design.pack, ft232h=chip, clock_hz=design.clock_hz,
                         **{**design.parameters, "fold": self.fold})
        object.__setattr__(device, "_opened", self._opened)  # the same row of boards
        return device

    @property
    def _is_design(self) -> bool:
        return Path(self.target).suffix == ".json"

    def _board(self) -> Board:
        board = find(self.target)
        if self.clock_hz:
            board = clocked(board, self.clock_hz)
        return with_ft232h(board, self.ft232h) if self.ft232h else board

    def _faults(self, board: int) -> Faults:
        return Faults(drop=self.drop, flip=self.flip, double=self.double, delay=self.delay, unplug=self.unplug,
                      reset=self.reset, seed=self.fault_seed + (board << 32))

    def _connect(self, config: Configuration) -> Transport:
        board = Emulator(board_top(self._board(), config, pack=self.pack),
                         self._faults(next(self._opened))).start()
        try:
            return _EmulatedTransport(board, config, timeout=self.timeout, reconnect=self.reconnect)
        except BaseException:
            board.close()
            raise
