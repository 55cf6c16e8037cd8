"""Placement: which parts of a join run on the device, which run on the host, and why."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from splitjoin.base.errors import CapacityError, DeviceError, OrderError, SplitJoinError, ToolError, UnsupportedError
from splitjoin.circuit.driver import CircuitDevice
from splitjoin.circuit.lowering import plan_for
from splitjoin.engines.device import Device
from splitjoin.engines.gpu import GpuDevice
from splitjoin.engines.registry import device as find_device
from splitjoin.lang.ir import text
from splitjoin.lang.query import Query
from splitjoin.rows.answers import interval_engine
from splitjoin.rows.interval_joins.form import interval_form

#: The device that takes every query.
FALLBACK = "cpu"


@dataclass(frozen=True)
class Part:
    """A part of a join.

    Attributes:
        name: Its name, such as "condition".
        on_device: True if it runs on the device, False if it runs on the host.
        reason: How it runs, or why it does not run on the device.
    """

    name: str
    on_device: bool
    reason: str

    def __str__(self) -> str:
        return f"{'*' if self.on_device else '!'} {self.name:<11}{self.reason}"


def device_name(device: str | Device) -> str:
    """The name of a device."""
    return device if isinstance(device, str) else device.name


def choose_device(query: Query, device: str | Device, options: Mapping[str, Any],
                  fail_on_fallback: bool, task_cpus: int = 1) -> tuple[str | Device, dict[str, Any], str]:
    """Choose the device that runs ``query``. Returns the device, its options in a task, and the error by which the
    device that was asked for refused the query (empty if it did not).

    Opens the device once on the driver. So a device refuses a query before any task runs, and a circuit is built once,
    not in every task. A daemon's device and a GPU are not opened, as the driver's machine may have none. Raises what
    the device raises; with ``fail_on_fallback=False`` warns instead, and chooses the CPU engine. ``task_cpus``: the
    processors that Spark gives a task, ``spark.task.cpus``.
    """
    try:
        chosen = _made(device, options)
        if query.is_unbounded:
            chosen.open_latest(query).close()
        elif (circuit := chosen.states_circuit(query)) is not None:
            cast(CircuitDevice, chosen).start(circuit).close()
        elif isinstance(chosen, GpuDevice):
            chosen.check(query)
        elif interval_engine(query, chosen) is None and device_name(device) != "daemon":
            chosen.open_deciding(query).close()
    except (CapacityError, OrderError, ToolError, UnsupportedError) as error:
        if fail_on_fallback or device_name(device) == FALLBACK:
            raise
        warnings.warn(f"the join runs on the device {FALLBACK!r}, since {device_name(device)!r} refuses it: {error}",
                      stacklevel=2)
        return FALLBACK, {"threads": task_cpus}, str(error)
    # As Spark runs as many tasks at a time as have processors.
    return device, {**({"threads": task_cpus} if device in (FALLBACK, "gpu") else {}), **options}, ""


def folding(query: Query, device: str | Device, options: Mapping[str, Any]) -> tuple[bool, str]:
    """True if the device folds the aggregates of ``query``, so that no pairs leave it, and a sentence on that."""
    chosen = _made(device, options)
    if (circuit := chosen.states_circuit(query)) is not None:
        pairs = "" if circuit.folding.whole else ", and partners that come after it leave as pairs"
        return True, f"folded in the circuit: one state leaves for each row of left{pairs}"
    if (choice := interval_engine(query, chosen)) is not None:
        return True, f"folded in the Spark task without pairs, by engine {choice}"
    form = interval_form(query)
    why = f": {form}" if chosen.name == "cpu" and isinstance(form, str) else ""
    return False, f"folded in the Spark task from the pairs{why}"


def parts(query: Query, device: str | Device, options: Mapping[str, Any], refused: str, *,
          gathered: Sequence[str]) -> list[Part]:
    """The parts of the join by ``query``.

    ``refused``: the error by which the device that was asked for refused the query, or empty. ``gathered``: the names
    of the result columns.
    """
    name = device_name(device)
    parts = [Part("device", False, f"{FALLBACK} in place of the one asked for: {refused}")] if refused else []
    kept = "the last row of each key of right" if query.is_unbounded else "both windows, arrival order and expiry"
    parts.append(Part("windows", not refused, f"{name}: {kept}"))
    chosen = _made(device, options)
    keys, condition = "computed once for each tuple, with NumPy, in the Spark task", text(query.predicate)
    if isinstance(chosen, CircuitDevice):
        try:
            residual = plan_for(query, chosen).residual
        except SplitJoinError as error:
            return [*parts, Part("condition", False, str(error))]
        parts.append(Part("condition", True, f"{name}: tests of {condition}"))
        if residual is not None:
            parts.append(Part("residual", False, f"the host verifies candidates by {text(residual)}, for which a "
                                                 f"circuit has no operation"))
        parts.append(Part("keys", False, keys))
    else:
        parts.append(Part("condition", not refused, f"{name}: {condition}"))
    if query.aggregates:
        parts.append(Part("aggregates", *folding(query, device, options)))
    parts.append(Part("columns", False, f"{', '.join(gathered)}: gathered by row number in the Spark task (late "
                                        f"materialization)"))
    return parts


def _made(device: str | Device, options: Mapping[str, Any]) -> Device:
    try:
        return find_device(device, **options)
    except (TypeError, ValueError) as error:
        raise DeviceError(f"the device {device!r} does not take the options {dict(options)}: {error}") from error
