"""When a simulated circuit counts as stuck."""

from __future__ import annotations

from math import ceil

from splitjoin.circuit.wire import Configuration

__all__ = ["patience_for"]

#: Records that can wait in front of a region: its core's queue, and the tree above.
_QUEUED = 64


def patience_for(config: Configuration, stall: float = 0.0) -> int:
    """Cycles within which a working circuit hands over something: every queued record may cost a whole scan.

    ``stall``: the share of cycles in which a port pauses at random. A pause longer than what is added for it comes once
    in 10**13.
    """
    # With an index a probe may follow a chain through the whole sub-window, four cycles a tuple.
    work = 1000 + _QUEUED * ((1 if config.core == "scan" else 4) * config.capacity + 128)
    return work + ceil(30 / (1 - stall))
