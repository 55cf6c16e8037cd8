"""What differs between the versions of Spark that splitjoin runs on: 3.5, 4.0, 4.1, 4.2 and 4.3."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, functions as F, types  # noqa: N812  # the name all Spark code uses
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from splitjoin.base.errors import ToolError, UnsupportedError

#: The version of the PySpark that is imported, as (major, minor).
VERSION: tuple[int, int] = (int(pyspark.__version__.split(".")[0]), int(pyspark.__version__.split(".")[1]))
#: The oldest version that splitjoin runs on.
OLDEST = (3, 5)

#: The seed and the constants of Murmur3's 32-bit form, by which Spark finds the partition of a row
#: (``org.apache.spark.sql.catalyst.expressions.Murmur3HashFunction``).
_SEED, _C1, _C2, _ADD = 42, 0xCC9E2D51, 0x1B873593, 0xE6546B64
_MIX1, _MIX2 = 0x85EBCA6B, 0xC2B2AE35
_MASK = 0xFFFFFFFF


def check_version(version: tuple[int, int] = VERSION) -> None:
    """Raise `ToolError` for a Spark that is older than `OLDEST`."""
    if version < OLDEST:
        raise ToolError(f"splitjoin.spark needs Spark {_written(OLDEST)} or later, and this is {pyspark.__version__}; "
                        f"pip install 'splitjoin[spark]' brings one that fits")


def demand(least: tuple[int, int], what: str, instead: str, version: tuple[int, int] = VERSION) -> None:
    """Raise `UnsupportedError` unless this Spark is ``least`` or later, which ``what`` needs; ``instead``: advice."""
    if version < least:
        raise UnsupportedError(f"{what} needs Spark {_written(least)} or later, and this is {pyspark.__version__}; "
                               f"{instead}")


def type_named(name: str) -> tuple[type[DataType], ...]:
    """The type ``name`` of ``pyspark.sql.types``, for ``isinstance``; none where this Spark has no such type."""
    found = getattr(types, name, None)
    return () if found is None else (found,)


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type in which Spark hands values of ``kind`` to Python; timestamps with the zone UTC.

    Raises `pyspark.errors.PySparkTypeError` for a type that it cannot hand over.
    """
    zone: dict[str, Any] = {"timezone": "UTC"} if VERSION >= (4, 2) else {}  # UTC without the argument before
    return to_arrow_type(kind, **zone)


def by_number(frame: DataFrame, partitions: int, column: str, version: tuple[int, int] = VERSION) -> DataFrame:
    """``frame`` with the rows whose ``column`` (an int from 0) is k in its partition k of so many ``partitions``."""
    if version >= (4, 1):
        return frame.repartitionById(partitions, column)
    # Spark takes the hash of a value modulo the number of partitions: so by the value whose hash is the number.
    values = ",".join(map(str, hashed_to(np.arange(partitions, dtype=np.uint32))))
    value = F.split(F.lit(values), ",").cast("array<int>")  # a constant, which Spark computes once
    return frame.repartition(partitions, F.element_at(value, F.col(column) + 1))


def hashed_to(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """The ints whose `hash` in Spark is each of ``hashes``: Murmur3 of four bytes is a bijection, here backwards."""
    h = hashes.astype(np.uint64)
    h = h ^ (h >> np.uint64(16))
    h = _times(h, pow(_MIX2, -1, 1 << 32))
    h = h ^ (h >> np.uint64(13)) ^ (h >> np.uint64(26))
    h = _times(h, pow(_MIX1, -1, 1 << 32))
    h = h ^ (h >> np.uint64(16))
    h = h ^ np.uint64(4)  # the length in bytes
    h = _times((h - np.uint64(_ADD)) & np.uint64(_MASK), pow(5, -1, 1 << 32))
    k = _rotated(h, 32 - 13) ^ np.uint64(_SEED)
    k = _rotated(_times(k, pow(_C2, -1, 1 << 32)), 32 - 15)
    return _times(k, pow(_C1, -1, 1 << 32)).astype(np.uint32).view(np.int32)


def _times(values: npt.NDArray[np.uint64], factor: int) -> npt.NDArray[np.uint64]:
    """The products in 32 bits."""
    return (values * np.uint64(factor)) & np.uint64(_MASK)  # in 64 bits, of which the low ones are right


def _rotated(values: npt.NDArray[np.uint64], left: int) -> npt.NDArray[np.uint64]:
    """32-bit values rotated by ``left`` bits."""
    return ((values << np.uint64(left)) | (values >> np.uint64(32 - left))) & np.uint64(_MASK)


def _written(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
