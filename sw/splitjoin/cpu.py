"""`CpuDevice` and `Tuning`, under the name by which users import it; the engine is `splitjoin.engines.cpu`."""

from .engines.cpu import CpuDevice, Tuning

__all__ = ["CpuDevice", "Tuning"]
