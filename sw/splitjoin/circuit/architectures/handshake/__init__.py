"""Handshake join: a baseline, in which both streams pass each other in a chain of cores."""

from __future__ import annotations

from ..architecture import MovingArchitecture

__all__ = ["Handshake"]


class Handshake(MovingArchitecture):
    """Tuples move from core to core, and meet those of the other stream (`splitjoin_hw.baseline.handshake`)."""

    name, title = "handshake", "handshake join"
    component = "splitjoin_hw.baseline.handshake", "Handshake"
    orders = ("none",)
    cores, settles, later_probes = 4, False, False
