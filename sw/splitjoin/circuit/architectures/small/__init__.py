"""Small circuits: one state machine that processes a tuple at a time, for small FPGAs."""

from __future__ import annotations

from ..architecture import Parameters, SequentialArchitecture

__all__ = ["Small"]


class Small(SequentialArchitecture):
    """A quarter of the cells of one core, half as fast or less. Both windows share a memory, and often a datapath."""

    name, title = "small", "a small circuit"
    component = "splitjoin_hw.small.top", "SmallTop"
    counters = ("tuples_r", "tuples_s")  # in 32 bits

    def datapaths(self, config: Parameters) -> tuple[str, ...]:
        """One datapath serves both streams where the condition is the same from both sides."""
        computed = config.sums or config.formula is not None
        same = config.keys_r == config.keys_s and all(r == s for r, s in config.tests) and not computed
        return ("s",) if same else ("r", "s")
