"""Devices by name. Device packages are imported when asked for, so that a Spark executor needs no HDL tool."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from os import PathLike
from typing import Any, NamedTuple, Union

from splitjoin.base.errors import DeviceError, OptionError, ToolError
from splitjoin.lang.schema import suggest

from .device import Device

#: Value of a device's option.
DeviceOption = Union[int, float, str, None, PathLike[str], Collection[int]]


#: What users call an argument → its name.
_ELSEWHERE = {"kind": "how", "type": "how", "join_type": "how", "columns": "select", "rename": "select",
              "suffix": "suffixes", "lsuffix": "suffixes", "rsuffix": "suffixes"}
#: Arguments of `splitjoin.join` alone → why others do not have them.
_OF_JOIN = {
    "prevailing": "prevailing=True needs a row of any age, which neither streams nor partitions keep",
    "ended": "ended=… leaves rows out that are found: in a statement, write WHERE NOT s.ended, or in streams CASE WHEN "
             "NOT s.ended THEN s.rate END",
}


class DeviceEntry(NamedTuple):
    """A device of the table: its module and class, the extra that installs what the module needs, and what it is."""

    module: str
    name: str
    extra: str | None
    about: str


#: The devices by name.
DEVICES: dict[str, DeviceEntry] = {
    "cpu": DeviceEntry("splitjoin.engines.cpu.device", "CpuDevice", None,
                       "compiled loops and indexes on this machine"),
    "daemon": DeviceEntry("splitjoin.link.daemon.client", "DaemonDevice", None,
                          "a device of a running `splitjoin daemon`"),
    "emulator": DeviceEntry("splitjoin_boards.emulation", "EmulatorDevice", "emulator",
                            "a whole board in Verilator, behind its driver: emulator:ulx3s_85f"),
    "golden": DeviceEntry("splitjoin.engines.golden", "GoldenDevice", None,
                          "the reference model, a tuple at a time"),
    "gpu": DeviceEntry("splitjoin.engines.gpu.device", "GpuDevice", "gpu",
                       "nested loops on an NVIDIA GPU: gpu, or gpu:1 for another one"),
    "pysim": DeviceEntry("splitjoin_sim.pysim", "PysimDevice", "sim",
                         "the circuit on Amaranth's simulator"),
    "sim": DeviceEntry("splitjoin_sim.device", "SimDevice", "sim",
                       "the circuit compiled by Verilator, cycle-accurate"),
    "uart": DeviceEntry("splitjoin.link.uart", "UartDevice", "uart",
                        "a board, or its emulator, at a serial port, or an FT232H: uart:/dev/ttyUSB0"),
    "xdma": DeviceEntry("splitjoin.link.xdma", "XdmaDevice", None,
                        "a circuit with AXI ports behind a DMA driver: xdma:/dev/xdma0"),
    "zynq": DeviceEntry("splitjoin.link.zynq", "ZynqDevice", None,
                        "a circuit with AXI ports behind the AXI DMA of a Zynq: zynq:udmabuf0"),
}

#: Modules of Python that only Unix has.
_UNIX = ("fcntl", "grp", "pwd", "resource", "termios")


def device(spec: str | Device, **options: object) -> Device:
    """Make the device that ``spec`` names, with ``options`` for its constructor; a `Device` is returned as it is.

    ``spec`` is a name, or ``name:target`` for a device with a target, such as ``uart:/dev/ttyUSB0``. Raises
    `DeviceError` for a name, target or option that does not exist, and for options beside a `Device`; `ToolError` if a
    package is missing.
    """
    if isinstance(spec, Device):
        if options:
            raise DeviceError(f"options are for a device given by name, but came with a {type(spec).__name__}: "
                              f"{', '.join(options)}; give a Device its parameters when making it")
        return spec
    whole, cls = spec, _class_of(spec)
    spec, colon, target = spec.partition(":")
    parameters = _parameters(cls)
    takes = parameters.get("target")
    if colon:
        if takes is None:
            raise DeviceError(f"the device {spec!r} takes no target, but {whole!r} names one; write {spec!r}")
        options["target"] = target
    elif takes is not None and takes.default is takes.empty and "target" not in options:
        example = re.search(rf"\b{spec}:\S+", DEVICES[spec].about)
        raise DeviceError(f"the device {spec!r} needs a target, as in "
                          f"{example[0] if example else f'{spec}:TARGET'!r}")
    wrong = [name for name in options if name not in parameters]
    if wrong:
        raise _no_option(spec, wrong, tuple(parameters), None)
    made = cls(**options)
    assert isinstance(made, Device)
    return made


@cache
def _parameters(call: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of ``call``, which take longer to find than a join of few rows."""
    return inspect.signature(call).parameters


