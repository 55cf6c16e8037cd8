"""An instruction that numba does not emit by itself: counting bits."""

from __future__ import annotations

from typing import Any

from numba.extending import intrinsic


@intrinsic
def popcount(typing: Any, word: Any) -> Any:
    """The number of 1 bits of ``word``, an unsigned integer; in the type of ``word``. Callers omit ``typing``."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate
