"""A bench of typed functions and kernels as circuits, for every simulator: operands in, the results of Python out."""

from __future__ import annotations

from collections.abc import Sequence

from .pauses import Stalls
from .testbench import Testbench

__all__ = ["check_kernel"]


async def check_kernel(tb: Testbench, operands: Sequence[int], results: Sequence[int], stalls: Stalls, *,
                       latency: int, interval: int, every: bool, bits: int) -> None:
    """Send ``operands`` and compare with ``results`` of ``bits`` bits, both packed. Without stalls, transfers come in
    each ``interval``, and each result ``latency`` cycles behind its operands; ``every``: each has one.
    """
    source, sink = tb.source("i", operands, stalls.source(0)), tb.sink("o", stalls.sink(0))
    # What may be left is a result too many.
    await tb.run(lambda: not source.queue and len(sink.items) >= len(results), limit=60 * (interval + 8) * (
        len(operands) + latency))
    await tb.steps(latency + interval)
    assert [item % 2**bits for item in sink.items] == list(results)
    if not stalls.idle and not stalls.backpressure:
        assert source.cycles == [source.cycles[0] + interval * n for n in range(len(operands))]
        if every:
            assert sink.cycles == [cycle + latency for cycle in source.cycles]
