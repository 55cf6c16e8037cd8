"""The cost of each kind of core: a file and a line of the table a kind, as in `splitjoin.circuit.core_kinds`."""

from __future__ import annotations

from .bucket import BucketCost
from .hash import HashCost
from .kind import CoreCost
from .scan import ScanCost

__all__ = ["CORE_COSTS", "CoreCost"]

#: Name of the kind → its cost.
CORE_COSTS: dict[str, CoreCost] = {"scan": ScanCost(), "hash": HashCost(), "bucket": BucketCost()}
