"""Low-latency handshake join: a baseline, in which tuples are handed on ahead of joining, and stored in one core."""

from __future__ import annotations

from typing import ClassVar

from splitjoin.base.errors import check

from ..architecture import MovingArchitecture, Only, Parameters

__all__ = ["LowLatencyHandshake"]


class LowLatencyHandshake(MovingArchitecture):
    """Handshake join's chain, with a home core for each tuple (`splitjoin_hw.baseline.low_latency`)."""

    name, title = "low-latency-handshake", "low-latency handshake join"
    component = "splitjoin_hw.baseline.low_latency", "LowLatencyHandshake"
    orders = ("none",)
    cores, later_probes = 4, False
    only: ClassVar[Only] = {
        **MovingArchitecture.only,
        "probes": ((1,), "1, as a later probe may see fewer tuples than an earlier one")}

    def check_parameters(self, parameters: Parameters) -> None:
        super().check_parameters(parameters)
        check(f"cores of {self.title}", parameters.cores, not parameters.cores & (parameters.cores - 1),
              "a power of two, as a tuple's home is its row id modulo the cores")
