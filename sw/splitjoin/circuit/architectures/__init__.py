"""The architectures of circuits: a folder each in this package, and a line here.

A folder has the architecture's declaration, its cost and its speed. The declaration names the component in `hw/`, which
is imported when a circuit is made of it (`splitjoin_hw.circuit`).
"""

from __future__ import annotations

from .architecture import Architecture
from .cascade import Cascade
from .celljoin import CellJoin
from .chain import Chain
from .handshake import Handshake
from .kang import Kang
from .low_latency_handshake import LowLatencyHandshake
from .small import Small
from .splitjoin import SplitJoin

__all__ = ["ARCHITECTURES", "Architecture"]

#: Name → architecture, the default first.
ARCHITECTURES: dict[str, Architecture] = {one.name: one for one in (
    SplitJoin(), Small(), Kang(), CellJoin(), Chain(), Handshake(), LowLatencyHandshake(),
    Cascade())}
