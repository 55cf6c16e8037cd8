"""`Reused`: a function for ``mapInArrow`` in a Python worker that Spark uses again.

PySpark collects garbage after each task of such a worker, and so visits every object of every module that is loaded:
with NumPy, Arrow, pandas and numba a tenth of a second, which is more than many tasks take.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from splitjoin.base.errors import SplitJoinError


class Reused:
    """``function``, after which what the worker has loaded so far is exempt from the garbage collector."""

    #: Modules that were loaded when objects were last exempted.
    _loaded = 0

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from self._function(batches)
        except SplitJoinError as error:
            # Spark quotes the whole traceback to the user, ahead of the sentence that says what to do. Its worker, for
            # which the setting is, ends with this error.
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise error.with_traceback(None) from None
        # Only after tasks that loaded modules: what a task leaves in cycles, the next collection is to find.
        if len(sys.modules) != Reused._loaded:
            Reused._loaded = len(sys.modules)
            gc.collect()
            gc.freeze()
