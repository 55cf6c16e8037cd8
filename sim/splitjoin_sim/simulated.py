"""The base of simulated devices: their options, and the limit after which a circuit counts as stuck."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.driver import CircuitDevice, Transport
from splitjoin.circuit.encode import Words
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.device import Items

from .latency import LatencyLog
from .memory import EXTERNAL, SimulatedMemory
from .waveforms import TRACES, check_trace

#: Records that can wait in front of a region: in its core's FIFO, and in the tree above.
_QUEUED = 64


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, kw_only=True)
class SimulatedDevice(CircuitDevice):
    """Simulation of every cycle. Parameters as of `CircuitDevice`, and:

    Attributes:
        seed: Seed of the random stalls.
        stall_in, stall_out: Share of cycles, 0 ≤ share < 1, in which the input pauses, and in which the
            host does not read.
        pace: Records that come in a cycle while there are records to send, from 0 to 1, and wait in front of the input;
            None for one as soon as the last is accepted.
        patience: Cycles without any transfer after which the circuit counts as stuck; None for the most that the
            longest scan and the longest pause can take.
        trace: The file that gets the waveforms of a session, .fst or .vcd; None for none.
        external: The memory of windows that do not lie in block RAM (parameter ``memory``). With ``sdram``, the device
            ``sim`` has a chip and its controller instead: 32 MB of 16 bits, at 100 MHz.
    """

    simulated: ClassVar[bool] = True
    #: Formats of waveforms, by suffix.
    traces: ClassVar[tuple[str, ...]] = TRACES

    seed: int = 0
    stall_in: float = 0.0
    stall_out: float = 0.0
    pace: float | None = None
    patience: int | None = None
    trace: str | os.PathLike[str] | None = None
    external: SimulatedMemory = EXTERNAL

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise DeviceError(f"seed must be a whole number, not {self.seed!r}")
        for name, share in (("stall_in", self.stall_in), ("stall_out", self.stall_out)):
            if not _is_number(share) or not 0 <= share < 1:  # a NaN fails this comparison too
                raise DeviceError(f"{name} must be a share of cycles, from 0 to less than 1, not {share!r}")
        if self.pace is not None and (not _is_number(self.pace) or not 2**-32 <= self.pace <= 1):
            raise DeviceError(f"pace must be a number of records a cycle, from 2^-32 to 1, or None, not {self.pace!r}")
        if self.patience is not None and (type(self.patience) is not int or self.patience < 1):
            raise DeviceError(f"patience must be a number of cycles from 1, or None, not {self.patience!r}")
        check_trace(self.name, self.trace, self.traces)

    def _options(self, config: Configuration) -> dict[str, Any]:
        patience = self.patience or patience_for(config, max(self.stall_in, self.stall_out), self.pace, self.external)
        return {"seed": self.seed, "stall_in": self.stall_in, "stall_out": self.stall_out, "pace": self.pace,
                "patience": patience, "trace": self.trace, "external": self.external}


class SimulatedTransport(Transport):
    """A transport that knows the cycle of every transfer."""

    def __init__(self) -> None:
        self._log = LatencyLog()

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        return self.transfer_from(records, np.zeros(len(records), np.intp), until_end=until_end)

    def latencies(self) -> npt.NDArray[np.int64] | None:
        return self._log.latencies()

    def accepted(self) -> npt.NDArray[np.int64] | None:
        return self._log.accepted()

    def pair_latencies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        return self._log.pair_latencies()


def patience_for(config: Configuration, stall: float = 0.0, pace: float | None = None,
                 external: SimulatedMemory | None = None) -> int:
    """Cycles within which a working circuit makes a transfer: every queued record may cost a whole scan.

    ``stall``: the share of cycles in which a port pauses at random. A pause exceeds the cycles added for it once in
    10**13. ``pace``: records that come in a cycle. ``external``: the memory of windows that do not lie in block RAM.
    """
    # With an index a probe may follow a chain through the whole sub-window, four cycles a tuple.
    work = 1000 + _QUEUED * ((4 if config.kind.has_index else 1) * config.capacity + 128)
    if config.structure.moves:  # all tuples of a full chain may pass all cores before the next item leaves
        work += 2 * (config.window_capacity + config.cores) * (config.capacity + 128)
    work += 2 * config.fault_timeout * config.cores  # each core in turn may be found dead
    if external is not None and config.memory != "bram":
        # A probe may read the whole sub-window line after line; heads are cleared after a reset.
        each = ceil(external.longest / (1 - external.stall))
        work += 2 * config.contexts * (each + 16) * config.capacity + config.buckets * external.interval
        if config.memory == "sdram":  # 200 us of its start, and a write in twenty cycles
            work += 20_000 + 20 * config.buckets
        work += ceil(30 / (1 - external.stall))
    return work + ceil(30 / (1 - stall)) + ceil(1 / (pace or 1))
