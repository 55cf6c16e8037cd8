"""Items as a circuit's records, and packed as differences, by the book: one at a time."""

from __future__ import annotations

from splitjoin.circuit.encode import Words, pack
from splitjoin.circuit.wire import ItemKind, Record
from splitjoin.engines.device import Items


def item_words(record: Record, items: Items) -> Words:
    """The ``items``, which are as on the wire, as ``record``."""
    return pack(record, {name: items[name] for name in ("kind", "side", "r", "s")}, len(items))


def packed(items: list[tuple[int, int, int, int]], row_bits: int, *, whole: bool = False,
           last: list[int] | None = None) -> bytes:
    """The bytes of ``items`` (kind, side, r, s) with row ids of ``row_bits``, as `splitjoin.link.items` says.

    ``whole``: both row ids of a STAR are sent. ``last``: those of the item before, which become those of the last item.
    """
    last, out = [0, 0] if last is None else last, bytearray()
    full = -(-row_bits // 8)
    for kind, side, *row_ids in items:
        head, tail = kind | side << 2, b""
        for n, row in enumerate(row_ids):
            if kind == ItemKind.END or (kind == ItemKind.STAR and side != n and not whole):
                continue
            difference = (row - last[n] + 2**(row_bits - 1)) % 2**row_bits - 2**(row_bits - 1)
            last[n] = row
            counts = (0, 1, min(2, full), full)
            # The code of the fewest bytes; of two with equally many, the first.
            code = next(code for code, count in enumerate(counts)
                        if -2**(8 * count - 1) <= difference < 2**(8 * count - 1) or difference == 0)
            head |= code << 3 + 2 * n
            tail += difference.to_bytes(counts[code], "little", signed=True)
        out += bytes((head,)) + tail
    return bytes(out)
