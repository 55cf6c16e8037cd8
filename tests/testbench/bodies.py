"""Test bodies, one per component, for every simulator: they send stimuli and compare results with the model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from splitjoin.circuit.wire import Configuration, ItemKind, item_record

from .checks import check_combined, check_merged
from .models import Item, Operation, RegionModel, Window, item_of, packed_item, packed_operation, packed_window
from .pauses import Stalls
from .stimuli import random_groups
from .testbench import StreamSink, Testbench

__all__ = ["STANDING", "combine", "distribute", "merge", "merge_without", "region"]

#: Cycles to wait for an item that must not arrive.
_QUIET = 24


def _limit(items: int) -> int:
    """Cycles for ``items`` transfers under the heaviest stalls: 8 of 10 cycles at each end, and bursts of 40."""
    return 1000 + 60 * items


async def distribute(tb: Testbench, leaves: int, items: Sequence[int], stalls: Stalls, *, name: str = "",
                     ) -> tuple[list[int], list[StreamSink]]:
    """A distribution tree: every leaf gets every item, in order. Returns the cycles of the input, and the sinks."""
    source = tb.source(f"{name}i", items, stalls.source())
    sinks = [tb.sink(f"{name}o__{n}", stalls.sink(n)) for n in range(leaves)]
    await tb.run(lambda: all(len(s.items) >= len(items) for s in sinks), limit=_limit(len(items)))
    await tb.steps(_QUIET)
    for sink in sinks:
        assert sink.items == list(items), f"{sink.port} got {sink.items}, not {list(items)}"
    return source.cycles, sinks


#: Cycles for which `merge` drives ``total`` before the first result, so that it reaches all nodes of a tree.
STANDING = 8


async def merge(tb: Testbench, streams: Sequence[Sequence[Item]], stalls: Stalls, *, total: bool, name: str = "",
                ) -> StreamSink:
    """A merger or a tree of them: `check_merged`. Returns the sink."""
    tb.set(f"{name}total", total)
    await tb.steps(STANDING)
    for n, items in enumerate(streams):
        tb.source(f"{name}i__{n}", map(packed_item, items), stalls.source(n))
    sink = tb.sink(f"{name}o", stalls.sink())
    pairs = sum(i.kind == ItemKind.PAIR for items in streams for i in items)
    stars = sum(i.kind in (ItemKind.STAR, ItemKind.END) for i in streams[0])
    slices = Counter[int]()
    for items in streams:
        slices |= Counter(i.probe for i in items if i.kind == ItemKind.SLICE)
    expected = pairs + stars + slices.total()
    await tb.run(lambda: len(sink.items) >= expected, limit=_limit(sum(map(len, streams))))
    await tb.steps(_QUIET)
    check_merged(streams, [item_of(p) for p in sink.items], total=total)
    return sink


async def merge_without(tb: Testbench, streams: Sequence[Sequence[Item]], ends: Sequence[int | None], stalls: Stalls,
                        *, total: bool, dead: str) -> None:
    """A merger or a tree that isolates, whose port is ``dead``. Input n is dead behind its first ``ends[n]`` results.

    At least one input lives on. The answer is as if it had only the barriers of the others from there on.
    """
    tb.set("total", total)
    await tb.steps(STANDING)
    whole = next(items for items, end in zip(streams, ends, strict=True) if end is None)
    barriers = [item for item in whole if item.kind in (ItemKind.STAR, ItemKind.END)]
    left, padded, sources = [], [], []
    for n, (items, end) in enumerate(zip(streams, ends, strict=True)):
        left.append(list(items[:end]))
        done = sum(item.kind in (ItemKind.STAR, ItemKind.END) for item in left[n])
        padded.append(left[n] + ([] if end is None else barriers[done:]))
        sources.append(tb.source(f"i__{n}", map(packed_item, left[n]), stalls.source(n)))
    sink = tb.sink("o", stalls.sink())
    slices = Counter[int]()
    for items in padded:
        slices |= Counter(i.probe for i in items if i.kind == ItemKind.SLICE)
    expected = sum(i.kind == ItemKind.PAIR for items in left for i in items) + len(barriers) + slices.total()
    for _ in range(_limit(sum(map(len, streams)))):
        tb.set(dead, sum(1 << n for n, end in enumerate(ends) if end is not None and not sources[n].queue))
        await tb.step()
        if len(sink.items) >= expected:
            break
    await tb.steps(_QUIET)
    check_merged(padded, [item_of(p) for p in sink.items], total=total)


async def combine(tb: Testbench, rng: random.Random, stalls: Stalls, *, total: bool, count: int, name: str = "",
                  ) -> None:
    """The combiner, with ``count`` groups a side: `check_combined`."""
    left, right = random_groups(rng, 1, count)[0], random_groups(rng, 1, count)[0]
    order = [0] * count + [1] * count
    rng.shuffle(order)
    tb.set(f"{name}total", total)
    for n, (port, items) in enumerate((("left", left), ("right", right))):
        tb.source(f"{name}{port}", map(packed_item, items), stalls.source(n))
    sequence = tb.source(f"{name}sequence", order if total else [], stalls.source(2))
    sink = tb.sink(f"{name}o", stalls.sink())
    expected = len(left) + len(right) - 1
    await tb.run(lambda: len(sink.items) >= expected, limit=_limit(expected))
    await tb.steps(_QUIET)
    assert not sequence.queue, f"{len(sequence.queue)} bits of the sequence were not taken"
    check_combined(left, right, [combined(p) for p in sink.items], order if total else None)


def combined(payload: int) -> tuple[int, Item]:
    """An output record as (stream, item)."""
    fields = {name: payload >> at & (1 << width) - 1 for name, (at, width) in item_record().offsets().items()}
    side, kind = fields["side"], ItemKind(fields["kind"])
    probe, stored = (fields["r"], fields["s"]) if side == 0 else (fields["s"], fields["r"])
    return side, Item(kind, probe, stored).essence()


async def region(tb: Testbench, config: Configuration, side: str, index: int, window: Window,
                 operations: Sequence[Operation], stalls: Stalls, *, name: str = "", limit: int | None = None) -> None:
    """A region against `RegionModel`: the same items in the same order, or the same overflow and nothing after it;
    within ``limit`` cycles, by default the most that a scan can take.
    """
    model = RegionModel(config, side, index, window)
    wanted = [item.essence() for item in model.run(operations)]
    tb.set(f"{name}index", index)
    tb.set(f"{name}window", packed_window(config, window))
    overflow, row = tb.watch(f"{name}overflow"), tb.watch(f"{name}overflow_row")
    compared, matched = tb.watch(f"{name}compared"), tb.watch(f"{name}matched")
    await tb.steps(4)  # pipeline registers of the settings; the whole circuit stalls its input meanwhile
    source = tb.source(f"{name}i", [packed_operation(config, op) for op in operations], stalls.source())
    sink = tb.sink(f"{name}o", stalls.sink())
    counts = [0, 0]

    def ended() -> bool:
        if tb.cycle:
            counts[0] += compared()
            counts[1] += matched()
        came = len(sink.items) >= len(wanted)
        return came and (bool(tb.cycle and overflow()) if model.overflow is not None else not source.queue)

    # A probe may scan a whole ring, and a record may have to wait until a whole ring of tuples has expired.
    await tb.run(ended, limit=limit or _limit(len(wanted) + 1) + len(operations) * (3 * config.capacity + 60))
    left_over = len(source.queue)
    for _ in range(_QUIET + 6):
        await tb.step()
        ended()
    found = [item_of(p) for p in sink.items]
    assert found == wanted, _difference(found, wanted)
    assert counts[0] == model.compared, f"{counts[0]} comparisons were counted, not {model.compared}"
    assert counts[1] == sum(i.kind == ItemKind.PAIR for i in wanted), f"{counts[1]} matches were counted"
    assert overflow() == (model.overflow is not None), f"overflow is {overflow()}, the model says {model.overflow}"
    if model.overflow is not None:
        assert row() == model.overflow, f"overflow names row {row()}, not {model.overflow}"
        assert len(source.queue) == left_over, "input was taken after an overflow"


def _difference(found: Sequence[Item], wanted: Sequence[Item]) -> str:
    at = next((n for n, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), min(len(found), len(wanted)))
    return (f"item {at}: {found[at:at + 3]} instead of {wanted[at:at + 3]} ({len(found)} items instead of "
            f"{len(wanted)})")
