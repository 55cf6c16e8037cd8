"""How wide the buckets of a bucket index are to be: learnt from the bounds that the first tuples bring."""

from __future__ import annotations

import numpy as np

from .encode import Words, unpack
from .wire import Configuration, Record

__all__ = ["learnt_cells"]

#: Tuples that are looked at.
_SAMPLE = 1 << 13
#: One probe in so many may reach more than two buckets, and read the whole sub-window.
_RARE = 64


def learnt_cells(config: Configuration, records: Words) -> dict[str, tuple[int, ...]]:
    """Per stream, for each test of the index, how many low bits of its key a bucket spans.

    As few as let all but rare ones of the probes among ``records``, tuples (n, words), reach two neighbours at most.
    Where one stream has no tuple with bounds among them, its probes are taken to be like the other stream's. The answer
    does not depend on it, only the cycles.
    """
    head = Record(tuple(f for f in config.input_record.fields if f[0] != "body"))
    records = records[:_SAMPLE]
    stream = unpack(head, records)["stream"]
    found: dict[str, list[int | None]] = {}
    for number, side in enumerate("rs"):
        fields = unpack(Record(head.fields + config.body(side).fields), records[stream == number])
        found["sr"[number]] = [_bits(fields[f"lo{j}"], fields[f"hi{j}"]) for j in config.index]
    return {side: tuple(a if a is not None else b if b is not None else 0
                        for a, b in zip(found[side], found[other], strict=True))
            for side, other in (("r", "s"), ("s", "r"))}


def _bits(low: np.ndarray, high: np.ndarray) -> int | None:
    """Bits of a bucket for intervals ``low`` to ``high``; None if all are empty."""
    wide = np.sort((high - low)[low <= high])
    if not len(wide):
        return None
    reach = int(wide[len(wide) - 1 - len(wide) // _RARE])
    # An interval that reaches no further than a bucket's width lies in two of them at most.
    return max(0, reach - 1).bit_length()
