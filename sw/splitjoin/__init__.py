"""splitjoin: joins of unbounded streams under any condition, on a CPU, a simulated circuit, or an FPGA.

`join` is the whole way in one call; `query` and `splitjoin.open` are the same for streams that do not end. `Query`,
`splitjoin.engines` and `splitjoin.engines.golden` are their parts, `splitjoin.sessions.gate` merges sources.

The API is what `dir(splitjoin)` lists, `splitjoin.clock`, `splitjoin.hls`, `splitjoin.intervals`, and
`splitjoin.spark`. All other modules may change with any release.
"""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING, Any

from splitjoin.base.version import __version__ as __version__
from splitjoin.lang.front_ends import register_condition_front_end as _register_condition_front_end

if TYPE_CHECKING:
    from splitjoin.base.errors import (
        BackPressure,
        CapacityError,
        DeviceError,
        InputError,
        OrderError,
        PredicateError,
        SchemaError,
        SnapshotError,
        SplitJoinError,
        StatementError,
        ToolError,
        UnsupportedError,
        WindowError,
        WindowOverflow,
    )
    from splitjoin.base.explanation import Explanation
    from splitjoin.circuit.tuner import Proposal, tune
    from splitjoin.joins.circuit_component import component
    from splitjoin.joins.explained import explain
    from splitjoin.joins.horizon import horizon
    from splitjoin.joins.join import join
    from splitjoin.joins.sql import MultiwaySelect, Select, sql
    from splitjoin.lang.field import field, measured, parquet_schema
    from splitjoin.lang.fold import fixed, signed, unsigned
    from splitjoin.lang.python.aggregate import aggregate, function
    from splitjoin.lang.python.choices import coalesce, date_diff, date_trunc, greatest, least, where
    from splitjoin.lang.python.decorator import predicate
    from splitjoin.lang.query import Query
    from splitjoin.lang.schema import Schema
    from splitjoin.rows.result import JoinResult
    from splitjoin.sessions import (
        AdaptivePrecision,
        AsyncStreamJoin,
        Limit,
        MultiwayJoin,
        SharedQuery,
        SharedStreams,
        Shedding,
        StreamJoin,
        open as open,  # noqa: A004  # called as splitjoin.open
        open_async,
        open_multiway,
        open_unsorted,
        query,
        share,
    )
    from splitjoin.sessions.epochs import drop_epochs
    from splitjoin.sessions.gate import ScaleGate

# `open` is public too, but not here: a star import must not hide Python's own.
__all__ = ["AdaptivePrecision", "AsyncStreamJoin", "BackPressure", "CapacityError", "DeviceError", "Explanation",
           "InputError", "JoinResult", "Limit", "MultiwayJoin", "MultiwaySelect", "OrderError", "PredicateError",
           "Proposal", "Query", "ScaleGate", "Schema", "SchemaError", "Select", "SharedQuery", "SharedStreams",
           "Shedding", "SnapshotError", "SplitJoinError", "StatementError", "StreamJoin", "ToolError",
           "UnsupportedError", "WindowError", "WindowOverflow", "aggregate", "coalesce", "component", "date_diff",
           "date_trunc", "drop_epochs", "explain", "field", "fixed", "function", "greatest", "horizon", "join", "least",
           "measured", "open_async", "open_multiway", "open_unsorted", "parquet_schema", "predicate", "query", "share",
           "signed", "sql", "tune", "unsigned", "where"]

# Here, as the language knows no front end that needs another package, and users of Columns need not import one.
_register_condition_front_end("pyspark", kind="a Spark Column", module="splitjoin.spark.columns", function="condition")

#: The module of each name, imported when it is asked for: a task of Spark needs a few of them, and pays for no other.
_MODULES = {name: f"splitjoin.{module}" for module, names in {
    "base.errors": "BackPressure CapacityError DeviceError InputError OrderError PredicateError SchemaError "
                   "SnapshotError SplitJoinError StatementError ToolError UnsupportedError WindowError WindowOverflow",
    "base.explanation": "Explanation",
    "circuit.tuner": "Proposal tune",
    "joins.circuit_component": "component",
    "joins.explained": "explain",
    "joins.horizon": "horizon",
    "joins.join": "join",
    "joins.sql": "MultiwaySelect Select sql",
    "lang.field": "field measured parquet_schema",
    "lang.fold": "fixed signed unsigned",
    "lang.python.aggregate": "aggregate function",
    "lang.python.choices": "coalesce date_diff date_trunc greatest least where",
    "lang.python.decorator": "predicate",
    "lang.query": "Query",
    "lang.schema": "Schema",
    "rows.result": "JoinResult",
    "sessions": "AdaptivePrecision AsyncStreamJoin Limit MultiwayJoin SharedQuery SharedStreams Shedding StreamJoin "
                "open open_async open_multiway open_unsorted query share",
    "sessions.epochs": "drop_epochs",
    "sessions.gate": "ScaleGate",
}.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """A name of the API, or a module of this package, imported when it is asked for."""
    if name in _MODULES:
        return globals().setdefault(name, getattr(_import_module(_MODULES[name]), name))
    if not name.startswith("_") and _find_spec(f"splitjoin.{name}") is not None:
        for module in ("joins.join", "sessions"):  # with which the package's other modules are attributes of each other
            _import_module(f"splitjoin.{module}")
        return _import_module(f"splitjoin.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The API, without the modules that Python adds to a package as they are imported."""
    return sorted({*__all__, "__version__", "open"})
