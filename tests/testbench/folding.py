"""A bench of the unit that folds in order, for every simulator: operations and results in, states out."""

from __future__ import annotations

from collections.abc import Sequence

from .pauses import Stalls
from .testbench import Testbench

__all__ = ["check_ordered"]


async def check_ordered(tb: Testbench, operations: Sequence[int], left: Sequence[int], right: Sequence[int],
                        states: Sequence[tuple[int, int]], window: int, stalls: Stalls) -> None:
    """Send packed ``operations`` and the results of both sides' probes; of what leaves, the bits of each mask in
    ``states`` must be those beside it. ``window``: settings of R's window, packed.
    """
    tb.set("window", window)
    for n, (port, items) in enumerate((("operation", operations), ("left", left), ("right", right))):
        tb.source(port, items, stalls.source(n))
    sink = tb.sink("o", stalls.sink())
    await tb.run(lambda: len(sink.items) == len(states), limit=20000)
    await tb.steps(20)
    assert len(sink.items) == len(states)
    assert [item & mask for item, (mask, _) in zip(sink.items, states, strict=True)] == [value for _, value in states]
