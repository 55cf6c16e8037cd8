"""A run of a task that ends late replaces its file by an equal one, though rows came to it in another order."""

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings, strategies as st

from splitjoin.spark.streaming.state_files import StateFiles

from ....support.micro_batches import MicroBatches
from ....support.sampling import examples
from ....support.spark_streams import ON, answer, rows
from .test_decisions import KINDS, LAST, LATEST, WINDOWS, R, S, ended
from .test_group import TIES, cut, shuffled


@settings(max_examples=examples(8))
@given(seed=st.integers(0, 2**32), kind=st.sampled_from([{"how": "inner"}, *KINDS, *LATEST]),
       window=st.sampled_from(WINDOWS), groups=st.integers(1, 2), on=st.sampled_from([ON, "r.name = s.name"]))
@example(seed=0, kind={"how": "left"}, window=WINDOWS[0], groups=2, on=ON)
@example(seed=3, kind={"how": "full"}, window=WINDOWS[0], groups=1, on=ON)
@example(seed=1, kind={"how": "left"}, window=({"r": "ROWS 3", "s": "RANGE 9"}, True), groups=1, on=ON)
def test_a_late_run_changes_nothing(tmp_path_factory: pytest.TempPathFactory, seed: int, kind: dict[str, Any],
                                    window: tuple[Any, bool], groups: int, on: str) -> None:
    """Its file comes when the next micro-batch has been joined, by a worker that had read the first run's file."""
    chance = random.Random(seed)
    query: dict[str, Any] = {"on": on, "window": window[0], "time": "ts", **kind}
    if window[1] or (kind["how"] in ("right", "full") and on == ON):
        groups = 1
    first, again = (MicroBatches(str(tmp_path_factory.mktemp("state")), R.schema, S.schema, 0,
                                 {**query, "order": "none"}, groups, "golden", TIES if window[1] or
                                 kind["how"].startswith("asof") or "aggregate" in kind else {"r": (), "s": ()})
                    for _ in range(2))
    cuts = sorted(chance.sample(range(40), 5))
    found = []
    for n, (r, s) in enumerate(zip(cut(ended(R), cuts), cut(ended(S), cuts), strict=True)):
        first = first.restarted()
        found.append(first.run([r], [s]))
        if n:
            here, there = (Path(join.root) / f"query/join/{n - 1:09d}" for join in (again, first))
            shutil.copytree(here, there, dirs_exist_ok=True)
        again.run(shuffled(r, chance), shuffled(s, chance))
    got = pa.concat_tables(found)
    got = got.filter(pc.less(pc.coalesce(*(got[c] for c in ("ts", "ts_r", "ts_s") if c in got.column_names)), LAST))
    assert rows(got) == rows(answer(R, S, **query))


def test_versions_hold_the_same_tuples_whatever_parts_they_came_in(tmp_path: Path) -> None:
    """Which earlier files a version needs does not depend on the bytes of any."""
    whole, parted = (MicroBatches(str(tmp_path / name), R.schema, S.schema, 0,
                                  {"on": ON, "window": "RANGE 7", "time": "ts", "order": "none"}, 1)
                     for name in ("whole", "parted"))
    chains = []
    for at in range(40):
        r = R.slice(at, 1 + at % 3).set_column(0, "ts", pa.array(range(at, at + 1 + at % 3)))
        whole.run([r], [r.slice(0, 0)])
        # A file of the first run, which wrote all rows in one part; then the next micro-batch comes in many parts.
        shutil.copytree(whole.root, parted.root, dirs_exist_ok=True)
        later = R.slice(at, 8).set_column(0, "ts", pa.array(range(at, at + 8)))
        found = []
        for parts in ([later], [later.slice(n, 1) for n in range(8)]):
            join = parted.restarted(batch=at + 1)
            join.run(parts, [later.slice(0, 0)])
            found.append(StateFiles(join.root, "query", "join").header(at + 1, 0, 1).chain)
        assert [(batch, n) for batch, n, _ in found[0]] == [(batch, n) for batch, n, _ in found[1]]
        chains.append(len(found[0]))
    assert 1 in chains
    assert max(chains) > 2
