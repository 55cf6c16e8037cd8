"""SplitJoin: cores that each store a part of both windows, between a tree that distributes and two that gather."""

from __future__ import annotations

from ..architecture import Architecture

__all__ = ["SplitJoin"]


class SplitJoin(Architecture):
    """The architecture of all circuits but those that ask for another one."""

    name, title = "splitjoin", "a SplitJoin circuit"
    component = "splitjoin_hw.splitjoin", "SplitJoin"
    cores, sequential, folds = 4, False, True
