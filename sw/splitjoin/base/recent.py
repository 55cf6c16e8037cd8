"""A cache of parsed conditions and statements by their texts; a cached object carries its plans."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar

Made = TypeVar("Made")
Key = TypeVar("Key")
#: The characters of a text from which on it is read anew each time, as it may be a list of very many values.
_LONG = 4096
#: The plans that a text carries at most, by what they depend on, such as the types of columns.
MOST_PLANS = 8


def of_text(make: Callable[..., Made], text: str, *facts: Hashable) -> Made:
    """``make(text, *facts)``: the same object as long as it is among those made last. Errors are raised each time."""
    made: Made = _made(make, text, *facts) if len(text) <= _LONG else make(text, *facts)
    return made


@lru_cache(maxsize=128)
def _made(make: Callable[..., Any], text: str, *facts: Hashable) -> Any:
    return make(text, *facts)


def keep(plans: dict[Key, Made], key: Key, plan: Made) -> Made:
    """Keep ``plan`` under ``key``, and the `MOST_PLANS` that were kept last."""
    plans[key] = plan
    for old in list(plans)[:-MOST_PLANS]:
        plans.pop(old, None)
    return plan


def forget() -> None:
    """Forget all that was made of texts, for tests that change what makes it."""
    _made.cache_clear()
