"""Throughput of a serial line: bytes a tuple on the wire, and the tuples a second that a rate allows."""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.circuit.wire import Configuration

from .frames import CRC_BYTES, DATA_BYTES, REPLY_HEADER, REQUEST_HEADER, SLOT_BYTES

#: Bits of a byte on the line: start, eight bits, stop.
BITS = 10
#: Both delimiters of a frame.
_ENDS = 2
#: Bytes of a packed item: what a band join of alternating streams needs with 2.4 items a tuple, where it needs most.
PACKED_ITEM = 2.8
#: Most bytes of a packed item that carries 64 bits of a state, and of a star with the last 32 bits alone.
_PACKED_STATE, _PACKED_STAR = 9, 6
#: Two of 256 values of a byte take two bytes on the wire.
_STUFFING = 1 + 2 / 256


@dataclass(frozen=True)
class LinkCost:
    """Bytes on the wire of a line without faults that always has something to send, for each tuple.

    ``sent``: to the device. ``received``: from it. Both directions work at the same time.
    """

    sent: float
    received: float

    def rate(self, baud: int) -> float:
        """Tuples a second, both streams together, that a line of ``baud`` Hz carries."""
        return baud / BITS / max(self.sent, self.received)


def link_cost(config: Configuration, items: float, *, pack: bool = False) -> LinkCost:
    """The bytes of a tuple of ``config`` that has ``items`` results and stars, on average.

    Frames are as full as they may be, and bytes are taken as evenly distributed; where most are small numbers, fewer
    need stuffing. ``pack``: items are packed, so their bytes depend on the data: `PACKED_ITEM` is assumed for
    pairs, and the most bytes of an item for states.
    """
    record, item = (-(-of.width // 8) for of in (config.input_record, config.item_record))
    frame = DATA_BYTES // record
    if pack:
        packed = PACKED_ITEM if not config.folds else _PACKED_STATE if config.beats else _PACKED_STAR
        received = _framed(SLOT_BYTES - 1, REPLY_HEADER) / (SLOT_BYTES - 1) * packed * items
        return LinkCost(_framed(record * frame, REQUEST_HEADER) / frame, received)
    reply = (SLOT_BYTES - 1) // item
    return LinkCost(_framed(record * frame, REQUEST_HEADER) / frame,
                    _framed(item * reply, REPLY_HEADER) * items / reply)


def _framed(payload: int, header: int) -> float:
    """Bytes of a frame on the wire."""
    return (payload + header + CRC_BYTES) * _STUFFING + _ENDS
