"""External memory of a circuit: what lies where, and the ports' widths, for windows that do not fit block RAM.

Memory is read and written in lines of 64, 128 or 256 bits; in SDRAM of 64 if a record fits, as time is bits there. Of
each stream it holds the ring of records in the order of arrival, a line each, and behind both rings the heads of the
index's chains. A record is a tuple's keys, and the distance to the next older tuple of its bucket, in tuples; 0 for
none. A head is the number of the bucket's youngest tuple among all of its stream, plus one; 0 for none; in 32 bits.
Numbers of a session do not reach 2^32, so no head needs to be emptied when its tuple expires. Behind AXI4 a head has a
line, with that tuple's record if both fit, so that probes need not read it from the ring. Else lines are full of heads.

Several cores have a memory each. Lines of heads belong to them in turn, and so do the tuples of their buckets. A ring
has a place for every tuple of its stream, and those of other cores' tuples stay as they are. A record has a second
distance, to the next older tuple of its core.
"""

from __future__ import annotations

from splitjoin.base.errors import check

from .geometry import distance_bits, ring_rows
from .wire import ROW_BITS, Configuration

#: Bits of a line of SDRAM if a record fits.
_SHORT = 64
#: Hits that a probe keeps until the hits of all earlier ones have left; a power of two.
HIT_LIST = 16


def line_bits(config: Configuration) -> int:
    """Bits of a line: in SDRAM 128, or 64 if a record fits; else the parameter ``memory_width``."""
    short = config.memory == "sdram" and all(record_bits(config, side) <= _SHORT for side in "rs")
    return _SHORT if short else config.memory_width


def record_bits(config: Configuration, side: str) -> int:
    """Bits of a record of stream ``side``."""
    return config.keys(side).width + (1 + config.routed) * distance_bits(config)


def heads_have_records(config: Configuration) -> bool:
    """True if a line has one head, and the record of that tuple."""
    return config.memory == "axi" and all(
        record_bits(config, side) + ROW_BITS <= line_bits(config) for side in "rs")


def heads_a_line(config: Configuration) -> int:
    """Heads in a line."""
    return 1 if heads_have_records(config) else line_bits(config) // ROW_BITS


def place_bits(config: Configuration) -> int:
    """Low bits of a bucket's number: the place of its head in a line."""
    return heads_a_line(config).bit_length() - 1


def head_lines(config: Configuration) -> int:
    """Lines of the heads of one stream, in the memory of a core."""
    return config.buckets // heads_a_line(config) >> core_bits(config)


def core_bits(config: Configuration) -> int:
    """Bits of a bucket's number, above those of its place in a line, that are the number of its core."""
    return (config.cores - 1).bit_length() if config.routed else 0


def first_record(config: Configuration, side: str) -> int:
    """The first line of the records of stream ``side``."""
    return 0 if side == "r" else ring_rows(config)


def first_head(config: Configuration, side: str) -> int:
    """The first line of the heads of stream ``side``."""
    return 2 * ring_rows(config) + (0 if side == "r" else head_lines(config))


def lines(config: Configuration) -> int:
    """Lines of the whole memory."""
    return first_head(config, "s") + head_lines(config)


def address_bits(config: Configuration) -> int:
    """Width of a line's number."""
    return (lines(config) - 1).bit_length()


def byte_bits(config: Configuration) -> int:
    """Width of a byte's address."""
    return address_bits(config) + (line_bits(config) // 8 - 1).bit_length()


def id_bits(config: Configuration) -> int:
    """Width of the ids of reads and writes: the region, then for reads whether a store asks, and the context."""
    return (config.contexts - 1).bit_length() + 2


def check_memory(config: Configuration) -> None:
    """Raise `UnsupportedError` if the records of ``config`` do not fit a line."""
    for side in "rs":
        bits = config.keys(side).width
        most = line_bits(config) - record_bits(config, side) + bits
        check(f"bits of the keys of stream {side} that are compared, with memory {config.memory}", bits, bits <= most,
              f"{most} or less, as a record and its links are a line of {line_bits(config)} bits"
              + ("; give memory_width=256" if config.memory == "axi" and most < bits <= most + 256 - line_bits(config)
                 else ""))


def step_latency(config: Configuration) -> int:
    """Cycles from an answer of the memory to the decision which line is read next: of the datapath, and three at least
    to find the youngest of the next tuples of several chains.
    """
    return max(3, config.stages)
