"""The process from which Spark forks its Python workers, with splitjoin imported: a worker then starts at once.

Spark runs it with ``spark.python.daemon.module=splitjoin.spark.daemon``, in place of ``pyspark.daemon``. Otherwise each
worker imports splitjoin for its first join, which takes a second of CPU time: one worker a core, and new ones after a
minute without work.
"""

import gc

from pyspark.daemon import manager

import splitjoin.catalyst.task
import splitjoin.spark.streaming.plain_sql
import splitjoin.spark.task  # noqa: F401  # what tasks need, and all that it imports

__all__ = ["manager"]

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # workers share these objects, and collect none of them
    manager()
