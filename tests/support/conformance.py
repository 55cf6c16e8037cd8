"""The check of every engine's answer, item by item where the order promises it (semantics, section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import ITEM, PAIR, STAR, Device, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.order import Order, parse_order
from splitjoin.lang.query import Query

from .scenarios import Scenario

#: One result item as plain Python: (kind, side, r, s).
Item = tuple[int, int, int, int]


def assert_conforms(items: Items, golden: Items, order: str | Order) -> None:
    """Fail unless ``items`` is an answer like ``golden`` under ``order``.

    ``total``: the same items in the same sequence. ``outer`` and ``inner``: per probe stream the same stars, and
    between two stars the same set of pairs. ``none``: the same pairs in any order, no stars. No pair occurs twice.
    """
    order = parse_order(order)
    assert items.dtype == ITEM, f"items must be of dtype ITEM, not {items.dtype}"
    got, expected = _plain(items), _plain(golden)
    pairs = [(r, s) for kind, _, r, s in got if kind == PAIR]
    twice = [pair for pair, n in Counter(pairs).items() if n > 1]
    assert not twice, f"pairs occur more than once: {twice[:5]}"
    if order.kind == "none":
        assert not any(kind == STAR for kind, *_ in got), "order none has no stars"
        missing, extra = set(expected) - set(got), set(got) - set(expected)
        assert not missing | extra, f"missing pairs {sorted(missing)[:5]}, extra pairs {sorted(extra)[:5]}"
        return
    if order.kind == "total":
        for i, (a, b) in enumerate(zip(got, expected, strict=False)):
            assert a == b, f"item {i} of {len(expected)} is {a}, not {b}; before it came {expected[max(0, i - 3):i]}"
        assert len(got) == len(expected), f"{len(got)} items instead of {len(expected)}"
        return
    for side in (0, 1):
        a, b = groups(got, side), groups(expected, side)
        assert [star for star, _ in a] == [star for star, _ in b], f"the stars of stream {'rs'[side]} differ"
        for (star, found), (_, wanted) in zip(a, b, strict=True):
            assert found == wanted, (f"before the star of {'rs'[side]}#{star}: missing {sorted(wanted - found)[:5]}, "
                                     f"extra {sorted(found - wanted)[:5]}")


def conforms(device: Any, scenario: Scenario, order: str = "none") -> None:
    """Fail unless a circuit that gets ``scenario`` in parts gives the answer of a golden model with as many cores."""
    query, half = scenario.query(order), len(scenario.r) // 2
    assert_conforms(run(device, query, scenario.r, scenario.s, [half, len(scenario.r)]),
                    run(GoldenDevice(cores=device.cores), query, scenario.r, scenario.s), order)


def groups(items: Iterable[Item], side: int) -> list[tuple[int, frozenset[tuple[int, int]]]]:
    """The results of the probes of one stream: for each star its row id, and the pairs since the star before."""
    found: list[tuple[int, frozenset[tuple[int, int]]]] = []
    open_: list[tuple[int, int]] = []
    for kind, of, r, s in items:
        if of != side:
            continue
        if kind == PAIR:
            open_.append((r, s))
            continue
        row, other = (r, s) if side == 0 else (s, r)
        assert other == -1, f"a star of stream {'rs'[side]} has {other} in the other stream's field, not -1"
        found.append((row, frozenset(open_)))
        open_ = []
    assert not open_, f"pairs of stream {'rs'[side]} after its last star: {open_[:5]}"
    return found


def run(device: Device, query: Query, r: Any, s: Any, cuts: Sequence[int] = (),
        precisions: Sequence[int] = ()) -> Items:
    """The items that ``device`` gives for two whole tables, pushed in slices that end at ``cuts``; ``precisions``: of
    the slices, if not empty.
    """
    with device.open(query) as session:
        found = []
        for n, part in enumerate(slices(arrivals(query, r, s), cuts)):
            if precisions:
                session.precision(precisions[n])
            session.push(part)
            found.append(session.poll())
        found.append(session.flush())
    return np.concatenate(found)


def slices(whole: Arrivals, cuts: Sequence[int]) -> list[Arrivals]:
    """``whole`` cut into slices of arrival order; positions in ``cuts`` beyond its ends are clipped."""
    ends = [0, *sorted(min(max(c, 0), len(whole)) for c in cuts), len(whole)]
    parts = []
    for a, b in pairwise(ends):
        rows = [(int((whole.stream[:a] == side).sum()), int((whole.stream[a:b] == side).sum())) for side in (0, 1)]
        parts.append(Arrivals(whole.stream[a:b], None if whole.ts is None else whole.ts[a:b],
                              whole.r.slice(*rows[0]), whole.s.slice(*rows[1])))
    return parts


def _plain(items: Items) -> list[Item]:
    return [(int(i["kind"]), int(i["side"]), int(i["r"]), int(i["s"])) for i in items]
