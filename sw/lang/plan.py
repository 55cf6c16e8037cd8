"""Conditions compiled: see `splitjoin.lang.passes.pipeline` for how, `splitjoin.lang.planned` for what comes of it."""

from __future__ import annotations

from .ir import Expr
from .passes.pipeline import compiled
from .planned import Main, Plan, Slot, Test

__all__ = ["Main", "Plan", "Slot", "Test", "make_plan"]


def make_plan(predicate: Expr) -> Plan:
    """Plan ``predicate``, whatever it is: what tests cannot decide is in the residual."""
    return compiled(predicate)
