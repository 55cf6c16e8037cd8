"""Tells devices that are circuits from others, without an import of the driver: most processes join on the CPU, and the
circuits' modules are a third of what the package imports.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from splitjoin.engines.device import Device

if TYPE_CHECKING:
    from typing import TypeGuard

    from .driver import CircuitDevice

__all__ = ["is_circuit"]


def is_circuit(device: Device) -> TypeGuard[CircuitDevice]:
    """True if ``device`` is a `CircuitDevice`. Where nothing has imported the driver there is none."""
    driver = sys.modules.get(f"{__package__}.driver")
    return driver is not None and isinstance(device, driver.CircuitDevice)
