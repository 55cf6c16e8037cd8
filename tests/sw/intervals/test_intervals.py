"""`splitjoin.intervals` beside definitions over every pair and every point."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from splitjoin import intervals
from splitjoin.base.errors import InputError, OptionError, SchemaError

from ...support.sampling import examples

Row = dict[str, Any]


def drawn(rng: random.Random, closed: bool) -> pa.Table:
    rows = []
    for _ in range(rng.randrange(9)):
        low = rng.randrange(12)
        rows.append({"chrom": rng.choice(["x", "y", "y", None]), "start": rng.choice([low, low, low, low, None]),
                     "end": low + rng.randrange(4) + (0 if closed else rng.random() < 0.9), "strand": rng.choice("+-")})
    return pa.Table.from_pylist(rows, pa.schema([("chrom", pa.string()), ("start", pa.int32()), ("end", pa.int32()),
                                                 ("strand", pa.string())]))


def known(row: Row) -> bool:
    return None not in (row["chrom"], row["start"], row["end"])


def over(a: Row, b: Row, closed: bool) -> bool:
    return (known(a) and known(b) and a["chrom"] == b["chrom"] and a["start"] < b["end"] + closed
            and b["start"] < a["end"] + closed)


def points(rows: list[Row], chrom: str, closed: bool) -> set[int]:
    return {p for row in rows if known(row) and row["chrom"] == chrom for p in range(row["start"], row["end"] + closed)}


def gap(a: Row, b: Row, closed: bool) -> int:
    return max(0, b["start"] - a["end"] - closed, a["start"] - b["end"] - closed)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(examples(12)))
def test_pairs(seed: int, closed: bool) -> None:
    rng = random.Random(seed)
    a, b = drawn(rng, closed), drawn(rng, closed)
    r, s = a.to_pylist(), b.to_pylist()
    given: dict[str, Any] = {"by": "chrom", "closed": closed}
    pairs = [(m, n) for m, x in enumerate(r) for n, y in enumerate(s) if over(x, y, closed)]
    got = intervals.overlaps(a.append_column("m", pa.array(range(len(a)))), b.append_column(
        "n", pa.array(range(len(b)))), **given)
    assert list(zip(*(got.column(name).to_pylist() for name in "mn"), strict=True)) == pairs
    met = {m for m, _ in pairs}
    assert intervals.overlaps(a, b, how="semi", **given).to_pylist() == [x for m, x in enumerate(r) if m in met]
    assert intervals.overlaps(a, b, how="anti", **given).to_pylist() == [x for m, x in enumerate(r) if m not in met]
    left = intervals.overlaps(a, b, how="left", **given)
    assert len(left) == len(pairs) + len(a) - len(met)
    assert intervals.count_overlaps(a, b, **given).column("count").to_pylist() == [
        sum(m == i for m, _ in pairs) for i in range(len(a))]
    covered = [len(points([x], x["chrom"], closed) & points(s, x["chrom"], closed)) if known(x) else 0 for x in r]
    assert intervals.coverage(a, b, **given).column("coverage").to_pylist() == covered


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(examples(12)))
def test_closest(seed: int, closed: bool) -> None:
    rng = random.Random(seed)
    a, b = drawn(rng, closed), drawn(rng, closed)
    b = b.append_column("n", pa.array(range(len(b)), pa.int64()))
    k, direction, overlap = rng.randrange(1, 4), rng.choice(["both", "upstream", "downstream"]), rng.random() < 0.7
    strand = rng.choice([None, "strand"])
    wanted = []
    for m, x in enumerate(a.to_pylist()):
        near = []
        for n, y in enumerate(b.to_pylist()):
            if not known(x) or not known(y) or x["chrom"] != y["chrom"]:
                continue
            sides = {direction} if direction != "both" else {"upstream", "downstream"}
            if strand and x["strand"] == "-":
                sides = {{"upstream": "downstream", "downstream": "upstream"}[side] for side in sides}
            before, behind = y["end"] + closed <= x["start"], y["start"] >= x["end"] + closed
            taken = overlap if over(x, y, closed) else (before and "upstream" in sides) or (
                behind and "downstream" in sides)
            if taken:
                near.append((gap(x, y, closed), n))
        wanted += [(m, n, distance) for distance, n in sorted(near)[:k]] or [(m, None, None)]
    got = intervals.closest(a.append_column("m", pa.array(range(len(a)))), b, by="chrom", closed=closed, k=k,
                            direction=direction, overlap=overlap, strand=strand)
    assert list(zip(*(got.column(name).to_pylist() for name in ("m", "n", "distance")), strict=True)) == wanted


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(examples(12)))
def test_sets(seed: int, closed: bool) -> None:
    rng = random.Random(seed)
    a, b = drawn(rng, closed), drawn(rng, closed)
    r, s = a.to_pylist(), b.to_pylist()
    given: dict[str, Any] = {"by": "chrom", "closed": closed}
    whole = intervals.merge(a, **given)
    for chrom in "xy":
        parts = [row for row in whole.to_pylist() if row["chrom"] == chrom]
        assert points(parts, chrom, closed) == points(r, chrom, closed)
        assert [row["start"] for row in parts] == sorted(row["start"] for row in parts)
        assert all(y["start"] - x["end"] - closed > 0 for x, y in pairwise(parts))
    assert sum(whole.column("count").to_pylist()) == sum(map(known, r))
    numbers = intervals.cluster(a, **given).column("cluster").to_pylist()
    assert [n is None for n in numbers] == [not known(row) for row in r]
    merged = whole.to_pylist()
    for row, number in zip(r, numbers, strict=True):
        if number is not None:
            assert row["chrom"] == merged[number]["chrom"]
            assert merged[number]["start"] <= row["start"] <= row["end"] <= merged[number]["end"]
    left = intervals.subtract(a.append_column("m", pa.array(range(len(a)))), b, **given).to_pylist()
    for m, row in enumerate(r):
        pieces = [piece for piece in left if piece["m"] == m]
        if not known(row):
            assert [piece["start"] for piece in pieces] == [row["start"]]
        else:
            own = points([row], row["chrom"], closed)
            assert points(pieces, row["chrom"], closed) == own - points(s, row["chrom"], closed)
    assert [piece["m"] for piece in left] == sorted(piece["m"] for piece in left)
    free = intervals.complement(a, {"y": (0, 20), "z": (3, 5)}, **given).to_pylist()
    assert points(free, "y", closed) == set(range(20 + closed)) - points(r, "y", closed)
    assert [row for row in free if row["chrom"] == "z"] == [{"chrom": "z", "start": 3, "end": 5}]


def test_times_dates_and_gaps() -> None:
    day = dt.date(2024, 3, 1)
    out = pa.table({"start": [day, dt.date(2024, 3, 5), dt.date(2024, 3, 9)],
                    "end": [dt.date(2024, 3, 3), dt.date(2024, 3, 6), dt.date(2024, 3, 9)]})
    assert intervals.merge(out, closed=True).to_pydict() == {
        "start": out["start"].to_pylist(), "end": out["end"].to_pylist(), "count": [1, 1, 1]}
    assert intervals.merge(out, closed=True, gap=1).column("count").to_pylist() == [2, 1]
    now = dt.datetime(2024, 3, 1, 12)
    times = pa.table({"from": pa.array([now], pa.timestamp("us")), "to": pa.array([now], pa.timestamp("us"))})
    free = intervals.complement(times, (now, now + dt.timedelta(hours=1)), start="from", end="to")
    assert free.to_pylist() == [{"from": now, "to": now + dt.timedelta(hours=1)}]


def test_touching() -> None:
    a = {"start": [0, 10], "end": [10, 20]}
    assert len(intervals.merge(a)) == 1
    assert len(intervals.merge(a, gap=None)) == 2
    assert len(intervals.overlaps({"start": [0], "end": [10]}, {"start": [10], "end": [20]})) == 0
    assert len(intervals.overlaps({"start": [0], "end": [10]}, {"start": [10], "end": [20]}, closed=True)) == 1
    # An empty interval cuts what it lies within in two, as in bioframe.
    empty = {"start": [5, 7], "end": [5, 9]}
    cut = {"start": [0, 5, 9], "end": [5, 7, 10]}
    assert intervals.subtract({"start": [0], "end": [10]}, empty).to_pydict() == cut
    assert intervals.complement(empty, (0, 10)).to_pydict() == cut
    far = {"start": [-2**63, 2**63 - 2], "end": [-2**63 + 1, 2**63 - 1]}
    assert intervals.merge(far, gap=5).column("count").to_pylist() == [1, 1]


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: intervals.overlaps({"start": [3], "end": [1]}, {"start": [1], "end": [2]}), InputError, "row 0 of a"),
    (lambda: intervals.overlaps({"begin": [3], "end": [1]}, {"start": [1], "end": [2]}), SchemaError, "'start'"),
    (lambda: intervals.overlaps({"start": [3.5], "end": [4.5]}, {"start": [1.5], "end": [2.5]}), SchemaError, "whole"),
    (lambda: intervals.merge({"start": [1], "end": [2]}, gap=-1), OptionError, "gap"),
    (lambda: intervals.closest({"start": [1], "end": [2]}, {"start": [1], "end": [2]}, k=0), OptionError, "k must"),
    (lambda: intervals.complement({"start": [1], "end": [2]}, {"x": (0, 1)}), OptionError, "within"),
    (lambda: intervals.overlaps({"start": [1], "end": [2]}, {"start": [1], "end": [2]}, suffixes=("", "")),
     OptionError, "twice"),
    (lambda: intervals.merge({"start": [1], "end": [2], "g": [[1]]}, by="g"), SchemaError, "nested"),
    (lambda: intervals.merge({"start": [1], "end": [2]}, end="start"), OptionError, "different"),
    (lambda: intervals.merge({"start": [1], "end": [2], "count": [1]}, by="count"), OptionError, "name="),
    (lambda: intervals.count_overlaps({"start": [1], "end": [2], "count": [1]}, {"start": [1], "end": [2]}),
     OptionError, "name="),
    (lambda: intervals.merge({"start": [1], "end": [2]}, gap=dt.timedelta(1)), OptionError, "gap"),  # type: ignore[arg-type]
    (lambda: intervals.overlaps({"start": [1], "end": [2]}, {"start": [1], "end": [2]}, suffixes=("a",)),  # type: ignore[arg-type]
     OptionError, "suffixes"),
    (lambda: intervals.complement({"start": [1], "end": [2]}, ("a", "b")), OptionError, "within must"),
    (lambda: intervals.complement({"start": [1], "end": [2]}, (9, 1)), InputError, "within goes from 9 to 1"),
])
def test_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
