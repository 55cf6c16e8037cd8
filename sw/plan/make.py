"""Conditions compiled: see `splitjoin.plan.passes.pipeline` for how, `splitjoin.plan.plan` for what comes of it."""

from __future__ import annotations

from ..lang.ir import Expr
from .passes.pipeline import compiled
from .passes.strength import Sums
from .plan import Main, Plan, Slot, SumTest, Test

__all__ = ["Main", "Plan", "Slot", "SumTest", "Sums", "Test", "make_plan"]


def make_plan(predicate: Expr, sums: Sums = "none", clock: float | None = None) -> Plan:
    """Plan ``predicate``, whatever it is: what tests cannot decide is in the residual.

    ``sums``: for circuits, which compute what no interval test says: "instead" of the interval tests that it implies,
    or "beside" them, for an index to find candidates by; with "instead" tests have widths. ``clock``: also for
    circuits, the MHz that their datapath gets registers for.
    """
    return compiled(predicate, sums, clock)
