"""Simulated circuits as devices: `SimDevice`, compiled by Verilator, and `PysimDevice`, on Amaranth's simulator.

Both are imported on first use, as the packages that they need are an extra.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import SimDevice
    from .pysim import PysimDevice

__all__ = ["PysimDevice", "SimDevice"]

_MODULES = {"PysimDevice": "pysim", "SimDevice": "device"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
