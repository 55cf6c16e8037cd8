"""ScaleGate in software: it merges any number of time-sorted sources of both streams into arrival order.

The structure is that of ScaleJoin (Gulisano, Nikolakopoulos, Papatriantafilou, Tsigas: "ScaleJoin: a deterministic,
disjoint-parallel and skew-resilient stream join", section IV.A); semantics, section 1, defines which tuples are ready,
and their order, without ties.
"""

from .gate import ScaleGate
from .lateness import LatenessRule, Watermark
from .push_order import PushOrder
from .readers import Columns, GateReader, ReadySequence
from .ready_gate import ReadyGate
from .source import GateState, Shed, Source, SourceState, check_side
from .source_gate import SourceGate
from .source_queue import SourceQueue
from .unordered import UnorderedGate

__all__ = [
           "Columns",
           "GateReader",
           "GateState",
           "LatenessRule",
           "PushOrder",
           "ReadyGate",
           "ReadySequence",
           "ScaleGate",
           "Shed",
           "Source",
           "SourceGate",
           "SourceQueue",
           "SourceState",
           "UnorderedGate",
           "Watermark",
           "check_side",
]
