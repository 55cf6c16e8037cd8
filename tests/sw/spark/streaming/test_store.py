"""State files: whole or not there, read back, cleaned up, and refused when they are damaged or of another join."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs
from splitjoin.errors import InputError, SnapshotError
from splitjoin.spark.streaming import store
from splitjoin.spark.streaming.store import StateFiles, check_root

from ....support.micro_batches import MicroBatches
from ....support.spark_streams import answer, rows

QUERY: dict[str, Any] = {"on": "abs(r.x - s.a) <= 2", "window": "RANGE 30", "time": "ts", "order": "none"}


def streams(n: int) -> tuple[pa.Table, pa.Table]:
    """Rows of micro-batch ``n``: 20 of each stream, one a unit of time."""
    chance = random.Random(n)
    ts = list(range(20 * n, 20 * n + 20))
    return (pa.table({"ts": ts, "x": [chance.randrange(9) for _ in ts]}),
            pa.table({"ts": ts, "a": [chance.randrange(9) for _ in ts]}))


def query(root: str, **changes: Any) -> MicroBatches:
    r, s = streams(0)
    return MicroBatches(root, r.schema, s.schema, 0, QUERY, **changes)


def run(join: MicroBatches, batches: int) -> list[pa.Table]:
    return [join.run(*([table] for table in streams(join.batch))) for _ in range(batches)]


def expected(batches: int) -> pa.Table:
    r, s = (pa.concat_tables([streams(n)[side] for n in range(batches)]) for side in (0, 1))
    return answer(r, s, **{k: v for k, v in QUERY.items() if k != "order"})


def test_old_versions_are_deleted_and_the_rest_suffices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitjoin.spark.streaming.state._FREE", 0)  # so that chains are short
    join = query(str(tmp_path), groups=2, retained=3)
    found = run(join, 30)
    batches = sorted(int(p.name) for p in (tmp_path / "query" / "join").iterdir())
    assert batches[-1] == 29
    assert batches[0] > 5  # cleaned up after every eight micro-batches
    again = join.restarted()
    again.batch = 27  # the last three can be run again, from the files that are left
    assert rows(pa.concat_tables(found[:27] + run(again, 4))) == rows(expected(31))


def test_a_version_holds_what_was_added_and_sometimes_the_whole_window(tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitjoin.spark.streaming.state._FREE", 0)
    join = query(str(tmp_path))
    run(join, 20)
    files = StateFiles(str(tmp_path), "query", "join")
    chains = [files.header(n, 0, 1).chain for n in range(20)]
    assert {len(chain) == 1 for chain in chains} == {True, False}
    for n, chain in enumerate(chains):
        assert chain[-1][0] == n
        live = sum(len(streams(m)[0]) + len(streams(m)[1]) for m in range(max(0, n - 1), n + 1)) + 22
        assert sum(size for _, size, _ in chain) <= 1.5 * live + 40
    monkeypatch.setattr("splitjoin.spark.streaming.state._FREE", 10**6)
    long = query(str(tmp_path / "long"))
    run(long, 70)
    chains = [StateFiles(str(tmp_path / "long"), "query", "join").header(n, 0, 1).chain for n in range(70)]
    assert max(map(len, chains)) == 64
    assert len(chains[64]) == 1


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "other"])
def test_damaged_files_are_refused(tmp_path: Path, harm: str) -> None:
    join = query(str(tmp_path))
    run(join, 1)
    (path,) = (tmp_path / "query" / "join").rglob("*.state")
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes({"flip": bytes(data), "cut": path.read_bytes()[:-5], "empty": b"",
                      "other": b"PAR1" + bytes(100)}[harm])
    with pytest.raises(SnapshotError, match=r"0-of-1\.state is (damaged|not a state of splitjoin)"):
        run(join.restarted(), 1)


def test_states_that_are_missing_or_not_whole_are_refused(tmp_path: Path) -> None:
    join = query(str(tmp_path), groups=2)
    run(join, 2)
    with pytest.raises(SnapshotError, match=r"goes on with micro-batch 2, but there is no state of it at"):
        run(join.restarted(root=str(tmp_path / "elsewhere")), 1)
    (tmp_path / "query" / "join" / "000000001" / "1-of-2.state").unlink()
    with pytest.raises(SnapshotError, match=r"the state of micro-batch 1 is not whole: .* holds 1 of 2 files"):
        run(join.restarted(groups=3), 1)
    first = tmp_path / "query" / "join" / "000000000" / "0-of-2.state"
    first.unlink()
    with pytest.raises(SnapshotError, match=r"the state of micro-batch 0 is not at .*0-of-2\.state; the folder given"):
        run(join.restarted(), 1)


@pytest.mark.parametrize(("change", "reason"), [
    ({"query": QUERY | {"on": "abs(r.x - s.a) <= 3"}}, r"its condition is '\(abs\(\(r.x - s.a\)\) <= 2\)', now it is"),
    ({"query": QUERY | {"window": ("RANGE 30", "RANGE 31")}}, r"its window of S is"),
    ({"query": QUERY | {"order": "total"}}, r"its order is 'none', now it is 'total'"),
    ({"late": 1}, r"its lateness is '0, 0', now it is '1, 1'"),
    ({"r": pa.schema([("ts", pa.int64()), ("x", pa.int32())])}, r"its columns of left is 'ts int64, x int64'"),
])
def test_the_state_of_another_join_is_refused_by_name(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    join = query(str(tmp_path))
    run(join, 1)
    with pytest.raises(SnapshotError, match=reason):
        join.restarted(**change).run([], [])


@pytest.mark.parametrize("atomic", [True, False])
def test_other_file_systems(monkeypatch: pytest.MonkeyPatch, atomic: bool) -> None:
    """An object store, in memory; and one on which a file must be renamed to appear at once."""
    memory = fs._MockFileSystem()
    monkeypatch.setattr(store, "_opened", lambda root: (memory, root.removeprefix("mock://")))
    monkeypatch.setattr(store, "_ATOMIC", {"mock"} if atomic else set())
    check_root("mock://bucket/state", "state")
    join = query("mock://bucket/state", groups=2, retained=2)
    found = run(join, 9)
    found += run(again := join.restarted(groups=3), 4)
    again.batch -= 1
    found = found[:-1] + run(again.restarted(), 5)
    assert rows(pa.concat_tables(found)) == rows(expected(17))
    left = [info.path for info in memory.get_file_info(fs.FileSelector("bucket/state", recursive=True))
            if info.type == fs.FileType.File]
    assert left
    assert all(path.endswith(".state") for path in left)


@pytest.mark.parametrize(("root", "reason"), [
    (7, "state must be a path or a URI of a folder"), ("", "state must be a path"),
    ("nothing://x", "state: a folder must be a path or a URI of a file system that Arrow reaches"),
    ("/dev/null/x", "nothing can be written to '/dev/null/x'"),
])
def test_folders_that_cannot_hold_state(root: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_root(root, "state")
