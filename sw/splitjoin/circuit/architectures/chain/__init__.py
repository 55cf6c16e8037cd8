"""SplitJoin's cores on a chain: a baseline, by which the effect of trees can be measured."""

from __future__ import annotations

from typing import ClassVar

from ..architecture import Architecture, Only

__all__ = ["Chain"]


class Chain(Architecture):
    """Records and results go from core to core, as in low-latency handshake join (`splitjoin_hw.baseline.chain`)."""

    name, title = "chain", "a chain of SplitJoin's cores"
    component = "splitjoin_hw.baseline.chain", "Chain"
    cores, sequential, folds = 4, False, False
    mergers = "ready", "fixed"
    stages = True
    baseline = True
    flow = "chain"
    only: ClassVar[Only] = {"root_width": ((1,), "1, as its last merger gives one result a cycle")}
