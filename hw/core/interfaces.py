"""The interfaces between the parts of a region: storage, processing side, emitter and index.

Parts have their members as ports of their own names. `interface` shows some of a part's ports as an interface, which
`amaranth.lib.wiring.connect` checks and connects.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit.geometry import distance_bits, position_bits, ring_rows
from splitjoin.circuit.wire import Configuration

from ..layouts import struct
from .layouts import batch_layout, found_layout, task_layout

__all__ = ["LookupSignature", "OutcomeSignature", "ProcessingSignature", "RingSignature", "interface"]


class RingSignature(wiring.Signature):
    """The ring of stream ``side``, as the processing side sees it: its read ports, and what has still to be read.

    ``rows``, ``keys``: read ports, one a lane; ``keys`` belong to the ``rows`` of two cycles ago. ``scanning``,
    ``position``: a pass is under way, and the first position that it has still to read. ``waiting``, ``first``: probes
    wait for the next pass, and the first position that it will read. ``claiming``: a task was handed over that neither
    of these speaks for yet.
    """

    def __init__(self, config: Configuration, side: str):
        position = position_bits(config)
        super().__init__({
            "rows": Out(range(ring_rows(config))).array(config.lanes),
            "keys": In(struct(config.keys(side))).array(config.lanes),
            "scanning": Out(1),
            "position": Out(position),
            "waiting": Out(1),
            "first": Out(position),
            "claiming": Out(1),
        })


class OutcomeSignature(wiring.Signature):
    """The outcomes of reads, as the processing side hands them to the emitter.

    ``found``, ``found_valid``: the outcome of each read, in order. ``room``: no read is issued without it; outcomes of
    earlier reads may still come.
    """

    def __init__(self, config: Configuration):
        super().__init__({"found": Out(found_layout(config)), "found_valid": Out(1), "room": In(1)})


class ProcessingSignature(wiring.Signature):
    """The processing side of the region that stores stream ``side``, of whatever core kind.

    ``task``: `task_layout`, a probe and its window. ``single``: batches of one probe only. `RingSignature` and
    `OutcomeSignature`. ``batch``: `batch_layout`, offered when its pass begins. ``compared``: a probe is taken, which
    this many comparisons come of. A part with this signature has a property ``latency``, cycles from a read to its
    outcome.
    """

    def __init__(self, config: Configuration, side: str):
        super().__init__({
            "task": In(stream.Signature(task_layout(config, side))),
            "single": In(1),
            **RingSignature(config, side).members,
            "batch": Out(stream.Signature(batch_layout(config))),
            **OutcomeSignature(config).members,
            "compared": Out(range(config.capacity + 1)),
        })


class LookupSignature(wiring.Signature):
    """The look-ups in an index, as the processing side makes them.

    ``known``: the position up to which, exclusive, tuples are in the index. ``look``, ``bucket``, ``granted``: a bucket
    is looked up if granted. ``head``: two cycles later, the position of its youngest tuple; ``live``: three cycles
    later, whether there is one. ``distance``: of the tuple in the row of the ring that was read two cycles ago, how
    many positions before it the next one in its bucket is; 0 for none.
    """

    def __init__(self, config: Configuration):
        position = position_bits(config)
        super().__init__({
            "known": In(position),
            "look": Out(1),
            "bucket": Out(range(config.buckets)),
            "granted": In(1),
            "head": In(position),
            "live": In(1),
            "distance": In(distance_bits(config)),
        })


def interface(part: Any, signature: wiring.Signature) -> Any:
    """The ports of ``part`` that ``signature`` names, as an interface for `amaranth.lib.wiring.connect`."""
    return SimpleNamespace(signature=signature, **{name: getattr(part, name) for name in signature.members})
