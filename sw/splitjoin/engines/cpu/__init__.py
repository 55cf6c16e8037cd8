"""The CPU engine: joins in loops that are compiled at run time."""

from .device import CpuDevice
from .tuning import Tuning

__all__ = ["CpuDevice", "Tuning"]
