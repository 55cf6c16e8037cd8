"""Payload layouts of the streams between the parts of a region."""

from __future__ import annotations

from amaranth.hdl import unsigned
from amaranth.lib import data
from splitjoin.circuit.wire import ROW_BITS, Configuration
from splitjoin.lang.schema import other_side

from ..layouts import struct

__all__ = ["PASSES", "STORES", "batch_layout", "found_layout", "groups_bits", "position_bits", "ring_rows",
           "task_layout"]

#: Tuples that can be stored before what expired for them is read for the last time.
STORES = 16
#: Of a region with an index, how many passes may have begun whose probes' results do not leave yet.
PASSES = 4


def position_bits(config: Configuration) -> int:
    """Width of ring positions. They go on where slots begin anew: slot = position mod the ring's slots.

    What is compared is at most `STORES` positions and two reads more than the capacity apart: two bits more than either
    needs keep signed differences right.
    """
    return max(config.capacity, STORES, 2 * config.lanes).bit_length() + 1


def groups_bits(config: Configuration) -> int:
    """Width of the number of a read within a pass; a read takes a tuple from each lane."""
    return position_bits(config) - (config.lanes.bit_length() - 1)


def ring_rows(config: Configuration) -> int:
    """Rows of a lane's bank: a power of two, with room for `STORES` tuples beside as many as can be live."""
    return 1 << (config.capacity + STORES - 1).bit_length() >> (config.lanes.bit_length() - 1)


def task_layout(config: Configuration, side: str) -> data.StructLayout:
    """A task: a probe and its window, from storage side to processing side of the region that stores ``side``.

    ``start``, ``end`` and ``count``: positions of the oldest live tuple and behind the youngest, and how many are live,
    none with ``flush``; ``row``: its row id less the core's index; ``masked``: none of them is to be found; ``bounds``,
    ``reach`` (core bucket): the probe's. With ``flush`` there is no probe: the input ends here.
    """
    return data.StructLayout({
        "start": unsigned(position_bits(config)),
        "end": unsigned(position_bits(config)),
        "count": unsigned(config.capacity.bit_length()),
        "row": unsigned(ROW_BITS),
        "masked": unsigned(1),
        "flush": unsigned(1),
        "bounds": struct(config.bounds(other_side(side))),
        **({"reach": struct(config.reach(other_side(side)))} if config.core == "bucket" else {}),
    })


def batch_layout(config: Configuration) -> data.StructLayout:
    """A batch of probes, for the emitter. ``row``: row id, less the index, of the first tuple that is read;
    ``lane``: the lane it lies in; ``probes``: their number less one; ``flush``: the last of them is no probe but the
    end of the input; ``count``: in order ``inner``, where a batch is one probe, the number of tuples in its window.
    """
    return data.StructLayout({
        "row": unsigned(ROW_BITS),
        "lane": range(max(2, config.lanes)),
        "probes": range(max(2, config.probes)),
        "flush": unsigned(1),
        "count": unsigned(config.capacity.bit_length()),
    })


def found_layout(config: Configuration) -> data.StructLayout:
    """The outcome of one read: ``hits`` has bit ``probe · lanes + lane``; ``last``: it ends the batch's pass.

    With an index ``group`` is the number of the tuple within the window; a scan reads them one after the other.
    """
    group = {} if config.core == "scan" else {"group": unsigned(groups_bits(config))}
    return data.StructLayout({"hits": unsigned(config.probes * config.lanes), "last": unsigned(1), **group})
