"""The components of each core kind: one file and one table line per kind, like `splitjoin.circuit.core_kinds`."""

from __future__ import annotations

from .bucket import CellBuckets
from .hash import HashBuckets
from .index import IndexComponents
from .kind import CoreComponents
from .scan import ScanComponents

__all__ = ["CORE_COMPONENTS", "CoreComponents"]

#: Name of the kind → its components.
CORE_COMPONENTS: dict[str, CoreComponents] = {
    "scan": ScanComponents(), "hash": IndexComponents(HashBuckets()), "bucket": IndexComponents(CellBuckets()),
}
