"""How deeply a condition may be nested.

What reads the IR recurses; without a limit of our own, Python's would show as a traceback from somewhere deep inside.
"""

from __future__ import annotations

from ..errors import PredicateError
from .ir import Expr

__all__ = ["MAX_DEPTH", "check_depth", "too_deep"]

#: The most levels that the IR of a condition may have.
MAX_DEPTH = 100


def check_depth(e: Expr) -> None:
    """Raise `PredicateError` if ``e`` has more than `MAX_DEPTH` levels."""
    levels, level = 0, [e]
    while level:
        # Front ends use one node in several places: each is followed once a level.
        levels, level = levels + 1, list({id(child): child for node in level for child in node.children}.values())
        if levels > MAX_DEPTH:
            raise too_deep()


def too_deep() -> PredicateError:
    """The error for a condition beyond `MAX_DEPTH`."""
    return PredicateError(f"the condition must not be nested more than {MAX_DEPTH} levels deep; a sum of n terms has n "
                          f"levels, but a chain of ANDs or of ORs has only one; in SQL text, no more than some 40 "
                          f"parentheses should be within each other")
