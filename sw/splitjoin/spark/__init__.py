"""Joins of Spark DataFrames on splitjoin's devices: `stream_join`, `stream_sql`, `joined_with`, and their tools.

`spark_jar` is the path of the extension that runs joins of plain ``spark.sql``.

Needs the extra ``spark`` (``pip install 'splitjoin[spark]'``) and Java 17 or later.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from splitjoin.base.errors import ToolError as _ToolError

if TYPE_CHECKING:
    from splitjoin.catalyst.jar import spark_jar

    from .errors import task_error
    from .explained import explain
    from .join import joined_with, stream_join
    from .metrics import JoinMetrics, Latencies
    from .null_values import with_null_values
    from .progress_log import ProgressLog
    from .replayed import replay
    from .session import local_session
    from .sql import stream_sql

__all__ = [
    "JoinMetrics", "Latencies", "ProgressLog", "explain", "joined_with", "local_session", "replay", "spark_jar",
    "stream_join", "stream_sql", "task_error", "with_null_values",
]

#: The module of each name, imported when it is asked for: Spark's workers need none of them.
_MODULES = {name: f"splitjoin.{module}" for module, names in {
    "catalyst.jar": "spark_jar", "spark.errors": "task_error", "spark.explained": "explain",
    "spark.join": "joined_with stream_join", "spark.metrics": "JoinMetrics Latencies",
    "spark.null_values": "with_null_values", "spark.progress_log": "ProgressLog", "spark.replayed": "replay",
    "spark.session": "local_session", "spark.sql": "stream_sql",
}.items() for name in names.split()}


def _imported(module: str) -> Any:
    """A module that needs Spark."""
    try:
        return _import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "pandas"):
            raise
        raise _ToolError(f"splitjoin.spark needs the Python package {error.name!r}, which is not installed; "
                         f"pip install 'splitjoin[spark]'") from error


def __getattr__(name: str) -> Any:
    """A name of the API, imported when it is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(_imported(_MODULES[name]), name))


_imported("splitjoin.spark.versions").check_version()
