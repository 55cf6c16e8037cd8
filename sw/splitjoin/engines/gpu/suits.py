"""Queries that the GPU engine takes: those in which keys of both streams are compared."""

from __future__ import annotations

from splitjoin.plan.plan import Plan, tests_nothing

__all__ = ["why_not"]


def why_not(plan: Plan) -> str:
    """Why the GPU does not run ``plan``, in words; empty if it does."""
    if plan.residual is not None and tests_nothing(plan):
        return (f"compares keys of both streams, but '{plan.predicate}' has no comparison of both that keys decide")
    return ""
