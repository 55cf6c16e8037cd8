"""CellJoin: a baseline, in which the window is partitioned anew for each probe."""

from __future__ import annotations

from splitjoin.base.errors import OrderError
from splitjoin.lang.order import Order

from ..architecture import MovingArchitecture, Parameters

__all__ = ["CellJoin"]


class CellJoin(MovingArchitecture):
    """Each core has a segment of the window, as long as the others' (`splitjoin_hw.baseline.celljoin`)."""

    name, title = "celljoin", "CellJoin"
    component = "splitjoin_hw.baseline.celljoin", "CellJoin"
    orders = "none", "outer", "total"
    mergers = "ready", "fixed"
    cores = 4
    flow = "shifting"

    def check_order(self, order: Order, parameters: Parameters) -> None:
        """Segments follow each other in age, so a fixed order of inputs sorts; it needs a star for each probe."""
        if order.kind == "total":
            return
        if parameters.merger == "fixed" and parameters.cores > 1 and str(order) != "outer(1)":
            raise OrderError(f"{self.title} with merger='fixed' keeps the order outer(1) or total, which have a star "
                             f"for each probe, not {order}")
        super().check_order(order, parameters)
