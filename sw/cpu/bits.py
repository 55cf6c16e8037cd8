"""Counting bits in compiled code, as the processor does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba.extending import intrinsic

__all__ = ["popcount"]


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's decorator; the function it makes is called with one argument less."""
    return cast(Callable[..., Any], intrinsic(function))


@_function
def popcount(typing: Any, word: Any) -> Any:
    """How many bits of ``word``, an unsigned integer, are 1; in the type of ``word``."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate
