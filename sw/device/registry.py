"""Devices by name. Device packages are imported when asked for, so that a Spark executor needs no HDL tool."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from ..errors import DeviceError, ToolError
from ..lang.schema import suggest
from .api import Device

__all__ = ["DEVICES", "device", "missing"]

#: Name → (module, class, extra that installs what the module needs).
DEVICES: dict[str, tuple[str, str, str | None]] = {
    "cpu": ("splitjoin.cpu.device", "CpuDevice", None),
    "daemon": ("splitjoin.daemon.client", "DaemonDevice", None),
    "emulator": ("splitjoin.boards.emulation", "EmulatorDevice", "emulator"),
    "golden": ("splitjoin.golden", "GoldenDevice", None),
    "pysim": ("splitjoin.sim.pysim", "PysimDevice", "sim"),
    "sim": ("splitjoin.sim.device", "SimDevice", "sim"),
    "uart": ("splitjoin.link.uart", "UartDevice", "uart"),
    "xdma": ("splitjoin.link.xdma", "XdmaDevice", None),
}


def device(spec: str | Device, **options: object) -> Device:
    """The device called ``spec`` with ``options`` for its constructor; a `Device` is returned as it is.

    ``spec`` is a name, or ``name:target`` for a device with a target, such as ``uart:/dev/ttyUSB0``. Raises
    `DeviceError` for a name, target or option that does not exist, and `ToolError` if a package is missing.
    """
    if isinstance(spec, Device):
        return spec
    whole = spec
    if isinstance(spec, str):
        spec, colon, target = spec.partition(":")
    if not isinstance(spec, str) or spec not in DEVICES:
        hint = suggest(spec, DEVICES) if isinstance(spec, str) else ""
        raise DeviceError(f"there is no device {whole!r}{hint}; devices are {', '.join(DEVICES)}")
    cls = _class(spec)
    takes = inspect.signature(cls).parameters.get("target")
    if colon:
        if takes is None:
            raise DeviceError(f"the device {spec!r} takes no target, but {whole!r} names one; write {spec!r}")
        options["target"] = target
    elif takes is not None and takes.default is takes.empty and "target" not in options:
        raise DeviceError(f"the device {spec!r} needs a target, as in '{spec}:TARGET'")
    wrong = [name for name in options if name not in inspect.signature(cls).parameters]
    if wrong:
        known = ", ".join(inspect.signature(cls).parameters) or "(none)"
        raise DeviceError(f"the device {spec!r} has no option {', '.join(map(repr, wrong))}; its options are {known}")
    made = cls(**options)
    assert isinstance(made, Device)
    return made


def missing(spec: str) -> str:
    """Names what the device ``spec`` lacks on this machine, with the cure; empty if its packages are installed."""
    try:
        _class(spec)
    except ToolError as error:
        return str(error)
    return ""


def _class(spec: str) -> Any:
    module, name, extra = DEVICES[spec]
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("splitjoin."):
            raise
        raise ToolError(f"the device {spec!r} needs the Python package {error.name!r}, which is not installed; "
                        f"pip install '{f'splitjoin[{extra}]' if extra else error.name}'") from error
