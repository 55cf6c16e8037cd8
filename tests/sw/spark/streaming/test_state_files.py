"""State files: whole or not there, read back, cleaned up, and refused when they are damaged or of another join."""

import json
import os
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from splitjoin.base.errors import InputError, SnapshotError
from splitjoin.spark.streaming import state_files as store
from splitjoin.spark.streaming.state_files import StateFiles, check_root, write_file

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


def test_old_versions_are_deleted_and_the_rest_suffices(tmp_path: Path) -> None:
    join = query(str(tmp_path), groups=2, retained=3)
    found = run(join, 30)
    batches = sorted(int(p.name) for p in (tmp_path / "query" / "join").iterdir())
    assert batches[-1] == 29
    assert batches[0] > 15  # three versions, what they build on, and what came since the last look
    again = join.restarted()
    again.batch = 27  # the last three can be run again, from the files that are left
    assert rows(pa.concat_tables(found[:27] + run(again, 4))) == rows(expected(31))


def test_a_version_holds_what_was_added_and_sometimes_the_whole_window(tmp_path: Path) -> None:
    join = query(str(tmp_path))
    run(join, 20)
    files = StateFiles(str(tmp_path), "query", "join")
    chains = [files.header(n, 0, 1).chain for n in range(20)]
    assert {len(chain) == 1 for chain in chains} == {True, False}
    for n, chain in enumerate(chains):
        assert chain[-1][0] == n


@pytest.mark.parametrize("order", ["none", "total"])
def test_the_bytes_of_a_state_stay_as_its_rows_do(tmp_path: Path, order: str) -> None:
    """Few rows, whose schemas take more bytes than they do; in total order, rows that wait are in every version."""
    join = query(str(tmp_path)).restarted(late=25)
    join.query = QUERY | {"order": order}
    sizes = []
    for _ in range(30):
        run(join, 1)
        sizes.append(join.counts["state_bytes"])
    one = min(sizes[4:])
    assert max(sizes[4:]) < 2.5 * one
    assert one < 4 * sizes[0]


@pytest.mark.parametrize(("retained", "longest"), [(100, 64), (3, 8), (20, 20)])
def test_chains_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retained: int, longest: int) -> None:
    monkeypatch.setattr("splitjoin.spark.streaming.state_format._MOST_TUPLES", 10**6)
    join = query(str(tmp_path), retained=retained)
    chains = []
    for n in range(longest + 2):
        run(join, 1)
        chains.append(StateFiles(str(tmp_path), "query", "join").header(n, 0, 1).chain)
    assert max(map(len, chains)) == longest
    assert len(chains[longest]) == 1


@pytest.mark.parametrize("harm", ["flip", "cut", "head", "empty", "other"])
def test_damaged_files_are_refused(tmp_path: Path, harm: str) -> None:
    join = query(str(tmp_path))
    run(join, 1)
    (path,) = (tmp_path / "query" / "join").rglob("*.state")
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes({"flip": bytes(data), "cut": path.read_bytes()[:-5],
                      "head": path.read_bytes()[:100], "empty": b"",
                      "other": b"PAR1" + bytes(100)}[harm])
    with pytest.raises(SnapshotError, match=r"0-of-1\.state is (damaged|not a state of splitjoin)"):
        run(join.restarted(), 1)


def test_a_damaged_header_is_refused_where_it_is_read_alone(tmp_path: Path) -> None:
    join, files = query(str(tmp_path)), StateFiles(str(tmp_path), "query", "join")
    run(join, 1)
    (path,) = (tmp_path / "query" / "join").rglob("*.state")
    data = path.read_bytes()
    assert files.header(0, 0, 1).batch == 0
    length = int.from_bytes(data[16:24], "little")
    for at in range(8, 28 + length):
        if 12 <= at < 16:
            continue  # the checksum of the whole
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:])
        with pytest.raises(SnapshotError, match=r"0-of-1\.state (is damaged|has the format)"):
            files.header(0, 0, 1)


@pytest.mark.parametrize("change", ["chain", "hot", "blobs", "numbered", "batch", "tuples"])
def test_a_header_that_no_version_has_is_refused(tmp_path: Path, change: str) -> None:
    """Even where all checksums fit."""
    join = query(str(tmp_path))
    run(join, 1)
    (path,) = (tmp_path / "query" / "join").rglob("*.state")
    data = path.read_bytes()
    end = 28 + int.from_bytes(data[16:24], "little")
    header = json.loads(data[28:end])
    del header[change]
    text = json.dumps(header).encode()
    body = struct.pack("<QI", len(text), zlib.crc32(text)) + text + data[end:]
    path.write_bytes(data[:12] + struct.pack("<I", zlib.crc32(body)) + body)
    with pytest.raises(SnapshotError, match=r"0-of-1\.state is damaged: its contents cannot be read"):
        run(join.restarted(), 1)


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_states_are_for_their_user_alone(tmp_path: Path, umask: int) -> None:
    root = tmp_path / "new" / "root"
    before = os.umask(umask)
    try:
        check_root(str(root), "state")
        run(query(f"file://{root}"), 1)
    finally:
        os.umask(before)
    found = [root.parent, root, *root.rglob("*")]
    assert {path.stat().st_mode & 0o7777 for path in found if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o7777 for path in found if path.is_file()} == {0o600}
    write_file(str(root), "late/rows.parquet", b"rows", private=False)  # a result for others, as the umask says
    assert (root / "late" / "rows.parquet").stat().st_mode & 0o7777 == 0o666 & ~before


