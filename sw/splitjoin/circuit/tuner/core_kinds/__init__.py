"""The speed of each kind of core, and the shapes that the tuner tries: a file and a line of the table for each kind, as
in `splitjoin.circuit.core_kinds`.
"""

from __future__ import annotations

from .bucket import BucketSpeed
from .hash import HashSpeed
from .kind import CoreSpeed, Shape
from .scan import ScanSpeed

__all__ = ["CORE_SPEEDS", "CoreSpeed", "Shape"]

#: Name of the kind → its speed.
CORE_SPEEDS: dict[str, CoreSpeed] = {"scan": ScanSpeed(), "hash": HashSpeed(), "bucket": BucketSpeed()}
