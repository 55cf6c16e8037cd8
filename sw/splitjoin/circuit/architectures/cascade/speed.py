"""The speed of a cascade: that of handshake join."""

from __future__ import annotations

from ..handshake.speed import cycles_a_tuple, latency_cycles

__all__ = ["cycles_a_tuple", "latency_cycles"]
