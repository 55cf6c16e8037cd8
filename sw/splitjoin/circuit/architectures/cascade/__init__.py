"""ESJ's cascade: a baseline, handshake join with blocks of tuples and a threshold."""

from __future__ import annotations

from splitjoin.base.errors import check

from ..architecture import MovingArchitecture, Parameters

__all__ = ["Cascade"]


class Cascade(MovingArchitecture):
    """Handshake join by the protocol MP-2PF of ESJ (`splitjoin_hw.baseline.handshake`)."""

    name, title = "cascade", "a cascade"
    component = "splitjoin_hw.baseline.handshake", "Handshake"
    orders = ("none",)
    cores, settles, later_probes, blocks = 4, False, False, True

    def check_parameters(self, parameters: Parameters) -> None:
        super().check_parameters(parameters)
        check(f"threshold with blocks of {parameters.block}", parameters.threshold,
              parameters.threshold >= parameters.block, f"{parameters.block} or more, so that no block goes back")
        check(f"threshold with a capacity of {parameters.capacity}", parameters.threshold,
              parameters.capacity is None or parameters.threshold <= parameters.capacity,
              f"{parameters.capacity} or less")
