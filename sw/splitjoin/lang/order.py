"""Output orders, and how they are parsed (semantics, section 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from splitjoin.base.errors import OrderError

from .schema import suggest


@dataclass(frozen=True)
class Order:
    """An output order: ``none``, ``outer`` with a star after every ``n`` probes, ``inner`` with one after every ``n``
    comparisons of each sub-window, ``total``, or ``left``, by the rows of R as they were given, of whole tables only.
    """

    kind: Literal["none", "outer", "inner", "total", "left"]
    n: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("none", "outer", "inner", "total", "left"):
            raise OrderError(_must_be(self.kind))
        if isinstance(self.n, bool) or not isinstance(self.n, int) or not 1 <= self.n < 2**31:
            big = isinstance(self.n, int) and abs(self.n) >= 2**64  # Python does not print ints of 4300 digits
            raise OrderError(f"the precision of order {self.kind!r} must be 1 to 2147483647, not "
                             f"{'a larger number' if big else repr(self.n)}")

    def __str__(self) -> str:
        return f"{self.kind}({self.n})" if self.kind in ("outer", "inner") else self.kind


def parse_order(text: str | Order) -> Order:
    """The order ``"none"``, ``"outer(N)"``, ``"inner(n)"``, ``"total"`` or ``"left"``; N and n from 1, by default 1."""
    if isinstance(text, Order):
        return text
    pattern = r"\s*(none|total|left|outer|inner)\s*(?:\(\s*(\d+)\s*\))?\s*"
    match = re.fullmatch(pattern, text.lower()) if isinstance(text, str) else None
    if match is None or (match[2] is not None and match[1] in ("none", "total", "left")):
        raise OrderError(_must_be(text))
    # 21 digits suffice to see that the number is too large.
    return Order(match[1], int((match[2] or "1").lstrip("0")[:21] or 0))  # type: ignore[arg-type]  # one of five words


def _must_be(came: object) -> str:
    hint = suggest(came.lower(), ("none", "total", "left", "outer(1)", "inner(1)")) if isinstance(came, str) else ""
    return f"order must be 'none', 'outer(N)', 'inner(n)' or 'total', or of whole tables 'left', not {came!r}{hint}"
