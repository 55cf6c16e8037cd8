"""Epochs: every row in exactly one file, whatever ends the process, and whatever it goes on with."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

import splitjoin
from splitjoin.base.disk import using
from splitjoin.base.errors import DeviceError, InputError, SnapshotError
from splitjoin.sessions.epochs import EpochWriter, epoch_files
from splitjoin.sessions.epochs.folder import hidden_name, read_manifest
from splitjoin.sessions.snapshot import Snapshot

from ....support.simulated_disk import Ended, SimulatedDisk

A = pa.schema([("ts", pa.int64()), ("x", pa.int32())])
B = pa.schema([("ts", pa.int64()), ("a", pa.int32())])
R = pa.table({"ts": [i // 2 for i in range(120)], "x": [i * 7 % 20 for i in range(120)]}, schema=A)
S = pa.table({"ts": [i // 3 for i in range(150)], "a": [i * 5 % 20 for i in range(150)]}, schema=B)
ON: dict[str, Any] = {"on": "abs(r.x - s.a) <= 3", "window": "RANGE 5", "time": "ts"}


def opened(how: str = "left", **options: Any) -> splitjoin.StreamJoin:
    return splitjoin.open(splitjoin.query(A, B, how=how, **ON), **options)


def wanted(how: str = "left") -> list[Any]:
    return splitjoin.join(R, S, how=how, device="golden", **ON).table.to_pylist()


def rows(folder: Path, query: str = "") -> list[Any]:
    """What a reader of the folder sees that knows nothing of epochs."""
    files = epoch_files(folder, query)
    assert files == sorted(map(Path, pa.dataset.dataset(files[0].parent).files)) if files else True
    return [row for file in files for row in pa.parquet.read_table(file).to_pylist()]


def behind(writer: EpochWriter) -> tuple[int, int]:
    return sum(writer.delivered.get("r", ())), sum(writer.delivered.get("s", ()))


def finish(session: splitjoin.StreamJoin, writer: EpochWriter) -> None:
    """Push what is not in the last epoch's state yet, and write the rest."""
    pushed = behind(writer)
    session.push_r(R.slice(pushed[0]))
    session.push_s(S.slice(pushed[1]))
    session.close_r()
    session.close_s()
    writer.run()


@pytest.mark.parametrize(("fault", "words"), [
    ({("rename", 2): "EIO"}, "^epoch 0 may be in .* or not: .*; its rows are written once in any case, write again"),
    ({("rename", 2): "late EIO"}, "^epoch 0 may be in .* or not: "),
    ({("sync folder", 5): "EIO"}, "^epoch 0 is in .*, but may be lost if the power fails: .*; write again to make"),
    ({("rename", 3): "EIO"}, "^epoch 0 is in .*, but may be lost if the power fails"),
], ids=range(4))
def test_an_error_behind_the_manifest_is_told_and_no_row_is_written_twice(tmp_path: Path, fault: Any, words: str,
                                                                           ) -> None:
    disk = SimulatedDisk(tmp_path / "disk", random.Random(0))
    with using(disk), opened("inner") as session, session.write_to(disk.root / "out", rows=1) as writer:
        disk.faults = fault
        session.push_r(R)
        session.push_s(S.slice(0, 30))
        with pytest.raises(InputError, match=words):
            writer.write()
        assert (writer.settled, writer.epochs) == (False, 0)
        assert any(call.endswith("EIO") for call in disk.calls)
        disk.faults = {}
        session.push_s(S.slice(30))
        session.close_r()
        session.close_s()
        assert writer.commit()
        assert (writer.settled, writer.epochs) == (True, 1 if fault == {("rename", 2): "EIO"} else 2)
    assert rows(disk.root / "out") == wanted("inner")


def test_an_epoch_that_counts_after_such_an_error_outlasts_a_power_cut(tmp_path: Path) -> None:
    """A power cut forgets names that were not synced, some or all; the rows of a query are in a folder of their own."""
    for seed in range(8):
        disk = SimulatedDisk(tmp_path / str(seed), random.Random(seed))
        with using(disk), splitjoin.share(A, B, time="ts") as hub:
            hub.query(on=ON["on"], window=ON["window"], name="near")
            with hub.write_to(disk.root / "out", rows=1) as writer:
                disk.faults = {("rename", 2): "late EIO"}
                hub.push_r(R)
                hub.push_s(S.slice(0, 30))
                with pytest.raises(InputError, match="its rows are written once in any case"):
                    writer.write()
                disk.faults = {}
                writer.commit()
                assert writer.epochs == 1
                written = rows(disk.root / "out", "near")
                disk.restart()
                disk.cut_power()
                assert read_manifest(disk.root / "out").epochs == 1
                assert rows(disk.root / "out", "near") == written != []


