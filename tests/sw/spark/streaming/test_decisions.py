"""Kinds of join and aggregates in micro-batches: the rows of the golden model, once the watermark has decided them."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings, strategies as st

from splitjoin.base.errors import SnapshotError
from splitjoin.lang.schema import Side
from splitjoin.spark.streaming.watermark import WatermarkRule
from splitjoin_sim.pysim import PysimDevice

from ....support.micro_batches import MicroBatches
from ....support.sampling import at_length, examples
from ....support.spark_streams import ON, answer, in_order, rows, stream
from .test_group import END, TIES, cut, ending, run

R, S = stream(1, 60, 40), stream(2, 50, 40)
AGGREGATE = {"count": "count(*)", "last": "last(s.n)", "all": "list(s.day)", "sum": "sum(s.price)",
             "mean": "avg(r.y + s.y)", "best": "argmax(s.day, s.x)"}
#: What an engine of the CPU folds without pairs, where the condition is an equality.
FOLDED = {"count": "count(*)", "d": "count(DISTINCT s.day)", "sum": "sum(s.price)", "mean": "avg(s.y)",
          "last": "last(s.n)", "best": "argmax(s.day, s.x)"}
LAST = END - 1
KINDS: list[dict[str, Any]] = [
    {"how": "inner"}, {"how": "inner"},
    *({"how": how} for how in ("left", "right", "full", "semi", "anti")),
    *({"how": "asof", "direction": direction} for direction in ("backward", "forward", "nearest")),
    {"how": "asof_left", "allow_exact": False}, {"how": "inner", "aggregate": AGGREGATE},
    {"how": "left", "aggregate": AGGREGATE}, *({"how": how, "aggregate": FOLDED} for how in ("left", "inner", "left"))]
#: As-of joins without a window.
LATEST: list[dict[str, Any]] = [
    {"how": "asof_left", "window": None, "on": "r.name = s.name"},
    {"how": "asof", "window": None, "on": "r.x = s.x AND s.n > 5 AND r.n > 3"},
    {"how": "asof_left", "window": None, "on": "s.y = r.y", "allow_exact": False},
    {"how": "asof_left", "window": None, "on": "s.n % 3 = 0"}]
#: Windows, and whether they count rows.
WINDOWS: list[tuple[Any, bool]] = [
    ("RANGE 7", False), ({"r": "RANGE 3", "s": "RANGE 12"}, False), ({"r": "RANGE 0", "s": "RANGE 9"}, False),
    ("RANGE 1000", False), ("RANGE 0", False), ({"r": "ROWS 6", "s": "ROWS 1"}, True), ("ROWS 5", True),
    ({"r": "ROWS 3", "s": "RANGE 9"}, True),
    ({"r": "RANGE 9", "s": "ROWS 4"}, True), ("ROWS 6 RANGE 10", True)]


def ended(table: pa.Table) -> pa.Table:
    """``table`` with rows behind it that meet nothing: some, so that ROWS windows decide all of ``table``, and a last
    one, which brings the watermark past them.
    """
    last = ending(table)
    more = last.slice(len(table)).set_column(0, "ts", pa.array([LAST]))
    return pa.concat_tables([table, *[more] * 7, last.slice(len(table))])


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS + LATEST), window=st.sampled_from(WINDOWS),
       groups=st.lists(st.integers(1, 3), min_size=1, max_size=3), order=st.sampled_from(["none", "total"]),
       on=st.sampled_from([ON, "r.name = s.name", "r.x = s.x + 1 AND r.y <= s.y", "r.y = s.y", "r.price = s.price"]),
       cuts=st.lists(st.integers(-1, 45), max_size=5).map(sorted), kept=st.booleans(), early=st.booleans(),
       devices=st.lists(st.sampled_from(["golden", "cpu"]), min_size=1, max_size=2))
@example(seed=1, kind={"how": "semi"}, window=("ROWS 5", True), groups=[1], order="none", on=ON, cuts=[0, 4],
         kept=True, devices=["golden"], early=False)  # the session still has a tuple that is decided, and dropped
def test_micro_batches_decide_the_rows_of_the_golden_model(
        tmp_path_factory: pytest.TempPathFactory, seed: int, kind: dict[str, Any], window: tuple[Any, bool],
        groups: list[int], order: str, on: str, cuts: list[int], kept: bool, devices: list[str], early: bool) -> None:
    """Tasks run twice, stop before their end, and forget what they remember; the device changes, and the number of
    groups. What is taken back of ``early`` rows was given.
    """
    chance = random.Random(seed)
    query: dict[str, Any] = {"on": on, "window": window[0], "time": "ts", **kind}
    if order == "total" or window[1] or (kind["how"] in ("right", "full") and on == ON):
        groups = [1]
    if on not in (ON, "r.name = s.name"):
        devices = ["golden"]  # a kernel for each condition would take seconds
    join = MicroBatches(str(tmp_path_factory.mktemp("state")), R.schema, S.schema, 0, {**query, "order": order},
                        groups[0], devices[0], TIES, kept=kept, early=early and order == "none" and not window[1] and
                        kind["how"] in ("left", "right", "full", "anti") and "aggregate" not in kind)
    got = run(join, cut(ended(R), cuts), cut(ended(S), cuts), chance, devices=devices, groups=groups)
    times = [got[name] for name in ("ts", "ts_r", "ts_s") if name in got.column_names]
    got = got.filter(pc.less(pc.coalesce(*times), LAST))
    want = answer(R, S, **query)
    if join.early:
        given, back = (rows(got.filter(pc.equal(got["operation"], sign)).drop_columns(["operation"])) for sign in "+-")
        assert given >= back
        assert given - back == rows(want)
        return
    assert rows(got) == rows(want)
    if order == "total" and kind["how"] != "full":
        assert list(map(repr, got.to_pylist())) == list(map(repr, want.to_pylist()))


@pytest.mark.parametrize(("order", "groups"), [("total", 1), at_length("none", 2)])
def test_circuits_fold_and_their_states_are_found_again(tmp_path: Path, order: str, groups: int) -> None:
    """One record a base tuple leaves the circuit; a worker that has forgotten all, and another device, go on."""
    query: dict[str, Any] = {"on": "abs(r.x - s.x) <= 6", "window": {"r": "RANGE 3", "s": "RANGE 12"}, "time": "ts",
                             "how": "left", "aggregate": {"count": "count(*)", "sum": "sum(s.n)", "high": "max(s.x)"}}
    device = PysimDevice(cores=1, capacity=128, lanes=2, fold="always")
    join = MicroBatches(str(tmp_path), R.schema, S.schema, 0, {**query, "order": order}, groups, device, TIES,
                        kept=True)
    parts = list(zip(cut(ended(R), [12, 20, 30]), cut(ended(S), [10, 24, 30]), strict=True))
    found = [join.run([parts[0][0]], [parts[0][1]]), join.run([parts[1][0]], [parts[1][1]])]
    pushed = join.counts["pushed_rows"]
    assert pushed == join.counts["tuples_r"] + join.groups * join.counts["tuples_s"]  # the session was kept
    join = join.restarted()
    found.append(join.run([parts[2][0]], [parts[2][1]]))
    assert join.counts["pushed_rows"] > join.counts["tuples_r"] + join.groups * join.counts["tuples_s"]
    join = join.restarted(device="golden")
    found.append(join.run([parts[3][0]], [parts[3][1]]))
    got, want = pa.concat_tables(found), answer(R, S, **query)
    got = got.filter(pc.less(got["ts"], LAST))
    assert rows(got) == rows(want)
    if order == "total":
        assert list(map(repr, got.to_pylist())) == list(map(repr, want.to_pylist()))


def times(*ts: int) -> pa.Table:
    return pa.table({"ts": ts, "x": ts})


@pytest.mark.parametrize(("how", "steps"), [
    ("left", [{(2, 2)}, {(4, 4)}, {(1, None)}]), ("semi", [{(2,)}, {(4,)}, set()]), ("anti", [set(), set(), {(1,)}]),
    ("full", [{(2, 2)}, {(4, 4)}, {(1, None)}]), ("right", [{(2, 2)}, {(4, 4)}, set()])])
def test_pairs_come_at_once_and_other_rows_when_the_watermark_decides_them(
        tmp_path: Path, how: str, steps: list[set[tuple[int | None, ...]]]) -> None:
    join = MicroBatches(str(tmp_path), times(1).schema, times(1).schema, 0,
                        {"on": "r.x = s.x", "window": "RANGE 3", "time": "ts", "order": "none", "how": how})
    found = []
    for r, s in ((times(1, 2), times(2)), (times(4), times(4)), (times(6), times(5))):
        got = join.run([r], [s])  # at last the watermark is 5: r at 1 has seen all up to 4
        columns = [got[c].to_pylist() for c in ("ts_r", "ts_s", "ts") if c in got.column_names]
        found.append(set(zip(*columns, strict=True)))
    assert found == steps
    total = MicroBatches(str(tmp_path / "total"), times(1).schema, times(1).schema, 0,
                         {"on": "r.x = s.x", "window": "RANGE 3", "time": "ts", "order": "total", "how": "left"})
    assert len(total.run([times(1, 2)], [times(2)])) == 0  # in total order they wait for the watermark


@pytest.mark.parametrize(("how", "steps"), [
    ("left", [{(1, None, "+"), (2, 2, "+")}, {(1, None, "-"), (1, 1, "+"), (4, 4, "+")}, {(6, None, "+")}]),
    ("anti", [{(1, "+")}, {(1, "-")}, {(6, "+")}]),
    ("full", [{(1, None, "+"), (2, 2, "+")}, {(1, None, "-"), (1, 1, "+"), (4, 4, "+")},
              {(6, None, "+"), (None, 5, "+")}])])
def test_early_rows_come_in_their_micro_batch_and_are_taken_back(
        tmp_path: Path, how: str, steps: list[set[tuple[int | str | None, ...]]]) -> None:
    join = MicroBatches(str(tmp_path), times(1).schema, times(1).schema, 2,
                        {"on": "r.x = s.x", "window": "RANGE 3", "time": "ts", "order": "none", "how": how}, early=True)
    found = []
    for r, s in ((times(1, 2), times(2)), (times(4), times(1, 4)), (times(6), times(5)), (times(99), times(99))):
        got = join.run([r], [s])
        columns = [got[c].to_pylist() for c in ("ts_r", "ts_s", "ts", "operation") if c in got.column_names]
        found.append(set(zip(*columns, strict=True)))
    assert found[:3] == steps
    assert {row[:-1] for row in found[3]} <= {(99, 99)}  # what was given stays
    with pytest.raises(SnapshotError, match="order: was 'none, rows come early', is now 'none'"):
        join.restarted(early=False).run([times(100)], [times(100)])


@pytest.mark.parametrize(("kind", "steps"), [
    ({"how": "asof"}, [set(), {(4, 3)}, {(9, 3)}]), ({"how": "asof_left"}, [{(2, None)}, {(4, 3)}, {(9, 3)}]),
    ({"how": "asof", "allow_exact": False}, [set(), {(4, 3)}, {(9, 3)}]),
    ({"how": "asof", "direction": "forward"}, [set(), {(2, 3)}, {(4, 10), (9, 10)}]),
    ({"how": "asof", "direction": "nearest"}, [set(), {(2, 3), (4, 3)}, {(9, 10)}])], ids=str)
@pytest.mark.parametrize("order", ["none", "total"])
def test_as_of_rows_come_when_the_watermark_has_passed_what_decides_them(
        tmp_path: Path, kind: dict[str, Any], steps: list[set[tuple[int, int | None]]], order: str) -> None:
    """They do not wait for the end of their window, and are not stored as long."""
    join = MicroBatches(str(tmp_path), times(1).schema, times(1).schema, 0,
                        {"on": "r.x > -s.x", "window": "RANGE 50", "time": "ts", "order": order, **kind})
    found = []
    for r, s in ((times(2, 4), times(3)), (times(9), times(10)), (times(100), times(100))):
        got = join.run([r], [s])
        found.append(set(zip(got["x_r"].to_pylist(), got["x_s"].to_pylist(), strict=True)))
        if kind.get("direction", "backward") == "backward" and len(found) == 2:
            assert join.counts["stored_rows"] == 1
    assert found == steps


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(LATEST), groups=st.integers(1, 3),
       order=st.sampled_from(["none", "total"]), cuts=st.lists(st.integers(-1, 45), max_size=5).map(sorted))
@example(seed=1, kind=LATEST[3], groups=2, order="none", cuts=[*range(5, 36, 5)])  # the partner is another group's
def test_as_of_joins_without_a_window(tmp_path_factory: pytest.TempPathFactory, seed: int, kind: dict[str, Any],
                                      groups: int, order: str, cuts: list[int]) -> None:
    """However old the partner is, and over restarts."""
    chance = random.Random(seed)
    query: dict[str, Any] = {"time": "ts", **kind}
    join = MicroBatches(str(tmp_path_factory.mktemp("state")), R.schema, S.schema, 0, {**query, "order": order},
                        1 if order == "total" else groups, "golden", TIES)
    old = S.set_column(0, "ts", pc.subtract(S["ts"], 50_000))
    s = pa.concat_tables([old, S])
    got = run(join, [R.slice(0, 0), *cut(ended(R), cuts)], [old, *cut(ended(S), cuts)], chance,
              devices=["golden", "cpu"])
    got = got.filter(pc.less(got["ts_r"], LAST))
    want = answer(R, s, **query)
    assert rows(got) == rows(want)
    if order == "total":
        assert list(map(repr, got.to_pylist())) == list(map(repr, want.to_pylist()))


@pytest.mark.parametrize("groups", [1, 2])
def test_as_of_joins_without_a_window_store_a_row_of_each_key(tmp_path: Path, groups: int) -> None:
    def table(at: int, ks: range) -> pa.Table:
        return pa.table({"ts": [at] * len(ks), "k": ks, "n": [at] * len(ks)})

    join = MicroBatches(str(tmp_path), table(0, range(1)).schema, table(0, range(1)).schema, 0,
                        {"on": "r.k = s.k", "window": None, "time": "ts", "how": "asof_left", "order": "none"}, groups,
                        "cpu", {"r": ("k", "n"), "s": ("k", "n")})
    sizes = []
    for at in range(40):
        got = join.run([table(at, range(at, at + 9))], [table(at, range(20))])
        join = join.restarted()
        if at:  # the watermark has passed the micro-batch before
            assert join.counts["stored_rows"] == 20
            assert sorted(zip(got["k_r"].to_pylist(), got["ts_s"].to_pylist(), strict=True)) == [
                (k, at - 1 if k < 20 else None) for k in range(at - 1, at + 8)]
            sizes.append(join.counts["state_bytes"])
    assert max(sizes[20:]) <= max(sizes[:20])


def test_a_silent_stream(tmp_path: Path) -> None:
    """Pairs that were found come at once, and after the idle time also what is decided."""
    rule = WatermarkRule({"r": 0, "s": 0}, {"r": None, "s": 100})
    join = MicroBatches(str(tmp_path), times(1).schema, times(1).schema, 0,
                        {"on": "r.x = s.x", "window": "RANGE 3", "time": "ts", "order": "none", "how": "left"},
                        rule=rule)
    found = []
    for now, r, s in ((0, times(1, 2), times(2)), (50, times(9), times()), (149, times(10), times()),
                      (150, times(11), times()), (160, times(12), times(7, 11))):
        join.now = now
        join = join.restarted()
        found.append({tuple(row) for row in zip(*join.run([r], [s]).select(["x_r", "x_s"]).to_pydict().values(),
                                               strict=True)})
    # At 150 the watermark is 11: what S brings then is late at 7, and the rows of R up to 7 are decided.
    assert found == [{(2, 2)}, set(), set(), {(1, None)}, {(11, 11)}]
    assert join.counts["late_s"] == 1


@settings(max_examples=examples(16))
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS[1:13] + LATEST), window=st.sampled_from(WINDOWS[:3]),
       groups=st.integers(1, 3), on=st.sampled_from([ON, "r.name = s.name"]), idle=st.sampled_from([None, 10, 25]),
       policy=st.sampled_from(["min", "max"]), delays=st.sampled_from([(3, 3), (0, 9), (5, None)]))
def test_streams_that_are_silent_or_late_give_the_rows_of_those_in_time(
        tmp_path_factory: pytest.TempPathFactory, seed: int, kind: dict[str, Any], window: tuple[Any, bool],
        groups: int, on: str, idle: int | None, policy: Any, delays: tuple[int, int | None]) -> None:
    chance = random.Random(seed)
    groups = 1 if kind["how"] in ("right", "full") and on == ON else groups
    query: dict[str, Any] = {"on": on, "window": window[0], "time": "ts", **kind}
    sides: tuple[Side, ...] = ("r", "s")
    delay = dict(zip(sides, delays, strict=True))
    rule = WatermarkRule(delay, dict.fromkeys(sides, idle), policy)
    join = MicroBatches(str(tmp_path_factory.mktemp("state")), R.schema, S.schema, 0, {**query, "order": "none"},
                        groups, "golden", TIES, rule=rule)
    left = {"r": R, "s": S}
    kept: dict[str, list[pa.Table]] = {"r": [], "s": []}
    greatest: dict[str, int] = {}
    silent: dict[str, int] = {}
    mark, now, found = -10**9, 0, []
    while any(map(len, left.values())) or not found:
        now += chance.choice([1, 10])
        new = {}
        for side, table in left.items():
            n = 0 if chance.random() < 0.4 else min(len(table), chance.randint(1, 25))
            rest = list(range(len(table)))
            chance.shuffle(first := rest[:n + 5])  # somewhat out of order
            later = sorted([*first[n:], *rest[n + 5:]])
            new[side], left[side] = (table.take(pa.array(at, pa.int64())) for at in (first[:n], later))
        join.now = now
        found.append(join.run([new["r"]], [new["s"]], again=chance))
        for side, table in new.items():
            kept[side].append(table.filter(pc.field("ts") >= mark))
            if len(table):
                greatest[side] = max(greatest.get(side, -1), pc.max(table["ts"]).as_py())
                silent.pop(side, None)
            else:
                silent.setdefault(side, now)
        counts = [side for side in sides if delay[side] is not None]
        if policy == "min" and idle is not None:
            counts = [side for side in counts if side not in silent or now - silent[side] < idle]
        known = [greatest[side] - (delay[side] or 0) for side in counts if side in greatest]
        if known and (policy == "max" or len(known) == len(counts)):
            mark = max(mark, (min if policy == "min" else max)(known))
    found.append(join.run([ended(R).slice(len(R))], [ended(S).slice(len(S))]))
    got = pa.concat_tables(found)
    got = got.filter(pc.less(pc.coalesce(*(got[c] for c in ("ts", "ts_r", "ts_s") if c in got.column_names)), LAST))
    tables = [in_order(pa.concat_tables(kept[side])) for side in sides]
    assert rows(got) == rows(answer(*tables, **query))
