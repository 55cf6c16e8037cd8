"""SplitJoin: cores that each store a part of both windows, between a tree that distributes and two that gather."""

from __future__ import annotations

from splitjoin.base.errors import check

from ..architecture import Architecture, Parameters

__all__ = ["SplitJoin"]


class SplitJoin(Architecture):
    """The architecture of all circuits but those that ask for another one."""

    name, title = "splitjoin", "a SplitJoin circuit"
    component = "splitjoin_hw.splitjoin", "SplitJoin"
    cores, sequential, folds = 4, False, True
    mergers = "ready", "fixed"
    stages, isolates = True, True

    def check_parameters(self, parameters: Parameters) -> None:
        super().check_parameters(parameters)
        check(f"merger with root_width {parameters.root_width}", parameters.merger,
              parameters.merger == "ready" or parameters.root_width == 1, "ready")