def test_a_manifest_that_outlasts_a_power_cut_has_its_state(tmp_path: Path) -> None:
    """The process ends once the manifest has its name, and the cut leaves some of the names, or the last one alone."""
    for seed in range(10):
        disk = SimulatedDisk(tmp_path / str(seed), random.Random(seed))
        with using(disk), opened("inner") as session:
            writer = session.write_to(disk.root / "out", rows=1)
            disk.faults = {("rename", 2): "late end"}
            session.push_r(R)
            session.push_s(S.slice(0, 30))
            with pytest.raises(Ended):
                writer.write()
            writer._folder.close()
        disk.restart()
        disk.cut_power()
        with using(disk), opened("inner") as session, session.write_to(disk.root / "out") as writer:
            finish(session, writer)
        assert rows(disk.root / "out") == wanted("inner")


def test_rows_of_a_commit_that_came_to_nothing_are_polled_once_the_writer_is_closed(tmp_path: Path) -> None:
    disk = SimulatedDisk(tmp_path / "disk", random.Random(0))
    with using(disk), opened("inner") as session:
        writer = session.write_to(disk.root / "out", rows=1)
        disk.faults = {("rename", 2): "EIO"}
        session.push_r(R)
        session.push_s(S)
        with pytest.raises(InputError, match="its rows are written once in any case"):
            writer.write()
        disk.faults = {}
        writer.close()
        assert session.poll().to_pylist() + session.flush().to_pylist() == wanted("inner")


def test_rows_that_cannot_be_written_are_kept(tmp_path: Path) -> None:
    with opened("inner") as session, session.write_to(tmp_path, rows=1) as writer:
        session.push_r(R)
        session.push_s(S.slice(0, 30))
        assert writer.write()
        session.push_s(S.slice(30))
        (tmp_path / "_state-000000000001").mkdir()
        message = r"^epoch 1 cannot be written to .*; its rows are kept, make room there and write again$"
        with pytest.raises(InputError, match=message):
            writer.write()
        (tmp_path / "_state-000000000001").rmdir()
        assert writer.write()
        session.close_r()
        session.close_s()
    assert rows(tmp_path) == wanted("inner")


def test_an_epoch_ends_by_rows_by_event_time_or_by_delay(tmp_path: Path) -> None:
    now = [0.0]
    for options, expected in (({"rows": 10}, [10, 10]), ({"every": 4}, [4, 4]), ({"delay": 3}, [3, 3])):
        folder = tmp_path / next(iter(options))
        with opened("inner", clock=lambda: now[0]) as session, session.write_to(folder, **options) as writer:
            sizes = [0]
            for at in range(14):
                session.push_r(pa.table({"ts": [at], "x": [1]}, schema=A))
                session.push_s(pa.table({"ts": [at], "a": [50 if options != {"rows": 10} else 1]}, schema=B))
                now[0] += 1
                sizes[-1] += 1
                if writer.write():
                    sizes.append(0)
            if "rows" not in options:
                assert sizes[1:3] == expected
                assert writer.epochs >= 2
                assert rows(folder) == []  # epochs without rows have no file, but a state
    assert [len(pa.parquet.read_table(file)) >= 10 for file in epoch_files(tmp_path / "rows")][:-1] == [True] * (
        len(epoch_files(tmp_path / "rows")) - 1)


def test_without_anything_new_there_is_no_epoch(tmp_path: Path) -> None:
    with opened() as session, session.write_to(tmp_path, delay=0.0001) as writer:
        assert not writer.write()
        assert not writer.commit()
        session.push_r(R.slice(0, 1))
        assert writer.commit()
        assert not writer.commit()
        assert writer.delivered == {"r": (1,), "s": ()}
    assert json.loads((tmp_path / "_manifest.json").read_text())["epochs"] == 1


def test_an_epoch_says_in_its_file_where_it_begins(tmp_path: Path) -> None:
    with opened("inner") as session, session.write_to(tmp_path, rows=50) as writer:
        for at in range(0, 150, 10):
            session.push_r(R.slice(at, 10))
            session.push_s(S.slice(at, 10))
            writer.write()
    at = 0
    for n, file in enumerate(epoch_files(tmp_path)):
        read = pa.parquet.read_metadata(file)
        about = json.loads(read.metadata[b"splitjoin.epoch"])
        assert (about["first_row"], about["epoch"] >= n, type(about["frontier"])) == (at, True, int)
        at += read.num_rows
    assert at > 200


