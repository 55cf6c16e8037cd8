"""The library of compiled loops: calls that could do harm are refused, and edges of 64 bits are computed exactly."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import ToolError
from splitjoin.engines import loops as package
from splitjoin.engines.loops import Loop, build, loops

from ....support.sampling import examples

LEAST, MOST = -(2**63), 2**63 - 1
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST]))


def test_each_loop_has_a_letter_for_each_argument() -> None:
    found = {name: loop._kinds for name, loop in loops().items() if isinstance(loop, Loop)}
    assert len(found) == len(loops()) > 30
    u, i = np.dtype(np.uint64), np.dtype(np.int64)
    assert [dtype for dtype, _ in found["probe_counts"]] == [i, u, u, None, None, None, None, i]


@pytest.mark.parametrize("level", [2, 3, 4])
def test_each_level_of_processors_has_all_loops(level: int) -> None:
    """The highest one that this processor has runs in all other tests."""
    found, rows = loops(level), np.random.default_rng(3).integers(0, 500, 1000)
    assert found.keys() == loops().keys()
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
        values, out = np.arange(500).astype(kind), np.zeros(1000, kind)
        found[f"take_rows<{np.dtype(kind).name}_t>"](values, rows, out)
        assert (out == values[rows]).all()


def outcomes(found: Any) -> list[bytes]:
    """What loops of a level make of the same hard numbers: floats, levels of codes, and bits of comparisons."""
    random, made = np.random.default_rng(5), list[Any]()
    floats = random.standard_normal(500) * 10.0 ** random.integers(-300, 150, 500)
    floats[:6] = 0.0, -0.0, 5e-324, -5e-324, 1.5, 1.5
    start = np.sort(random.integers(0, 490, 99))
    end, extent = start + random.integers(0, 10, 99), np.empty(3, np.int64)
    found["float_extent"](floats, extent)
    low, words = int(extent[0]), [int(times * (extent[1] - extent[0] + 12) + 64) // 64 for times in (1, 2)]
    prefixes = [np.empty((500 // 8 + 1) * n, np.uint64) for n in words]
    for square, n in enumerate(words):
        found["float_prefixes"](floats, low * (1 + square), n, square, 8, prefixes[square])
    sums, apart, alone = np.empty(99), np.empty(99), start[:0]
    found["range_float_sums"](floats, low, words[0], 8, prefixes[0], start, end, alone, sums)
    found["range_deviations"](floats, low, words[0], prefixes[0], words[1], prefixes[1], 8, start, end, alone, apart)
    made += [extent, *prefixes, sums, apart]
    for code, real in ((np.uint32, np.float32), (np.uint64, np.float64)):
        with np.errstate(over="ignore"):
            values = np.append(floats.astype(real), [np.nan, np.inf, -np.inf]).astype(real)
        keys, valid = np.empty(len(values), code), (np.arange(len(values)) % 7 > 0).astype(np.uint8)
        name, top = ("float", "double")[code is np.uint64], 1 << 8 * keys.itemsize - 1
        found[f"float_keys<{name}>"](values, valid, np.uint64(2 * top - 1), keys)
        made.append(keys)
        ends = (np.array([0.3, 7.7], real).view(code) | code(top)).tolist()  # the codes of positive floats
        for numbers, reals in (([0, ends[0], ends[1] - ends[0], 0, 0], [0, 997 / (ends[1] - ends[0])]),
                               ([1, *ends, 0, 0], [0.3, 997 / 7.4])):
            levels = np.empty(len(keys), np.int32)
            some = np.sort(random.integers(*ends, len(keys), dtype=code))
            found[f"write_levels<{np.dtype(code).name}_t>"](some, np.array(numbers, np.uint64), np.array(
                reals, np.float64), np.zeros(1, np.int32), 997, levels)
            assert 0 <= levels.min() < levels.max() <= 996
            made.append(levels)
        stored = np.append(random.integers(0, 90, 500), np.zeros(64)).astype(code)
        of_low, of_high = random.integers(0, 90, (2, 99)).astype(code)
        counts, rows = np.zeros(99, np.int64), np.zeros(99 * 500, np.int64)
        tests = np.array([*map(package.address_of, (stored, of_low, of_high)), stored.itemsize])
        n = found["nested_loops"](0, np.zeros(99, np.int64), np.full(99, 500), counts, tests, np.empty(0, np.int64),
                                  np.empty(0, np.int64), np.zeros(1, np.int64), rows)
        expected = (of_low[:, None] <= stored[:500]) & (stored[:500] <= of_high[:, None])
        assert rows[:n].tolist() == np.nonzero(expected)[1].tolist()
        made += [counts, rows]
    return [array.tobytes() for array in made]


@pytest.mark.parametrize("level", [2, 3])
def test_levels_of_processors_give_the_same_bits(level: int) -> None:
    assert outcomes(loops(level)) == outcomes(loops(4))


@pytest.mark.parametrize("numbers", [np.zeros(4, np.int32), np.zeros(8, np.int64)[::2], np.zeros((2, 2), np.int64)])
def test_memory_that_would_be_read_wrongly_is_refused(numbers: Any) -> None:
    keys, scale = np.zeros(4, np.uint64), (np.uint64(0), np.uint64(9), 10)
    with pytest.raises(TypeError, match="add_dense takes contiguous arrays of int64"):
        loops()["add_dense"](keys, *scale, numbers)
    fixed = np.zeros(4, np.int64)
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match="add_dense"):
        loops()["add_dense"](keys, *scale, fixed)
    with pytest.raises(TypeError, match="5 arguments, not 4"):
        loops()["add_dense"](keys, *scale)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=9), st.sampled_from([0, 1, 2**63, 2**64 - 1]),
       st.sampled_from([0, 2**63, 2**64 - 1]))
def test_times_at_the_ends_of_64_bits_are_compared_exactly(rows: list[tuple[int, ...]], earlier: int,
                                                           later: int) -> None:
    times = [row[0] for row in rows]
    before, behind = (sorted(row[n] for row in rows) for n in (1, 2))
    times_s = np.array(before + behind, np.int64)
    back, fore = [-1] * len(rows), [-1] * len(rows)
    for n, time in enumerate(times):
        back[n] = max((at for at, of in enumerate(before) if of <= time), default=-1)
        fore[n] = min((at + len(before) for at, of in enumerate(behind) if of >= time), default=-1)
    found = np.empty(len(rows), np.int64)
    loops()["nearer"](np.array(times, np.int64), times_s, np.array(back, np.int64), np.array(fore, np.int64),
                      np.uint64(earlier), np.uint64(later), found)
    expected = list[int]()
    for time, b, f in zip(times, back, fore, strict=True):
        apart = [(time - int(times_s[b]), 0, b)] * (b >= 0 and time - int(times_s[b]) <= earlier) + [
            (int(times_s[f]) - time, 1, f)] * (f >= 0 and int(times_s[f]) - time <= later)
        expected.append(min(apart)[2] if apart else -1)
    assert found.tolist() == expected
    ordered, wanted, none = np.sort(times_s), np.array(times, np.int64), np.empty(0, np.int64)
    behind_all = np.searchsorted(ordered, wanted, side="right")
    args = ordered, behind_all - 1, np.where(behind_all < len(ordered), behind_all, -1)
    loops()["nearer"](wanted, *args, np.uint64(earlier), np.uint64(later), found)
    loops()["nearer"](wanted, ordered, none, behind_all, np.uint64(earlier), np.uint64(later), behind_all)
    assert behind_all.tolist() == found.tolist()


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(NUMBERS, max_size=9), st.sampled_from([LEAST, -3, 0, MOST - 4]), st.integers(1, 5))
def test_groups_at_the_ends_of_64_bits_are_numbered_exactly(keys: list[int], least: int, count: int) -> None:
    counts, lows, highs = (np.zeros(count + 1, np.int64) for _ in range(3))
    array = np.array(keys, np.int64)
    loops()["group_sums"](array, least, count, array, counts, lows, highs)
    for group in range(count):
        mine = [key for key in keys if key - least == group]
        assert counts[group] == len(mine)
        assert (int(highs[group]) << 32) + int(lows[group]) == sum(mine)


def test_a_library_of_other_sources_is_built_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copied = tmp_path / "loops"
    copied.mkdir()
    (copied / "loops.cpp").write_text("static int one() { return 1; }\n")
    (copied / "loops-of-others.so").touch()
    found = build.built(copied)
    assert found.name == build.library_name(copied) and [*copied.glob("*.so")] == [found]
    assert build.built(copied) == found  # as it is
    monkeypatch.setenv("CXX", "false")
    (copied / "loop.hpp").write_text("// another one")
    with pytest.raises(build.BuildError, match=r"the compiler of the compiled loops failed: false "):
        build.built(copied)
    with pytest.raises(build.BuildError, match=r"loops for win_amd64 need .*'ziglang', which is not installed"):
        build.build(copied / "other", "win_amd64")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(package, "built", lambda: build.build(tmp_path / "loops.so"))
    loops.cache_clear()
    try:
        with pytest.raises(ToolError, match=r"compiled loops is missing.* pip install ziglang, .* run make setup"):
            loops()
    finally:
        loops.cache_clear()


def test_joins_run_from_a_zip_file(tmp_path: Path) -> None:
    """Spark's executors may have splitjoin in one (``--py-files``)."""
    folder, packed = Path(splitjoin.__file__).parent, tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in [*folder.rglob("*.py"), build.built()]:
            archive.write(path, Path("splitjoin", path.relative_to(folder)))
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import pyarrow as pa, splitjoin; print(splitjoin.__file__); "
            "t = pa.table({'x': [1, 2, 2]}); print(splitjoin.join(t, t, on='r.x = s.x').plan)")
    done = subprocess.run([sys.executable, "-c", code, str(packed)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(packed)) and "hash join" in done.stdout
