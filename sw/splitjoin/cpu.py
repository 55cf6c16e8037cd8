"""`CpuDevice`, under the name by which users import it; the engine is `splitjoin.engines.cpu`."""

from .engines.cpu import CpuDevice

__all__ = ["CpuDevice"]
