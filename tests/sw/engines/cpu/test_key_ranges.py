"""Ranges by partitions, and pairs in order, beside what comparing every pair gives: any keys, sizes and threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.cpu import key_ranges
from splitjoin.engines.cpu.key_groups import Groups
from splitjoin.engines.cpu.key_ranges import SecondKey, ordered_pairs, partitioned_ranges
from splitjoin.engines.cpu.table_work import Work
from splitjoin.engines.tuning import Tuning

from ....support.sampling import examples


def work(threads: int) -> Work:
    return Work(threads, Team(threads))


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_ranges_hold_the_keys_of_their_group(data: st.DataObject) -> None:
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows, stored, count = (data.draw(st.integers(low, high)) for low, high in ((0, 300), (0, 300), (1, 5)))
    most = data.draw(st.sampled_from([0, 5, 2**32, 2**61, 13822190627775390866, 2**64 - 2, 2**64 - 1]))
    least = data.draw(st.sampled_from([0, most // 4, most]))
    keys = chance.integers(least, most, stored, np.uint64, endpoint=True)
    if data.draw(st.booleans()):
        keys[:stored // 2] = most  # one key of many tuples
    low, high = (chance.integers(0, most, rows, np.uint64, endpoint=True) for _ in range(2))
    near = data.draw(st.booleans())
    high = np.minimum(low.astype(object) + int(most) // 50, most).astype(np.uint64) if near else high
    if stored:  # bounds that are keys
        low, high = (np.where(chance.random(rows) < 0.2, chance.choice(keys, rows), of) for of in (low, high))
    r, s = chance.integers(-1, count, rows), chance.integers(-1, count, stored)
    if count == 1 and data.draw(st.booleans()):
        r, s = np.empty(0, np.int64), np.empty(0, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_PARTITION", 16), ("_COUNTED", 32)):
            patch.setattr(key_ranges, name, value)
        by = work(data.draw(st.sampled_from([1, 3])))
        found = partitioned_ranges((r, s), count, keys, low, high, by)
        chunk = data.draw(st.sampled_from([1, 7, 1 << 20]))
        pairs = [pair for part in found.parts for some in found.pairs(part, chunk)
                 for pair in zip(*(of.tolist() for of in some), strict=True)]
        others = np.sort(chance.integers(0, 90, stored, np.uint64))[np.argsort(found.order)] if len(
            found.order) == stored else chance.integers(0, 90, stored, np.uint64)  # rise with the keys, at best
        from_, to = np.sort(chance.integers(0, 90, (2, rows), np.uint64), axis=0)
        second = SecondKey(by.loops, others[found.order], from_, to)
        within = [pair for part in found.parts for some in found.pairs_within(part, chunk, second)
                  for pair in zip(*(of.tolist() for of in some), strict=True)]
    r, s = (of if len(of) else np.zeros(n, np.int64) for of, n in ((r, rows), (s, stored)))
    meets = (r[:, None] == s) & (r[:, None] >= 0) & (keys >= low[:, None]) & (keys <= high[:, None])
    assert sorted(pairs) == list(zip(*(of.tolist() for of in np.nonzero(meets)), strict=True))
    meets &= (others >= from_[:, None]) & (others <= to[:, None])
    assert sorted(within) == list(zip(*(of.tolist() for of in np.nonzero(meets)), strict=True))


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(0, 300), max_size=8), st.sampled_from([1, 4]), st.sampled_from([1, 9, 2**20, 2**62]))
def test_pairs_come_in_order(sizes: list[int], threads: int, most: int) -> None:
    chance = np.random.default_rng(sum(sizes))
    packed = [chance.integers(0, most, n) for n in sizes]
    expected = sorted(np.concatenate([np.empty(0, np.int64), *packed]).tolist())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_SORTED", 16), ("_COUNTED", 32)):
            patch.setattr(key_ranges, name, value)
        parts = list[tuple[int, list[int]]]()
        ordered = ordered_pairs(work(threads), packed, most,
                                lambda of, mine: parts.append((mine.start, of[mine].tolist())))
    assert not packed
    assert ordered.tolist() == expected == [n for _, part in sorted(parts) for n in part]


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(0, 20), max_size=40), st.lists(st.integers(-3, 23), max_size=40), st.booleans())
def test_counts_of_merged_numbers(ordered: list[int], wanted: list[int], equal: bool) -> None:
    a, b = np.array(sorted(ordered), np.int64), np.array(sorted(wanted), np.int64)
    found = work(1).counts_below(a, b, equal=equal)
    assert found.tolist() == [sum(x < y or (equal and x == y) for x in ordered) for y in b.tolist()]


def test_threads_number_spread_keys_in_the_order_of_their_first_tuples() -> None:
    chance = np.random.default_rng(4)
    spread = chance.integers(0, 2**64, 40, np.uint64, endpoint=False)
    keys_r, keys_s = (spread[chance.integers(0, limit, 3000)] for limit in (40, 30))
    possible = chance.random(3000) < 0.9
    expected = {key: n for n, key in enumerate(dict.fromkeys(keys_s[possible].tolist()))}
    for threads in (1, 3):
        by = Work(threads, Team(threads), Tuning(table_rows=500))
        groups = Groups([(keys_r, keys_s)], np.ones(3000, np.bool_), possible, by)
        assert groups.of("r").tolist() == [expected.get(key, -1) for key in keys_r.tolist()]
        assert groups.of("s")[possible].tolist() == [expected[key] for key in keys_s[possible].tolist()]
        assert (groups.of("s")[~possible] == -1).all()
        assert groups.count == len(expected)
