"""Kinds of join and aggregates in micro-batches: the rows of the golden model, once the watermark has decided them."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st
from splitjoin.errors import SnapshotError
from splitjoin.sim.pysim import PysimDevice

from ....support.micro_batches import MicroBatches
from ....support.sampling import at_length, examples
from ....support.spark_streams import ON, answer, rows, stream
from .test_group import END, TIES, cut, ending, run

R, S = stream(1, 60, 40), stream(2, 50, 40)
AGGREGATE = {"count": "count(*)", "last": "last(s.n)", "sum": "sum(s.price)", "mean": "avg(r.y + s.y)",
             "best": "argmax(s.day, s.x)"}
#: What an engine of the CPU folds without pairs, where the condition is an equality.
FOLDED = {"count": "count(*)", "d": "count(DISTINCT s.day)", "sum": "sum(s.price)", "mean": "avg(s.y)",
          "last": "last(s.n)", "best": "argmax(s.day, s.x)"}
LAST = END - 1
KINDS: list[dict[str, Any]] = [
    *({"how": how} for how in ("left", "right", "full", "semi", "anti")),
    *({"how": "asof", "direction": direction} for direction in ("backward", "forward", "nearest")),
    {"how": "asof_left", "allow_exact": False}, {"how": "inner", "aggregate": AGGREGATE},
    {"how": "left", "aggregate": AGGREGATE}, *({"how": how, "aggregate": FOLDED} for how in ("left", "inner", "left"))]
#: Windows, and whether they count rows.
WINDOWS: list[tuple[Any, bool]] = [
    ("RANGE 7", False), ({"r": "RANGE 3", "s": "RANGE 12"}, False), ({"r": "RANGE 0", "s": "RANGE 9"}, False),
    ("RANGE 1000", False), ("ROWS 5", True), ({"r": "ROWS 3", "s": "RANGE 9"}, True), ("ROWS 6 RANGE 10", True)]


def ended(table: pa.Table) -> pa.Table:
    """``table`` with rows behind it that meet nothing: some, so that ROWS windows decide all of ``table``, and a last
    one, which brings the watermark past them.
    """
    last = ending(table)
    more = last.slice(len(table)).set_column(0, "ts", pa.array([LAST]))
    return pa.concat_tables([table, *[more] * 7, last.slice(len(table))])


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS), window=st.sampled_from(WINDOWS),
       groups=st.integers(1, 3), order=st.sampled_from(["none", "total"]), on=st.sampled_from([ON, "r.name = s.name"]),
       cuts=st.lists(st.integers(-1, 45), max_size=5).map(sorted), kept=st.booleans(),
       devices=st.lists(st.sampled_from(["golden", "cpu"]), min_size=1, max_size=2))
def test_micro_batches_decide_the_rows_of_the_golden_model(
        tmp_path_factory: pytest.TempPathFactory, seed: int, kind: dict[str, Any], window: tuple[Any, bool],
        groups: int, order: str, on: str, cuts: list[int], kept: bool, devices: list[str]) -> None:
    """Tasks run twice, stop before their end, and forget what they remember; the device changes."""
    chance = random.Random(seed)
    query: dict[str, Any] = {"on": on, "window": window[0], "time": "ts", **kind}
    if order == "total" or window[1] or (kind["how"] in ("right", "full") and on == ON):
        groups = 1
    join = MicroBatches(str(tmp_path_factory.mktemp("state")), R.schema, S.schema, 0, {**query, "order": order},
                        groups, devices[0], TIES, kept=kept)
    got = run(join, cut(ended(R), cuts), cut(ended(S), cuts), chance, devices=devices)
    times = [got[name] for name in ("ts", "ts_r", "ts_s") if name in got.column_names]
    got = got.filter(pc.less(pc.coalesce(*times), LAST))
    want = answer(R, S, **query)
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


def test_the_number_of_groups_stays(tmp_path: Path) -> None:
    join = MicroBatches(str(tmp_path), R.schema, S.schema, 0,
                        {"on": ON, "window": "RANGE 7", "time": "ts", "order": "none", "how": "anti"}, 2, "cpu", TIES)
    join.run([R], [S])
    again = join.restarted(groups=3)
    with pytest.raises(SnapshotError, match="is of 2 groups, and now groups is 3; it may change for inner joins only"):
        again.run([R], [S])


def test_rows_wait_for_the_watermark(tmp_path: Path) -> None:
    def table(*ts: int) -> pa.Table:
        return pa.table({"ts": ts, "x": ts})

    join = MicroBatches(str(tmp_path), table(1).schema, table(1).schema, 0,
                        {"on": "r.x = s.x", "window": "RANGE 3", "time": "ts", "order": "none", "how": "left"})
    assert len(join.run([table(1, 2)], [table(2)])) == 0
    assert join.run([table(4)], [table(4)]).to_pylist() == [{"ts_r": 2, "x_r": 2, "ts_s": 2, "x_s": 2}]
    found = join.run([table(6)], [table(5)])  # the watermark is 5: r at 1 has seen all up to 4
    assert {"ts_r": 1, "x_r": 1, "ts_s": None, "x_s": None} in found.to_pylist()
