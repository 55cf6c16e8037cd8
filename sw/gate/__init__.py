"""ScaleGate in software: any number of time-sorted sources of both streams merged into arrival order.

The structure is that of ScaleJoin (Gulisano, Nikolakopoulos, Papatriantafilou, Tsigas: "ScaleJoin: a deterministic,
disjoint-parallel and skew-resilient stream join", section IV.A); what is ready, and in which order, is defined by
semantics, section 1, which leaves no ties.
"""

from .gate import ScaleGate
from .push_order import PushOrder
from .source import GateState, Source, SourceState, check_side
from .times import parse_lateness, to_ticks

__all__ = ["GateState", "PushOrder", "ScaleGate", "Source", "SourceState", "check_side", "parse_lateness", "to_ticks"]
