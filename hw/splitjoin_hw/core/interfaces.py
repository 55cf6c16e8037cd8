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


class RingSignature(wiring.Signature):
    """The ring of stream ``side``, as the processing side sees it: read ports, and the positions still to be read.

    ``rows``, ``keys``, of a ring in block RAM: read ports, one per lane; ``keys`` belong to the ``rows`` of two cycles
    ago. ``scanning``,
    ``position``: a pass is under way, and the first position that it has still to read. ``waiting``, ``first``: probes
    wait for the next pass, and the first position that it will read. ``claiming``: a task was accepted whose positions
    these do not cover yet.
    """

    def __init__(self, config: Configuration, side: str):
        position = position_bits(config)
        super().__init__({
            **({"rows": Out(range(ring_rows(config))).array(config.lanes),
                "keys": In(struct(config.keys(side))).array(config.lanes)} if config.memory == "bram" else {}),
            "scanning": Out(1),
            "position": Out(position),
            "waiting": Out(1),
            "first": Out(position),
            "claiming": Out(1),
        })


def value_ports(config: Configuration, side: str) -> dict[str, wiring.Member]:
    """The port ``values`` of the storage of stream ``side``: the values to be folded, one for each lane; none if there
    are none.
    """
    payload = config.stored_values(side)
    return {"values": Out(struct(payload)).array(config.lanes)} if payload.fields else {}


class OutcomeSignature(wiring.Signature):
    """The outcomes of reads, from the processing side to the emitter.

    ``found``, ``found_valid``: the outcome of each read, in order. ``room``: back-pressure; no read is issued without
    it, but outcomes of earlier reads may still arrive.
    """

    def __init__(self, config: Configuration):
        super().__init__({"found": Out(found_layout(config)), "found_valid": Out(1), "room": In(1)})


class ProcessingSignature(wiring.Signature):
    """The processing side, of any core kind, of the region that stores stream ``side``.

    ``task``: `task_layout`, a probe and its window. ``single``: batches of one probe only. `RingSignature` and
    `OutcomeSignature`. ``batch``: `batch_layout`, offered when its pass begins. ``compared``: the number of comparisons
    to add to the counter in this cycle. A part with this signature has a property ``latency``, cycles from a read to
    its outcome.
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
    """The look-ups in an index, requested by the processing side.

    ``known``: the position up to which, exclusive, tuples are in the index. ``look``, ``bucket``, ``granted``: request
    to look up a bucket, and its grant. ``head``: two cycles later, the position of its youngest tuple; ``live``: three
    cycles later, true if there is one. ``distance``: from the tuple in the row of the ring that was read two cycles
    ago, the number of positions back to the next one in its bucket; 0 for none.
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
