"""When a simulated circuit counts as stuck."""

from __future__ import annotations

from splitjoin.device.wire import Configuration

__all__ = ["patience_for"]

#: Records that can wait in front of a region: its core's queue, and the tree above.
_QUEUED = 64


def patience_for(config: Configuration) -> int:
    """Cycles within which a working circuit hands over something: every queued record may cost a whole scan."""
    return 1000 + _QUEUED * (config.capacity + 64)
