"""Stalls of simulated devices: the check of their options, and the limit after which a circuit counts as stuck."""

from __future__ import annotations

from math import ceil

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.wire import Configuration

from .memory import SimulatedMemory

__all__ = ["check_pace", "check_patience", "check_stalls", "patience_for"]

#: Records that can wait in front of a region: in its core's FIFO, and in the tree above.
_QUEUED = 64


def check_stalls(seed: object, stall_in: object, stall_out: object) -> None:
    """Raise `DeviceError` unless ``seed`` is an int and the stalls are shares of cycles, from 0 to less than 1."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise DeviceError(f"seed must be a whole number, not {seed!r}")
    for name, share in (("stall_in", stall_in), ("stall_out", stall_out)):
        # A NaN fails this comparison too.
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise DeviceError(f"{name} must be a share of cycles, from 0 to less than 1, not {share!r}")


def check_pace(pace: object) -> None:
    """Raise `DeviceError` unless ``pace`` is None or a number of records a cycle, above 0 and up to 1."""
    if pace is not None and (isinstance(pace, bool) or not isinstance(pace, (int, float)) or not 2**-32 <= pace <= 1):
        raise DeviceError(f"pace must be a number of records a cycle, from 2^-32 to 1, or None, not {pace!r}")


def check_patience(patience: object) -> None:
    """Raise `DeviceError` unless ``patience`` is None or a number of cycles from 1."""
    if patience is not None and (type(patience) is not int or patience < 1):
        raise DeviceError(f"patience must be a number of cycles from 1, or None, not {patience!r}")


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
        work += ceil(30 / (1 - external.stall))
    return work + ceil(30 / (1 - stall)) + ceil(1 / (pace or 1))
