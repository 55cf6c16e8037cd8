"""Recovery of splitjoin's errors from Spark's: out of a task, back to the driver."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from splitjoin.base import errors
from splitjoin.base.errors import DeviceError, InputError, SplitJoinError

# The error as Python prints it, wherever Spark put that in its own message: on a line of its own, or behind a colon.
# What follows it is indented, empty, or Java's part of the text.
_RAISED = re.compile(r"(?:^|: )[ \t]*splitjoin\.base\.errors\.(\w+): "
                     r"(.*(?:\n(?!\s|Driver stacktrace|SQLSTATE|JVM|=).+)*)", re.M)


def task_error(error: BaseException) -> SplitJoinError | None:
    """The `SplitJoinError` that made a Spark action fail, or None if there is none.

    An action such as ``collect()`` fails with Spark's own exception, which quotes that of the task. This finds
    splitjoin's message in it::

        try:
            rows = joined.collect()
        except PySparkException as e:
            raise splitjoin.spark.task_error(e) or e
    """
    if isinstance(error, SplitJoinError):
        return error
    found = _RAISED.search(str(error))
    if found is None:
        return _two_joins(error)
    return rebuilt(found[1], found[2].strip())


def _two_joins(error: BaseException) -> SplitJoinError | None:
    """The error for two joins of one name in a query, which Spark refuses with the query's plan; None for another."""
    if not isinstance(error, PySparkException) or error.getCondition() != "DUPLICATED_METRICS_NAME":
        return None
    name = (error.getMessageParameters() or {}).get("metricName", "")
    return InputError(f"two joins of the query have the name {name!r}, but the joins of one query need different "
                      f"names, as their states and metrics are kept by name; give each call its own, such as "
                      f"name='orders'")


def rebuilt(kind: str, message: str) -> SplitJoinError:
    """The error of the class called ``kind`` with the text ``message``."""
    try:
        made = getattr(errors, kind, DeviceError)(message)
    except TypeError:  # an error that is built from parts, such as WindowOverflow, is not rebuilt from its text
        made = SplitJoinError(message)
    assert isinstance(made, SplitJoinError)
    return made
