"""The CPU engine: joins in loops that are compiled at run time."""

from .engine import CpuDevice

__all__ = ["CpuDevice"]
