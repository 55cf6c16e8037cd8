"""Joins of Spark DataFrames on splitjoin's devices: `stream_join`, `stream_sql`, `joined_with`, and their tools.

`spark_jar` is the path of the extension that runs joins of plain ``spark.sql``.

Needs the extra ``spark`` (``pip install 'splitjoin[spark]'``) and Java 17 or later.
"""

from splitjoin.base.errors import ToolError
from splitjoin.catalyst.jar import spark_jar

try:
    from .versions import check_version

    check_version()
    from .errors import task_error
    from .explain import explain
    from .join import joined_with, stream_join
    from .metrics import JoinMetrics, Latencies
    from .null_values import with_null_values
    from .progress_log import ProgressLog
    from .replay import replay
    from .session import local_session
    from .sql import stream_sql
except ModuleNotFoundError as error:
    if error.name not in ("pyspark", "pandas"):
        raise
    raise ToolError(f"splitjoin.spark needs the Python package {error.name!r}, which is not installed; "
                    f"pip install 'splitjoin[spark]'") from error

__all__ = [
    "JoinMetrics", "Latencies", "ProgressLog", "explain", "joined_with", "local_session", "replay", "spark_jar",
    "stream_join", "stream_sql", "task_error", "with_null_values",
]
