"""Cost of a cascade: that of handshake join, with numbers in its messages."""

from __future__ import annotations

from ..handshake.cost import parts

__all__ = ["parts"]