def test_states_that_are_missing_or_not_whole_are_refused(tmp_path: Path) -> None:
    join = query(str(tmp_path), groups=2)
    run(join, 2)
    with pytest.raises(SnapshotError, match=r"goes on with micro-batch 2, but there is no state of it at"):
        run(join.restarted(root=str(tmp_path / "elsewhere")), 1)
    (last := tmp_path / "query" / "join" / "000000001" / "1-of-2.state").rename(kept := tmp_path / "kept")
    with pytest.raises(SnapshotError, match=r"the state of micro-batch 1 is incomplete: .* holds 1 of 2 files"):
        run(join.restarted(groups=3), 1)
    kept.rename(last)
    first = tmp_path / "query" / "join" / "000000000" / "0-of-2.state"
    first.unlink()
    with pytest.raises(SnapshotError, match=r"the state of micro-batch 0 is not at .*0-of-2\.state; the folder given"):
        run(join.restarted(), 1)


def test_a_micro_batch_that_was_not_joined_is_noticed(tmp_path: Path) -> None:
    """As if a foreachBatch function had not computed its DataFrame, or a part of it."""
    join = query(str(tmp_path), groups=2)
    run(join, 2)
    join.batch = 3
    with pytest.raises(SnapshotError, match=r"the state of micro-batch 2 is incomplete: .* holds 0 of 2 files; each "
                                            "micro-batch must be computed to its end, so a foreachBatch"):
        run(join, 1)
    for groups in (2, 3):
        with pytest.raises(SnapshotError, match="the state of micro-batch 2 is incomplete"):
            run(join.restarted(groups=groups), 1)


def test_the_state_is_written_whatever_becomes_of_the_rows(tmp_path: Path) -> None:
    join = query(str(tmp_path))
    found = run(join, 1)
    task = join.task()
    cut = join._group(task, 0, *([table] for table in streams(1)))
    found.append(pa.table(next(cut)).drop_columns(["__splitjoin"]).cast(found[0].schema))
    cut.close()  # type: ignore[attr-defined]
    join.batch = 2
    found += run(join.restarted(), 1)
    assert 0 < sum(map(len, found)) < len(expected(3))  # a part of the second one's rows was asked for
    assert rows(found[2]) <= rows(expected(3))
    assert rows(found[2]) == rows(expected(3)) - rows(expected(2))


def test_the_rows_name_their_group(tmp_path: Path) -> None:
    """After ``coalesce`` one task computes several groups, and its number is that of none."""
    for on in ("abs(r.x - s.a) <= 2", "r.x = s.a"):
        join = query(str(tmp_path / on[:3]), groups=3, partition=0)
        join.query = QUERY | {"on": on}
        found = []
        for n in range(4):
            found.append(join.run(*([table] for table in streams(n))))
            found.append(join.run([], []))  # no input has a partition
        r, s = (pa.concat_tables([streams(n)[side] for n in range(4)]) for side in (0, 1))
        assert rows(pa.concat_tables(found)) == rows(answer(r, s, on=on, window="RANGE 30", time="ts"))


def test_micro_batches_without_input_carry_the_state_on(tmp_path: Path) -> None:
    join = query(str(tmp_path), groups=2, retained=3)
    join.query = QUERY | {"order": "none", "window": "ROWS 30"}
    found = [join.run([], [])]
    found.append(join.run(*([table] for table in streams(0))))
    found += [join.run([], []) for _ in range(70)]
    assert sum(table.num_rows for table in found[2:]) == 0
    join = join.restarted(groups=3)
    found.append(join.run([], []))
    found += [join.restarted().run(*([table] for table in streams(1)))]
    join.batch += 1
    found += [join.run([], []), join.run(*([table] for table in streams(2)))]
    r, s = (pa.concat_tables([streams(n)[side] for n in range(3)]) for side in (0, 1))
    want = answer(r.slice(0, 59), s.slice(0, 59), on=QUERY["on"], window="ROWS 30", time="ts")
    assert rows(pa.concat_tables(found)) == rows(want)
    assert len(list((tmp_path / "query" / "join").iterdir())) < 80


