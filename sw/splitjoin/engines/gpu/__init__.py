"""The GPU engine: nested loops over keys in the memory of a GPU, in the session of the CPU engine."""

from .device import GpuDevice

__all__ = ["GpuDevice"]
