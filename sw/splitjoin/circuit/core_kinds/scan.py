"""Core kind ``scan``: every stored tuple is compared with every probe."""

from __future__ import annotations

from splitjoin.plan.plan import Plan

from .kind import CoreKind, IndexConfiguration, RegionParameters

__all__ = ["Scan"]


class Scan(CoreKind):
    """A core that reads its sub-window for each batch of probes. Every condition can have it."""

    name = "scan"
    has_index, has_tables, folds = False, True, True
    index_must = "empty"

    def index_sizes(self, tests: int) -> range:
        return range(1)

    def check_parameters(self, parameters: RegionParameters) -> None:
        pass

    def suitable_index(self, plan: Plan) -> tuple[int, ...]:
        return ()

    def index_with(self, plan: Plan, main: int) -> tuple[int, ...]:
        return ()

    def ways(self, config: IndexConfiguration) -> int:
        return 0

    def index_widths(self, config: IndexConfiguration, side: str) -> tuple[int, ...]:
        return ()
