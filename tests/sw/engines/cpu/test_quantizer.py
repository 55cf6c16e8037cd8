"""Levels are monotone in the codes, whatever sample they were learnt from; hashes are below the number of levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from splitjoin.engines.cpu.quantizer import FLOAT, LINEAR, TABLE, cyclic, has_trend, hashed, learn
from splitjoin.engines.loops import loops

CODES = {32: st.integers(0, 2**32 - 1), 64: st.integers(0, 2**64 - 1)}


@pytest.mark.parametrize("bits", [32, 64])
@given(st.data())
def test_monotone_and_within_their_number(bits: int, data: st.DataObject) -> None:
    kind = np.uint32 if bits == 32 else np.uint64
    near = data.draw(CODES[bits])
    code = CODES[bits] | st.integers(max(0, near - 40), min(2**bits - 1, near + 40))
    sample = np.array(data.draw(st.lists(code, max_size=30)), kind)
    # Some many times over, so that they do not lie evenly.
    sample = np.repeat(sample, data.draw(st.lists(st.sampled_from([1, 2000]), min_size=len(sample),
                                                  max_size=len(sample))))
    levels = learn(sample, data.draw(st.sampled_from([1, 256, 65536, 256 * 37])))
    codes = np.sort(np.array([*data.draw(st.lists(code, max_size=30)), 0, 2**bits - 1, *sample.tolist()], kind))
    found = levels.of(codes)
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 0
    assert found.max() < levels.count


def test_a_sample_spreads_evenly() -> None:
    random = np.random.default_rng(1)
    codes = (random.gamma(2, 1e6, 50_000)).astype(np.uint32)
    counts = np.bincount(learn(codes, 256).of(codes), minlength=256)
    assert counts.max() < 3 * counts.mean()


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_even_values_need_no_table(kind: type[np.unsignedinteger]) -> None:
    random = np.random.default_rng(1)
    top = 1 << np.iinfo(kind).bits - 1
    real = np.float32 if kind is np.uint32 else np.float64
    bits = random.uniform(-1000, 1000, 50_000).astype(real).view(kind)
    floats = np.where(bits & kind(top), ~bits, bits | kind(top))
    whole = random.integers(5, 100_000, 50_000).astype(kind)
    skew = random.gamma(2, 1e6, 50_000).astype(kind)
    for codes, expected in ((floats, FLOAT), (whole, LINEAR), (skew, TABLE)):
        levels = learn(codes, 256)
        counts = np.bincount(levels.of(codes), minlength=256)
        assert levels.numbers[0] == expected
        assert counts.max() < 3 * counts.mean()


@pytest.mark.parametrize("bits", [0, 1, 8, 20])
def test_hashes(bits: int) -> None:
    found = hashed(bits).of(np.arange(10_000, dtype=np.uint64))
    assert found.min() >= 0
    assert found.max() < 2**bits
    assert len(np.unique(found)) > 0.6 * min(2**bits, 10_000)


def test_a_trend() -> None:
    random = np.random.default_rng(1)
    rising = (np.arange(1000) + random.integers(0, 50, 1000)).astype(np.uint32)
    assert has_trend(rising)
    assert has_trend(rising[::-1].copy())
    assert not has_trend(random.permutation(rising))
    assert not has_trend(rising[:100])
    assert not has_trend(np.full(1000, 7, np.uint32))
    assert not has_trend((random.random(1000) < 0.1).astype(np.uint32))


def test_null_does_not_widen_cyclic_levels() -> None:
    codes = np.arange(2**31, 2**31 + 10_000, dtype=np.uint32)
    codes[::50] = 0
    assert has_trend(codes)
    counts = np.bincount(cyclic(codes, 1 << 12).of(codes[codes > 0]) >> 8, minlength=16)
    assert counts.max() < 3 * counts.mean()


@pytest.mark.parametrize("bits", [32, 64])
@given(st.data())
def test_cyclic_levels(bits: int, data: st.DataObject) -> None:
    """A probe looks at the cell and the place of every code in its interval."""
    kind, top = (np.uint32 if bits == 32 else np.uint64), 2**bits - 1
    first = data.draw(CODES[bits])
    span = data.draw(st.sampled_from([1, 7, 300, 5000, 10**6, top]))
    sample = np.array([first, min(first + span, top)], kind)
    levels = cyclic(sample, data.draw(st.sampled_from([256, 300, 256 * 37])))
    low = data.draw(st.integers(max(0, first - 2 * span), min(top, first + 2 * span)))
    high = min(top, low + data.draw(st.integers(0, 3 * span)))
    codes = np.array([low, high, data.draw(st.integers(low, high)), data.draw(st.integers(low, high))], kind)
    lows, highs = (levels.of(np.array([end], kind)) for end in (low, high))
    loops()[f"bound_levels<{codes.dtype.name}_t>"](lows, highs, codes[:1], codes[1:2], levels.count,
                                                   *levels.numbers[3:])
    cells = (highs[0] >> 8) - (lows[0] >> 8) + 1
    assert 1 <= cells <= levels.count // 256
    for level in levels.of(codes).tolist():
        ahead = ((level >> 8) - (lows[0] >> 8)) % (levels.count // 256)
        assert ahead < cells
        assert ahead > 0 or level & 255 >= lows[0] & 255
        assert ahead < cells - 1 or level & 255 <= highs[0] & 255


@pytest.mark.parametrize("cycle", [0, 1024])
def test_empty_intervals_have_no_cell(cycle: int) -> None:
    low, high = np.array([5, 300, 1023], np.uint32), np.array([9, 300, 0], np.uint32)
    lows, highs = low.astype(np.int32), high.astype(np.int32)
    loops()["bound_levels<uint32_t>"](lows, highs, low, high, cycle, 0, 0)
    assert ((highs >> 8) - (lows >> 8)).tolist() == [0, 0, -1]
