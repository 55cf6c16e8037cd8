"""ScaleGate in software: it merges any number of time-sorted sources of both streams into arrival order.

The structure is that of ScaleJoin (Gulisano, Nikolakopoulos, Papatriantafilou, Tsigas: "ScaleJoin: a deterministic,
disjoint-parallel and skew-resilient stream join", section IV.A); semantics, section 1, defines which tuples are ready,
and their order, without ties.
"""

from .gate import ScaleGate, UnorderedGate
from .lateness import LatenessRule, Watermark
from .readers import Columns, GateReader, GateState, ReadyGate, ReadySequence
from .source import Shed, Source, SourceQueue, check_side
from .source_gate import SourceGate

__all__ = ["Columns", "GateReader", "GateState", "LatenessRule", "ReadyGate", "ReadySequence", "ScaleGate", "Shed",
           "Source", "SourceGate", "SourceQueue", "UnorderedGate", "Watermark", "check_side"]