def host(**options: object) -> Device:
    """The device that joins in this process, for what the host finds itself beside another device."""
    return device("cpu", **options)


def merged_options(given: Mapping[str, Any] | None, more: Mapping[str, Any], spec: str | Device,
                   call: Callable[..., Any]) -> dict[str, Any]:
    """The options of the device ``spec``: those ``given`` as a mapping, and ``more``, the keywords of ``call`` that are
    no arguments of its own.

    Raises `DeviceError` for anything but a mapping, for an option that is given twice, and for a keyword that is no
    option, with the argument of ``call`` that may have been meant.
    """
    if given is not None and not isinstance(given, Mapping):
        raise DeviceError(f"device_options must be a mapping, such as {{'cores': 8}}, not {given!r}")
    twice = sorted(set(given or {}) & set(more))
    if twice:
        raise DeviceError(f"the option {twice[0]!r} of the device is given twice, in device_options and by its name; "
                          f"give it once")
    check_not_of_join(more)
    if more and (known := _known_options(spec)) is not None and (wrong := [name for name in more if name not in known]):
        meant = [name for name in wrong if _like(name, argument_names(call))]
        if meant or not isinstance(spec, Device):
            raise _no_option(spec, sorted(wrong, key=lambda name: name not in meant), known, call)
    return {**(given or {}), **more}


def check_not_of_join(names: Iterable[str]) -> None:
    """Raise `OptionError` for an argument of `splitjoin.join` alone, which came to another call as one of ``names``."""
    for name in names:
        if name in _OF_JOIN:
            raise OptionError(f"{_OF_JOIN[name]}; {name}=… is an argument of splitjoin.join, over whole tables")


def argument_names(call: Callable[..., Any]) -> list[str]:
    """The names by which the arguments of ``call`` are given, to look for one that was meant: without those of two
    letters, which are like any other short name.
    """
    return [name for name, parameter in _parameters(call).items() if len(name) > 2
            and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]


def _like(word: str, arguments: Sequence[str]) -> str:
    """`suggest`, which also knows what other libraries call an argument."""
    meant = _ELSEWHERE.get(word)
    return f" (did you mean {meant!r}?)" if meant in arguments else suggest(word, arguments)


def _known_options(spec: str | Device) -> tuple[str, ...] | None:
    """The options of the device ``spec``; None if its packages are not on this machine, as on the driver of Spark."""
    try:
        return option_names(spec)
    except ToolError:
        return None


def _no_option(spec: str | Device, wrong: Sequence[str], known: Sequence[str],
               call: Callable[..., Any] | None) -> DeviceError:
    """The error for options that the device ``spec`` does not have; ``call``: whose argument may have been meant."""
    nor, arguments = ("", list[str]()) if call is None else (
        f", nor has {call.__name__} such an argument", argument_names(call))
    which = repr(spec) if isinstance(spec, str) else type(spec).__name__
    return DeviceError(f"the device {which} has no option {', '.join(map(repr, wrong))}{nor}"
                       f"{_like(wrong[0], [*arguments, *known])}; its options are {', '.join(known) or '(none)'}")


def option_names(spec: str | Device) -> tuple[str, ...]:
    """The names of the options that ``spec`` takes: none if it is a `Device`. Raises as `device`."""
    return () if isinstance(spec, Device) else tuple(_parameters(_class_of(spec)))


def missing(spec: str) -> str:
    """Names what the device ``spec`` lacks on this machine, with the cure; empty if its packages are installed, and
    the GPU is there.
    """
    try:
        return str(_class(spec).problem())
    except ToolError as error:
        return str(error)


def _class_of(spec: object) -> Any:
    """The class of the device called ``spec``, with or without a target. Raises `DeviceError` if there is none."""
    name = spec.partition(":")[0] if isinstance(spec, str) else ""
    if name not in DEVICES:
        hint = suggest(name, DEVICES) if isinstance(spec, str) else ""
        got = repr(spec) if isinstance(spec, str) else f"of type {type(spec).__name__}"
        raise DeviceError(f"there is no device {got}{hint}; devices are {', '.join(DEVICES)}")
    return _class(name)


def _class(spec: str) -> Any:
    module, name, extra, _ = DEVICES[spec]
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("splitjoin."):
            raise
        if error.name in _UNIX:
            raise ToolError(f"the device {spec!r} needs Python's module {error.name!r}, which is not on this platform; "
                            f"use it on Linux, or take another device") from error
        raise ToolError(f"the device {spec!r} needs the Python package {error.name!r}, which is not installed; "
                        f"pip install '{f'splitjoin[{extra}]' if extra else error.name}'") from error
