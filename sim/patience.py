"""When a simulated circuit counts as stuck."""

from __future__ import annotations

from splitjoin.device.wire import Configuration

__all__ = ["patience_for"]

#: Records that can wait in front of a region: its core's queue, and the tree above.
_QUEUED = 64


def patience_for(config: Configuration) -> int:
    """Cycles within which a working circuit hands over something: every queued record may cost a whole scan."""
    # With an index a probe may follow a chain through the whole sub-window, four cycles a tuple.
    return 1000 + _QUEUED * ((1 if config.core == "scan" else 4) * config.capacity + 128)
