"""Levels are monotone in the codes, whatever they were learnt from; hashes stay within their number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from splitjoin.cpu.levels import FLOAT, LINEAR, TABLE, hashed, learn

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