def test_only_the_writer_reads(tmp_path: Path) -> None:
    with opened() as session:
        with session.write_to(tmp_path) as writer:
            for read in (session.poll, session.flush, lambda: next(iter(session))):
                with pytest.raises(InputError, match=r"^the rows go to .*, so no poll, restore or other writer can "
                                                     r"have them; read the files there, or close their writer first$"):
                    read()
            with pytest.raises(InputError, match="so no poll, restore or other writer can have them"):
                session.restore(session.snapshot())
            with pytest.raises(InputError, match="but another one writes"):
                opened().write_to(tmp_path)
            with pytest.raises(InputError, match="so no poll, restore or other writer can have them"):
                session.write_to(tmp_path.with_name("other"))
            session.push_r(R.slice(0, 3))
            session.push_s(S)
        with pytest.raises(InputError, match="the writer of epochs is closed"):
            writer.commit()
        with pytest.raises(InputError, match="call write_to before the first push"):
            session.write_to(tmp_path)
        assert len(session.flush())  # rows behind the last epoch


@pytest.mark.parametrize(("options", "message"), [
    ({"rows": 0}, "rows of an epoch must be a whole number from 1, or None, not 0"),
    ({"delay": 0}, "the delay of an epoch must be seconds above 0, or None, not 0"),
    ({"every": 0}, "every must be a length above 0, not 0"),
    ({"every": "5 SECONDS"}, "every must be the length of an epoch in event time, such as '5 MINUTES', or 5 with an "
                             "integer time column, not '5 SECONDS'"),
])
def test_what_is_no_bound_of_an_epoch(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"), opened() as session:
        session.write_to(tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^epochs need the path of a folder, not None$"):
        opened().write_to(None)  # type: ignore[arg-type]  # as users may
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^epochs need a folder that can be written, but .*file cannot be made"):
        opened().write_to(tmp_path / "file")
    with opened() as session, session.write_to(tmp_path / "a"):
        session.push_r(R.slice(0, 3))
    with pytest.raises(SnapshotError, match="of another query"):
        opened("inner").write_to(tmp_path / "a")
    (tmp_path / "a" / "_state-000000000000").unlink()
    with pytest.raises(SnapshotError, match=r"^the state of epoch 0 in .* it cannot be read: .* Restore the whole"):
        opened().write_to(tmp_path / "a")
    for text in ("", "[]", '{"format": 2, "epochs": 1, "rows": {}, "delivered": {}, "frontier": null}'):
        (tmp_path / "a" / "_manifest.json").write_text(text)
        with pytest.raises(SnapshotError, match="must be a manifest of epochs of format 1, but is none"):
            opened().write_to(tmp_path / "a")
    query = splitjoin.query(A, B, on="r.x = s.a", window="ROWS 3")
    with pytest.raises(InputError, match="epochs by event time need a time column"), splitjoin.open(query) as session:
        session.write_to(tmp_path / "b", every=3)


def test_a_state_is_for_its_owner_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    session = opened()
    with session.write_to(tmp_path) as writer:
        finish(session, writer)
    (state,) = tmp_path.glob("_state-*")
    assert os.name != "posix" or state.stat().st_mode & 0o777 == 0o600
    with opened(lateness=0) as again, pytest.raises(SnapshotError, match=f"the state of epoch 0 in {tmp_path} must be "
                                                                         "one .* another query.*another folder"):
        again.write_to(tmp_path)
    state.write_bytes(state.read_bytes()[:-1])
    with opened() as again, pytest.raises(SnapshotError, match=f"in {tmp_path} must be one .* may have been cut off"):
        again.write_to(tmp_path)


def test_a_state_that_cannot_be_read_is_set_aside_when_somebody_is_told(tmp_path: Path) -> None:
    with opened("inner") as session, session.write_to(tmp_path) as writer:
        session.push_r(R.slice(0, 60))
        session.push_s(S.slice(0, 90))
    committed, told = rows(tmp_path), list[str]()
    (state,) = tmp_path.glob("_state-*")
    damaged = state.read_bytes()[:-1]
    state.write_bytes(damaged)
    with opened("left") as session, pytest.raises(SnapshotError, match="set_aside= of write_to, --set-aside of"):
        session.write_to(tmp_path)
    with opened("inner") as session, session.write_to(tmp_path, set_aside=told.append) as writer:
        assert behind(writer) == (60, 90)
        assert (tmp_path / "_damaged_state-000000000000").read_bytes() == damaged
        (text,) = told
        assert f"was set aside as {tmp_path / '_damaged_state-000000000000'}. All rows of epochs 0 to 0 stay" in text
        assert "Lost are the tuples that were in windows then" in text
        assert "those delivered (60 of r, 90 of s)" in text
    with opened("inner") as session, session.write_to(tmp_path) as writer:  # from an epoch of its own by now
        finish(session, writer)
    late = splitjoin.join(R.slice(60), S.slice(90), how="inner", device="golden", **ON).table.to_pylist()
    assert rows(tmp_path) == committed + late
    with opened() as session, pytest.raises(SnapshotError, match="of another query"):  # no damage
        session.write_to(tmp_path, set_aside=told.append)


def test_a_state_with_rows_that_are_no_valid_data_is_set_aside(tmp_path: Path) -> None:
    schema = pa.schema([("ts", pa.int64()), ("name", pa.string())])
    query = splitjoin.query(schema, schema, on="r.ts = s.ts", window="RANGE 5", time="ts")
    bad = pa.table([[1, 2], pa.array([b"a", b"\xe1"]).view(pa.string())], schema=schema)  # Latin-1, no UTF-8
    with splitjoin.open(query) as session, session.write_to(tmp_path):
        session.push_r(bad)  # as memory of this process is trusted, and as early servers did
    with splitjoin.open(query) as session, pytest.raises(SnapshotError, match=r"table .* cannot be read .* set_aside="):
        session.write_to(tmp_path)
    told = list[str]()
    with splitjoin.open(query) as session, session.write_to(tmp_path, set_aside=told.append) as writer:
        assert (behind(writer), len(told)) == ((2, 0), 1)


def test_epochs_of_an_early_version_that_were_cut_short_get_their_names(tmp_path: Path) -> None:
    with opened("inner") as session, session.write_to(tmp_path, rows=50) as writer:
        for at in range(0, 90, 10):
            session.push_r(R.slice(at, 10))
            session.push_s(S.slice(at, 10))
            writer.write()
    found, manifest = rows(tmp_path), json.loads((tmp_path / "_manifest.json").read_text())
    for file in epoch_files(tmp_path)[-2:]:
        file.rename(file.with_name(f"_{file.name}"))
    shutil.copy(file.with_name(f"_{file.name}"), tmp_path / hidden_name(manifest["epochs"]))  # of none that counts
    del manifest["last"]
    (tmp_path / "_manifest.json").write_text(json.dumps(manifest))
    with opened("inner") as session, session.write_to(tmp_path):
        assert rows(tmp_path) == found


def test_folders_of_epochs_do_not_lie_in_each_other(tmp_path: Path) -> None:
    with opened("inner") as session, session.write_to(tmp_path / "out" / "day1") as writer:
        session.push_r(R.slice(0, 60))
        with opened("inner") as other, pytest.raises(
                InputError, match=r"must not lie in another one, but .*day1 is one, and .*out lies around it"):
            other.write_to(tmp_path / "out")
        with opened("inner") as other, pytest.raises(InputError, match=r"but .*day1 is one, and .*deep lies in it"):
            other.write_to(tmp_path / "out" / "day1" / "more" / "deep")
        assert not (tmp_path / "out" / "day1" / "more").exists()
        assert writer.commit()
    for _ in range(2):  # what others have in a folder of queries' names stays
        (tmp_path / "beside" / "day1").mkdir(parents=True, exist_ok=True)
        kept = tmp_path / "beside" / "day1" / "_epoch-000000000000.parquet"
        kept.write_bytes(b"of others")
        with opened("inner") as session, session.write_to(tmp_path / "beside"):
            pass
        assert kept.read_bytes() == b"of others"


def test_epochs_that_are_gone_are_an_error_unless_they_were_dropped(tmp_path: Path) -> None:
    with opened("inner") as session, session.write_to(tmp_path, rows=50) as writer:
        for at in range(0, 90, 10):
            session.push_r(R.slice(at, 10))
            session.push_s(S.slice(at, 10))
            writer.write()
    files, all_rows = epoch_files(tmp_path), rows(tmp_path)
    assert len(files) > 2
    for file in (files[0], files[1], files[-1]):
        data = file.read_bytes()
        file.unlink()
        with opened("inner") as session, pytest.raises(SnapshotError, match=f"must hold the {len(all_rows)} rows that _"
                                                                            "manifest.json counts, but those from row"):
            session.write_to(tmp_path)
        file.write_bytes(data[:-9])
        with opened("inner") as session, pytest.raises(SnapshotError, match="must be a file of an epoch, but cannot"):
            session.write_to(tmp_path)
        file.write_bytes(data)
    with pytest.raises(InputError, match=r"epochs before a number from 0 to .*, which are committed, can be dropped"):
        splitjoin.drop_epochs(tmp_path, writer.epochs + 1)
    assert splitjoin.drop_epochs(tmp_path, int(files[1].name[6:18]) + 1) == 2
    assert epoch_files(tmp_path) == files[2:]
    with opened("inner") as session, session.write_to(tmp_path) as writer:
        finish(session, writer)
    assert rows(tmp_path) == wanted("inner")[-len(rows(tmp_path)):]
    assert splitjoin.drop_epochs(tmp_path, writer.epochs) == len(files) - 2 + 1
    with opened("inner") as session, session.write_to(tmp_path):
        assert session.finished


def test_epochs_that_no_manifest_counts_are_not_mixed_with_others(tmp_path: Path) -> None:
    with opened("inner") as session, session.write_to(tmp_path) as writer:
        finish(session, writer)
    (tmp_path / "_manifest.json").unlink()
    with opened("inner") as session, session.write_to(tmp_path) as writer:
        session.push_r(R)
        session.push_s(S)
        with pytest.raises(InputError, match=r"must not hold epochs that the manifest in .* does not count"):
            writer.commit()
        (tmp_path / "epoch-000000000000.parquet").unlink()


def test_input_from_the_beginning_is_not_what_a_folder_goes_on_with(tmp_path: Path) -> None:
    with opened() as session, session.write_to(tmp_path):
        session.push_r(R)
    with opened() as session, session.write_to(tmp_path), pytest.raises(
            InputError, match="or of the session whose snapshot this one restored; push only tuples"):
        session.push_r(R)


def test_shared_streams_write_each_query_to_a_folder_of_its_name(tmp_path: Path) -> None:
    streams, names = splitjoin.share(A, B, time="ts"), ("near", "_a/b")
    for name in names:
        streams.query(on=ON["on"], window="RANGE 5", name=name)
    with streams, streams.write_to(tmp_path) as writer:
        for read in (streams.queries["near"].poll, lambda: streams.restore(streams.snapshot())):
            with pytest.raises(InputError, match="so no poll, restore or other writer can have them"):
                read()
        streams.push_r(R)
        streams.push_s(S)
        streams.close()
        writer.run()
    assert [rows(tmp_path, name) for name in names] == [wanted("inner")] * 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["%5Fa%2Fb", "near"]


def test_shared_streams_without_a_query_have_one_writer_too(tmp_path: Path) -> None:
    streams = splitjoin.share(A, B, time="ts")
    with streams, streams.write_to(tmp_path / "one"), pytest.raises(InputError, match=r"^the rows go to .*one, so"):
        streams.write_to(tmp_path / "two")


def test_a_query_whose_device_fails_holds_no_other_back(tmp_path: Path) -> None:
    streams = splitjoin.share(A, B, time="ts")
    with streams, streams.write_to(tmp_path, rows=1) as writer:
        good = streams.query(on="r.x = s.a", window="RANGE 5", name="good")
        bad = streams.query(on="r.x = s.a", window="RANGE 5", name="bad", device="golden")
        bad._pipeline.device_session.close()
        streams.push_r(R)
        streams.push_s(S)
        bad._pipeline.failure = DeviceError("it is gone")
        assert writer.write()
        with pytest.raises(DeviceError, match="the device failed"):
            bad.poll()
        bad.restart("cpu")
        streams.close()
        writer.run()
        assert good.finished
    assert rows(tmp_path, "good") == rows(tmp_path, "bad") == splitjoin.join(
        R, S, **(ON | {"on": "r.x = s.a"}), device="golden").table.to_pylist()


def test_rows_of_a_cut_without_its_state_are_written_by_the_next_commit(tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("inner", device="golden") as session:
        writer = session.write_to(tmp_path / "out")
        session.push_r(R)
        session.push_s(S)

        def failing(*_: Any) -> Snapshot:
            raise MemoryError("no room for the state")

        with monkeypatch.context() as patch:
            patch.setattr(Snapshot, "of", failing)
            with pytest.raises(MemoryError):
                writer.commit()
        assert epoch_files(tmp_path / "out") == []
        assert writer.commit()
        assert rows(tmp_path / "out") == wanted("inner")[:len(rows(tmp_path / "out"))] != []
        finish(session, writer)
    assert rows(tmp_path / "out") == wanted("inner")
