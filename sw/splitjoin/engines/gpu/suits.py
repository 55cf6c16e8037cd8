"""Queries that the GPU engine takes."""

from __future__ import annotations

from splitjoin.lang.ir import Arith, Expr, distinct, sides
from splitjoin.lang.types import Float
from splitjoin.plan.plan import Plan, tests_nothing

from ..compiled.atoms import ValueRange, atoms
from ..compiled.exact_source import NotCompiled
from ..compiled.expression_source import compile_pair


def is_expression(plan: Plan) -> bool:
    """True if every pair is evaluated by the condition itself, as no keys of both streams are compared."""
    return plan.residual is not None and tests_nothing(plan)


def why_not(plan: Plan) -> str:
    """Why the GPU does not run ``plan``, in words; empty if it does."""
    if not is_expression(plan):
        return ""
    try:
        check_compiled(plan.predicate)
    except NotCompiled as reason:
        return f"has no code for {reason}, and '{plan.predicate}' compares no keys of both streams"
    return ""


def check_compiled(predicate: Expr) -> None:
    """Raise `NotCompiled` if there is no code for ``predicate`` on a GPU, whatever the values."""
    for e, _ in distinct(predicate):
        if isinstance(e, Arith) and isinstance(e.type, Float) and len(sides(e)) == 2 and e.op in ("*", "mod"):
            # A GPU adds to a product without rounding it first.
            raise NotCompiled(f"'{e}', as a GPU rounds it otherwise")
    every = atoms(predicate)
    compile_pair(predicate, every, {a.expr: ValueRange() for a in every}, 64)
