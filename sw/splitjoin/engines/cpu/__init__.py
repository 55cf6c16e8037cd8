"""The CPU engine: joins in loops that are compiled at run time."""

from ..tuning import Tuning
from .device import CpuDevice

__all__ = ["CpuDevice", "Tuning"]
