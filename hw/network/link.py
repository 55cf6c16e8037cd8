"""What a stream becomes on a long way: nothing waits on it, as whoever sends knows that there is room at its end."""

from __future__ import annotations

from typing import Any

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LinkSignature"]


class LinkSignature(wiring.Signature):
    """``comes``: there is an item of ``shape``, ``payload``, which must be taken. ``room``: items may be sent.

    Both ways go through the same number of registers, so that some more come after ``room`` has fallen.
    """

    def __init__(self, shape: Any):
        super().__init__({"payload": Out(shape), "comes": Out(1), "room": In(1)})
