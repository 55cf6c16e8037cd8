"""Output orders (semantics, section 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import OrderError

__all__ = ["Order", "parse_order"]


@dataclass(frozen=True)
class Order:
    """``none``, ``outer`` with a star after every ``n`` probes, ``inner`` with a star after every ``n`` comparisons of
    each sub-window, or ``total``.
    """

    kind: Literal["none", "outer", "inner", "total"]
    n: int = 1

    def __str__(self) -> str:
        return f"{self.kind}({self.n})" if self.kind in ("outer", "inner") else self.kind


def parse_order(text: str | Order) -> Order:
    """Parse ``"none"``, ``"outer(N)"``, ``"inner(n)"`` or ``"total"``; N, n from 1; ``outer`` alone is ``outer(1)``."""
    if isinstance(text, Order):
        return text
    pattern = r"\s*(none|total|outer|inner)\s*(?:\(\s*(\d+)\s*\))?\s*"
    match = re.fullmatch(pattern, text.lower()) if isinstance(text, str) else None
    if match is None or (match[2] is not None and match[1] in ("none", "total")):
        raise OrderError(f"order must be 'none', 'outer(N)', 'inner(n)' or 'total', not {text!r}")
    n = int(match[2] or 1)
    if not 1 <= n < 2**31:
        raise OrderError(f"the precision of order {match[1]!r} must be 1 to 2147483647, not {n}")
    return Order(match[1], n)  # type: ignore[arg-type]  # the pattern admits these four words only
