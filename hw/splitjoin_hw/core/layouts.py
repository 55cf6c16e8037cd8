"""Payload layouts of the streams between the parts of a region."""

from __future__ import annotations

from amaranth.hdl import unsigned
from amaranth.lib import data

from splitjoin.circuit.geometry import group_bits, position_bits, repeats
from splitjoin.circuit.wire import ROW_BITS, Configuration
from splitjoin.lang.schema import other_side

from ..layouts import struct


def task_layout(config: Configuration, side: str) -> data.StructLayout:
    """A task: a probe and its window, from storage side to processing side of the region that stores ``side``.

    ``start``, ``end``: positions of the oldest live tuple, and behind the youngest. ``count``: the number of live
    tuples, 0 with ``flush``. ``row``: the oldest live tuple's row id less the core's index. ``masked``: the core is
    masked, so the probe finds none of them. ``bounds``, and ``reach`` for core kinds whose probes have index fields:
    those of the probe; ``values``, where states leave whole: those that an S probe brings. With ``flush`` there is no
    probe: the input ends here. Where tuples are routed, ``probe``: the probe's row id; ``here``: it looks
    up buckets of this core.
    """
    reach, brought = config.reach(other_side(side)), config.brought(other_side(side))
    return data.StructLayout({
        "start": unsigned(position_bits(config)),
        "end": unsigned(position_bits(config)),
        "count": unsigned(config.capacity.bit_length()),
        "row": unsigned(ROW_BITS),
        "masked": unsigned(1),
        "flush": unsigned(1),
        **({"probe": unsigned(ROW_BITS), "here": unsigned(1)} if config.routed else {}),
        "bounds": struct(config.bounds(other_side(side))),
        **({"reach": struct(reach)} if reach.fields else {}),
        **({"values": struct(brought)} if brought.fields else {}),
    })


def batch_layout(config: Configuration) -> data.StructLayout:
    """A batch of probes, for the emitter.

    ``row``: row id, less the core's index, of the first tuple that is read; ``lane``: its lane. ``probes``: the number
    of probes less one; ``flush``: the last of them is no probe but the end of the input. ``count``: in order ``inner``,
    where a batch is one probe, the number of tuples in its window. ``probe``, where tuples are routed: its row id.
    """
    return data.StructLayout({
        "row": unsigned(ROW_BITS),
        "lane": range(max(2, config.lanes)),
        "probes": range(max(2, config.probes)),
        "flush": unsigned(1),
        "count": unsigned(config.capacity.bit_length()),
        **({"probe": unsigned(ROW_BITS)} if config.routed else {}),
    })


def found_layout(config: Configuration) -> data.StructLayout:
    """The outcome of one read: ``hits`` has bit ``probe · lanes + lane``; ``last``: it ends the batch's pass.

    With an index, ``group`` is the offset of the tuple in the window; a scan needs none, as it reads in order. Where
    passes are repeated, ``more`` with ``last``: the probe's pass goes on with younger tuples. ``drop``: what the pass
    has found so far is not to leave.
    """
    group = {"group": unsigned(group_bits(config))} if config.kind.has_index else {}
    group |= {"more": unsigned(1), "drop": unsigned(1)} if repeats(config) else {}
    return data.StructLayout({"hits": unsigned(config.probes * config.lanes), "last": unsigned(1), **group})
