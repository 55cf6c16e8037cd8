"""Spark's resource scheduling: finds the device whose address Spark assigned to a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from splitjoin.base.errors import UnsupportedError
from splitjoin.engines.device import Device

__all__ = ["RESOURCE", "check_resources", "leased"]

#: The name of the resource in Spark's settings: ``spark.worker.resource.fpga.amount`` and so on.
RESOURCE = "fpga"


def leased(device: str | Device, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of ``device`` in this task.

    For the device ``daemon`` they include the address that Spark assigned to the task, unless ``options`` has one.
    """
    context = TaskContext.get()
    given = context.resources().get(RESOURCE) if context is not None else None
    if device != "daemon" or given is None or "address" in options:
        return dict(options)
    return {**options, "address": given.addresses[0]}


def check_resources(spark: SparkSession) -> None:
    """Raise `UnsupportedError` if tasks need the resource in local mode: it has none, so they would wait for ever."""
    amount = spark.conf.get(f"spark.task.resource.{RESOURCE}.amount", None)
    master = spark.conf.get("spark.master", None) or ""
    if amount is not None and (master == "local" or master.startswith("local[")):
        raise UnsupportedError(f"spark.task.resource.{RESOURCE}.amount is {amount}, but Spark's master is {master!r}, "
                               f"which has no resources to give, so tasks would wait for ever; leave the setting out, "
                               f"or run on a cluster (local-cluster[2,1,1024] is one on this machine)")
