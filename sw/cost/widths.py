"""What a region counts with (`splitjoin.hw.core.layouts`)."""

from __future__ import annotations

from dataclasses import dataclass

from ..circuit.wire import ROW_BITS, Configuration

__all__ = ["PASSES", "STORES", "Widths"]

#: Tuples that may be stored before their slots are read for the last time (`splitjoin.hw.core.layouts.STORES`).
STORES = 16
#: Passes of a region with an index whose results do not leave yet (`splitjoin.hw.core.layouts.PASSES`).
PASSES = 4


@dataclass(frozen=True)
class Widths:
    """Widths in bits, as in `splitjoin.hw.core.layouts`.

    ``position``, ``live``: of ring positions, and of how many tuples are live. ``group``, ``lane``: of the number of a
    read, and of a lane. ``rows``, ``row``: of a row of the ring, and of what changes in row ids. ``index``, ``probe``:
    of a core's number, and of a probe's in its batch. ``pointer``: into the list of results.
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
    def of(cls, config: Configuration) -> Widths:
        lane = config.lanes.bit_length() - 1
        position = max(config.capacity, STORES, 2 * config.lanes).bit_length() + 1
        depth = 64
        while depth < 2 * (config.capacity // config.lanes):
            depth *= 2
        index = max(1, (config.cores - 1).bit_length())
        # Row ids of a core's tuples are a multiple of the cores, apart; of a power of two the low bits are constant.
        whole = config.cores & (config.cores - 1) == 0
        return cls(position, config.capacity.bit_length(), position - lane, lane,
                   (config.capacity + STORES - 1).bit_length() - lane, index,
                   ROW_BITS - (config.cores.bit_length() - 1 if whole else 0), depth.bit_length(),
                   max(1, (config.probes - 1).bit_length()))
