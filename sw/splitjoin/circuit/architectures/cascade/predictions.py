"""Cost and speed of a cascade: those of handshake join; of the cost, with numbers in its messages."""

from __future__ import annotations

from ..handshake.predictions import cycles_a_tuple, latency_cycles, parts

__all__ = ["cycles_a_tuple", "latency_cycles", "parts"]
