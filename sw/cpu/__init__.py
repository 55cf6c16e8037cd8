"""The CPU engine: the same joins at the speed of the machine, compiled at run time."""

from .engine import CpuDevice

__all__ = ["CpuDevice"]
