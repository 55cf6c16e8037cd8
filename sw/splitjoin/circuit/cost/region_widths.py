"""The widths of a region's counters and pointers, as its cost needs them (`splitjoin.circuit.geometry`)."""

from __future__ import annotations

from dataclasses import dataclass

from ..geometry import group_bits, list_depth, outcome_latency, position_bits, ring_rows, stack_depth
from ..wire import ROW_BITS, Configuration


@dataclass(frozen=True)
class RegionWidths:
    """The widths, in bits, of a region's counters and pointers.

    Attributes:
        position, live: Width of ring positions, and of the number of live tuples.
        group, lane: Width of the number of a read, and of a lane.
        rows, row: Width of a row of the ring, and of the changing part of row ids.
        index, probe: Width of a core's number, and of a probe's in its batch.
        pointer: Width of a place in the list of results.
    """

    position: int
    live: int
    group: int
    lane: int
    rows: int
    index: int
    row: int
    pointer: int
    probe: int

    @classmethod
    def of(cls, config: Configuration) -> RegionWidths:
        """The widths in the regions of ``config``."""
        depth = (stack_depth if config.kind.has_index else list_depth)(config, outcome_latency(config))
        # Row ids of a core's tuples differ by multiples of the number of cores; if that is a power of two, their low
        # bits are constant.
        whole = config.turns & (config.turns - 1) == 0
        return cls(position=position_bits(config), live=config.capacity.bit_length(), group=group_bits(config),
                   lane=config.lanes.bit_length() - 1, rows=ring_rows(config).bit_length() - 1,
                   index=max(1, (config.cores - 1).bit_length()),
                   row=ROW_BITS - (config.turns.bit_length() - 1 if whole else 0), pointer=depth.bit_length(),
                   probe=max(1, (config.probes - 1).bit_length()))
