"""Two streams are merged into arrival order; parts know their own times. Places among values that rise are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.merging import merged_slices, places_among, taken


def check(part: Arrivals, times_r: Any, times_s: Any, r: int, s: int) -> None:
    """``part`` has the tuples with these times and numbers."""
    assert part.merged is not None
    expected = sorted([(t, 0, r + n) for n, t in enumerate(times_r)] + [(t, 1, s + n) for n, t in enumerate(times_s)])
    numbers = {0: iter(part.r.column("n").to_pylist()), 1: iter(part.s.column("n").to_pylist())}
    assert part.ts is not None
    assert [(t, of, next(numbers[of])) for t, of in zip(
        part.ts.tolist(), part.stream.tolist(), strict=True)] == expected
    assert (part.times("r").tolist(), part.times("s").tolist()) == (list(times_r), list(times_s))
    plain = Arrivals(part.stream, part.ts, part.r, part.s)
    assert part.s_before.tolist() == plain.s_before.tolist()


def test_merged_slices_are_in_arrival_order() -> None:
    for seed in range(40):
        chance = np.random.default_rng(seed)
        n_r, n_s = chance.integers(0, 30, 2)
        times_r, times_s = (np.sort(chance.integers(-9, chance.choice([0, 40]), n)) for n in (n_r, n_s))
        times_r.flags.writeable = bool(seed % 2)  # as those of Arrow are not
        r, s = (pa.table({"n": np.arange(n)}) for n in (n_r, n_s))
        whole = merged_slices(r, s, times_r, times_s)
        check(whole, times_r, times_s, 0, 0)
        rest: Arrivals | None = whole
        at_r = at_s = 0
        while rest is not None:
            head, rest = rest.split(int(chance.integers(1, 20)))
            check(head, times_r[at_r:at_r + len(head.r)], times_s[at_s:at_s + len(head.s)], at_r, at_s)
            at_r, at_s = at_r + len(head.r), at_s + len(head.s)
        assert (at_r, at_s) == (n_r, n_s)


def test_places_among_values() -> None:
    for seed in range(60):
        chance = np.random.default_rng(seed)
        wide = int(chance.choice([3, 40, 10**6]))
        values, keys = (chance.integers(-wide, wide, chance.integers(0, 200)) for _ in range(2))
        values.sort()
        if seed % 3:  # those of a session rise, mostly
            keys[:len(keys) // (seed % 3)].sort()
        for after, side in ((False, "left"), (True, "right")):
            found = places_among(values, keys[::2], after=after)
            assert found.tolist() == np.searchsorted(values, keys[::2], side=side).tolist()


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8"])
def test_taken_values(kind: str) -> None:
    chance = np.random.default_rng(1)
    for n in (500, 5000):
        values, rows = chance.integers(0, 256, 300).astype(kind), chance.integers(0, 300, n)
        found = taken(values, rows)
        assert found.dtype == values.dtype
        assert found.tolist() == values[rows].tolist()
    for beyond in (300, -1, 10**12, -(2**63)):
        rows[7] = beyond
        with pytest.raises(IndexError, match=f"rows must be from 0 to before 300, not from .* to {rows.max():,}"):
            taken(values, rows)
    with pytest.raises(IndexError, match="before 0"):
        taken(values[:0], rows)
