"""Spark's resource scheduling: finds the device whose address Spark assigned to a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from splitjoin.base.errors import UnsupportedError
from splitjoin.engines.device import Device

#: Device → the name of the resource in Spark's settings, as in ``spark.worker.resource.fpga.amount``, and the option of
#: the device that takes an address of it.
RESOURCES = {"daemon": ("fpga", "address"), "gpu": ("gpu", "target")}


def leased(device: str | Device, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of ``device`` in this task.

    For the devices ``daemon`` and ``gpu`` they include the address that Spark assigned to the task, unless ``options``
    has one.
    """
    context = TaskContext.get()
    name, option = RESOURCES.get(device, ("", "")) if isinstance(device, str) else ("", "")
    given = context.resources().get(name) if context is not None else None
    if given is None or option in options:
        return dict(options)
    return {**options, option: given.addresses[0]}


def check_resources(spark: SparkSession) -> None:
    """Raise `UnsupportedError` if tasks need a resource in local mode: it has none, so they would wait for ever."""
    master = spark.conf.get("spark.master", None) or ""
    for name, _ in RESOURCES.values():
        amount = spark.conf.get(f"spark.task.resource.{name}.amount", None)
        if amount is not None and (master == "local" or master.startswith("local[")):
            raise UnsupportedError(f"spark.task.resource.{name}.amount is {amount}, but Spark's master is {master!r}, "
                                   f"which has no resources to give, so tasks would wait for ever; leave the setting "
                                   f"out, or run on a cluster (local-cluster[2,1,1024] is one on this machine)")
