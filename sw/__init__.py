"""splitjoin: joins of unbounded streams under any condition, on a CPU, a simulated circuit, or an FPGA.

`join` is the whole way in one call; `Query`, `splitjoin.device` and `splitjoin.golden` are its parts.
"""

from .errors import (
    CapacityError,
    DeviceError,
    InputError,
    OrderError,
    PredicateError,
    SchemaError,
    SplitJoinError,
    ToolError,
    UnsupportedError,
    WindowError,
    WindowOverflow,
)
from .join import JoinResult, execute, join
from .lang.query import Query
from .lang.schema import Schema

__all__ = [
    "CapacityError", "DeviceError", "InputError", "JoinResult", "OrderError", "PredicateError", "Query", "Schema",
    "SchemaError", "SplitJoinError", "ToolError", "UnsupportedError", "WindowError", "WindowOverflow", "execute",
    "join",
]
