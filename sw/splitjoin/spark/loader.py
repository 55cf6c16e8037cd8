"""`load` and `load_or_report`: the first thing that a Python worker runs of splitjoin.

Spark sends these functions themselves, with their code, since the worker may have no splitjoin to import them from. So
they must use nothing of this package, and nothing outside this file.
"""

from collections.abc import Iterator
from typing import Any


def load(version: str, data: bytes) -> Any:
    """The object that was pickled as ``data`` by splitjoin ``version``.

    Raises splitjoin's ``ToolError`` where there is no splitjoin, another version of it, or a package that it needs is
    missing. The class is made here, under the name by which `task_error` knows it.
    """
    import pickle
    import platform
    import sys
    from importlib import import_module

    def refusal(what: str) -> Exception:
        kind = type("ToolError", (RuntimeError,), {"__module__": "splitjoin.base.errors"})
        error = kind(f"Spark's Python workers must have splitjoin {version}, as the driver has, but {what} (Python "
                     f"{sys.version.split()[0]}, {sys.executable}, on host {platform.node()}); set PYSPARK_PYTHON or "
                     f"spark.pyspark.python to a Python that has it, or ship one: pack the driver's environment with "
                     f"venv-pack or conda-pack and give it with --archives (spark.archives); spark.submit.pyFiles "
                     f"carries splitjoin alone, where the packages that it needs are installed")
        assert isinstance(error, Exception)
        return error

    try:
        splitjoin = import_module("splitjoin")
    except ImportError as error:
        missing = getattr(error, "name", None)
        raise refusal("this one has none" if missing == "splitjoin" else
                      f"this one cannot import it: {error}") from None
    found = getattr(splitjoin, "__version__", None)
    if getattr(splitjoin, "__file__", None) is None:
        raise refusal("this one has none")  # an empty folder of that name is a package for Python
    if found != version:
        raise refusal(f"this one has {found or 'another version'} at {splitjoin.__file__}")
    try:
        return pickle.loads(data)
    except ImportError as error:
        raise refusal(f"this one cannot import all of it: {error}") from None


def load_or_report(version: str, data: bytes) -> Any:
    """`load`, but where it refuses, a function for ``mapInArrow`` that gives the refusal as a row: class and text.

    A task that gives a row does not fail, so Spark prints no trace of Java's before the driver's error.
    """
    try:
        return load(version, data)
    except RuntimeError as error:
        if type(error).__name__ != "ToolError":
            raise
        refusal = error

    def report(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            import pyarrow as pa
        except ImportError:  # Spark itself would refuse next, and not name splitjoin
            raise refusal from None
        for _ in batches:
            continue
        yield pa.RecordBatch.from_pydict({"kind": ["ToolError"], "message": [str(refusal)]})

    return report