def test_files_that_a_failed_run_with_other_groups_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One group of two was done when the query failed; then it went on with three, and then with two."""
    monkeypatch.setattr("splitjoin.spark.streaming.group._SKEWED", 20)

    def hot(n: int) -> tuple[pa.Table, pa.Table]:
        ts = list(range(80 * n, 80 * n + 80))
        return (pa.table({"ts": ts, "x": [0 if t % 3 else t for t in ts], "n": ts}),
                pa.table({"ts": ts, "a": [0 if t % 5 else t for t in ts], "m": ts}))

    parts = [hot(n) for n in range(3)]
    made = {"on": "r.x = s.a AND abs(r.n - s.m) <= 40", "window": "RANGE 100", "time": "ts", "order": "none"}
    join = MicroBatches(str(tmp_path), *(t.schema for t in parts[0]), 0, made, 2, "golden")
    found = [join.run(*([t] for t in parts[0]))]
    for group in range(2):
        failed = join.restarted()
        task = failed.task()
        states = tmp_path / "query" / "join" / "000000001"
        list(failed._group(task, group, *([t] for t in parts[1])))
        (states / f"{1 - group}-of-2.state").unlink(missing_ok=True)
        other = join.restarted(groups=3)
        then = [other.run(*([t] for t in parts[1]))]
        again = other.restarted(groups=2)
        then.append(again.run(*([t] for t in parts[2])))
        r, s = (pa.concat_tables([part[side] for part in parts[:3]]) for side in (0, 1))
        want = answer(r, s, **{k: v for k, v in made.items() if k != "order"})
        assert rows(pa.concat_tables(found + then)) == rows(want)


def test_late_rows_are_written_once_if_the_groups_change_at_a_failure(tmp_path: Path) -> None:
    late = tmp_path / "late"
    join = query(str(tmp_path / "state"), groups=2, late_to=str(late))
    run(join, 3)
    old = [[table] for table in streams(0)]
    join.batch = 3
    for groups in (2, 3, 1, 2):
        join.restarted(groups=groups).run(*old)
        for which in ("left", "right"):
            assert sum(len(pa.parquet.read_table(f)) for f in (late / which).glob("*.parquet")) == 20


def test_the_lateness_may_change(tmp_path: Path) -> None:
    """The watermark stays where it is until the new lateness takes it further."""
    join = query(str(tmp_path))
    found = run(join, 2)  # the watermark is 39
    old = [pa.table({"ts": [n], name: [4]}) for n, name in ((38, "x"), (39, "a"))]
    join = join.restarted(late=15)
    found.append(join.run([old[0]], [old[1]]))
    assert (join.counts["late_r"], join.counts["late_s"]) == (1, 0)
    join.batch = 3  # of the rows
    more = [pa.concat_tables([table.slice(0, 1).set_column(0, "ts", pa.array([44 + n])), table])
            for n, table in enumerate(streams(3))]
    found.append(join.run([more[0]], [more[1]]))
    assert join.counts["late_r"] == 0
    r = pa.concat_tables([streams(0)[0], streams(1)[0], more[0]])
    s = pa.concat_tables([streams(0)[1], streams(1)[1], old[1], more[1]])
    assert rows(pa.concat_tables(found)) == rows(answer(r, s, **{k: v for k, v in QUERY.items() if k != "order"}))
    join = join.restarted(late=2)  # 79 - 2 is the watermark at once
    join.run([], [pa.table({"ts": [1], "a": [1]})])
    join.run([pa.table({"ts": [76], "x": [1]})], [])
    assert join.counts["late_r"] == 1


def test_the_condition_may_have_its_operands_swapped(tmp_path: Path) -> None:
    join = query(str(tmp_path))
    found = run(join, 2)
    join = join.restarted(query=QUERY | {"on": "2 >= abs(s.a - r.x)"})
    assert rows(pa.concat_tables(found + run(join, 2))) == rows(expected(4))


def test_rows_without_a_time_are_counted_and_written(tmp_path: Path) -> None:
    """Each once, whatever the number of groups and partitions; a task that runs again writes them again."""
    r, s = streams(0)
    lost = pa.table({"ts": [None, 4, None], "x": [7, 8, 9]}, schema=r.schema)
    for groups in (1, 3):
        for on in (QUERY["on"], "r.x = s.a"):
            late = tmp_path / f"late-{groups}-{on[:3]}"
            join = query(str(late / "state"), groups=groups, late_to=str(late), nulls_are_late=True)
            join.query = QUERY | {"on": on}
            found = join.run([r, lost, lost.slice(0, 1)], [s], again=random.Random(groups))
            joined = pa.concat_tables([r, lost.slice(1, 1)]).sort_by("ts")
            wanted = answer(joined, s, on=on, window="RANGE 30", time="ts")
            assert rows(found) == rows(wanted)
            assert (join.counts["null_r"], join.counts["null_s"], join.counts["late_r"]) == (3, 0, 0)
            written = pa.concat_tables(pa.parquet.read_table(f) for f in sorted((late / "left").iterdir()))
            assert sorted(written["x"].to_pylist()) == [7, 7, 9]
            assert not (late / "right").exists()


@pytest.mark.parametrize(("change", "reason"), [
    ({"query": QUERY | {"on": "abs(r.x - s.a) <= 3"}}, r"condition: was '\(abs\(\(r.x - s.a\)\) <= 2\)', is now"),
    ({"query": QUERY | {"window": ("RANGE 30", "RANGE 31")}}, r"of right: was 'the last 30', is now 'the last 31'"),
    ({"query": QUERY | {"order": "total"}}, r"order: was 'none', is now 'total'"),
    ({"r": pa.schema([("ts", pa.int64()), ("x", pa.int32())])}, r"columns of left: was 'ts int64, x int64'"),
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
