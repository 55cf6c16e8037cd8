"""A server under trouble: batches that are no valid data, a disk that fails, a state that cannot be read."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from splitjoin.base.disk import using
from splitjoin.base.errors import InputError, SnapshotError
from splitjoin.server import JoinService, read_config
from splitjoin.server.flight import FlightServer
from splitjoin.sessions import SharedStreams
from splitjoin.sessions.epochs import drop_epochs, epoch_files

from ...support.patience import SOON, until
from ...support.simulated_disk import SimulatedDisk
from .clients import Server, act, config, connect, offers, orders, put, rows

_TEXTS = """\
listen = "127.0.0.1:0"
folder = "results"
[epochs]
delay = 0.1
[streams.orders]
schema = "columns.arrow"
time = "ts"
[streams.offers]
schema = "columns.arrow"
time = "ts"
[queries.same]
sql = "SELECT o.ts, f.name FROM orders o JOIN offers f ON o.name = f.name"
window = "RANGE 20"
"""
#: An "a" with an accent in Latin-1, which is no UTF-8.
_BAD = pa.array([b"a", b"\xe1"]).view(pa.string())


@pytest.mark.parametrize("column", [_BAD, pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), _BAD)])
def test_a_batch_that_is_no_valid_data_is_refused_before_anything_is_kept(tmp_path: Path, column: pa.Array) -> None:
    (tmp_path / "join.toml").write_text(_TEXTS)
    good = pa.record_batch({"ts": pa.array([1, 2]), "name": pa.array(["a", "\xe1"]).cast(column.type)})
    with pa.ipc.new_file(tmp_path / "columns.arrow", good.schema):
        pass
    with JoinService(read_config(tmp_path / "join.toml")) as service:
        server = FlightServer(service)
        with connect(server.port, tmp_path / "results") as client:
            with pytest.raises(fl.FlightError, match=r"a batch must be valid data of Arrow, but .*; it was not taken"):
                put(client, pa.record_batch({"ts": [1, 2], "name": column}), "orders")
            assert act(client, "position", stream="orders") == {"delivered": 0, "committed": 0}
            put(client, good, "orders")
            put(client, good, "offers")
            for stream in "orders", "offers":
                act(client, "finish", stream=stream)
            assert rows(client, "same", follow=True) == [{"ts": 1, "name": "a"}, {"ts": 2, "name": "\xe1"}]
        server.shutdown()


@pytest.mark.parametrize(("call", "fault"), [("rename", "late EIO"), ("sync folder", "EIO"), ("write", "ENOSPC")])
def test_trouble_with_the_disk_is_told_and_ends(tmp_path: Path, call: str, fault: str) -> None:
    disk, lines = SimulatedDisk(tmp_path / "disk", random.Random(0)), list[str]()
    with using(disk), JoinService(read_config(config(disk.root, more="")), lines.append) as service:
        disk.faults = {(call, n): fault for n in range(1, 10_000)}
        service.source("orders", "main").push(orders(0, 50))
        service.source("offers", "main").push(offers(0, 50))
        until(lambda: service.status()["trouble"])
        assert service.position("orders", "main")["committed"] == 0
        if call == "rename":  # the rows are in an epoch or not
            with pytest.raises(InputError, match="statements wait until it is sure which rows are in epochs: epoch 0"):
                service.tables()
        assert "power fails" in lines[0] or "cannot be written" in lines[0] or "or not" in lines[0]
        disk.faults = {}
        service.finish("orders")
        service.finish("offers")
        found = [row for batch, _ in service.rows("near") for row in batch.to_pylist()]
        assert service.status()["trouble"] is None
        assert lines[-1] == "epochs are written again"
        assert service.position("orders", "main") == {"delivered": 50, "committed": 50}
    with using(disk), JoinService(read_config(config(disk.root)), lines.append) as service:
        last = epoch_files(disk.root / "results", "near")[-1]
        shutil.copy(last, last.with_name(f"epoch-{service.epochs():012}.parquet"))  # as while an epoch is written
        assert [row for batch, _ in service.rows("near", follow=False) for row in batch.to_pylist()] == found
        assert found


def test_statements_wait_while_an_epoch_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JoinService(read_config(config(tmp_path)), lambda line: None) as service:
        inside, go, done = Event(), Event(), list[str]()

        def write() -> bool:
            inside.set()
            go.wait(SOON)
            done.append("epoch")
            return False

        def ask() -> None:
            service.tables()
            done.append("statement")

        monkeypatch.setattr(service._writer, "write", write)
        inside.wait(SOON)
        asking = Thread(target=ask)
        asking.start()
        asking.join(0.5)  # if it does not wait, it ends now
        go.set()
        asking.join(60)
        assert done[0] == "epoch"
        assert "statement" in done


def test_a_fault_of_the_epoch_thread_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list[str]()
    with JoinService(read_config(config(tmp_path)), lines.append) as service:
        def fails() -> Any:
            raise KeyError("x")

        with monkeypatch.context() as patch:
            patch.setattr(service._writer._folder, "settle", fails)
            service.source("orders", "main").push(orders(0, 50))
            until(lambda: service.status()["trouble"])
            assert service.status()["trouble"] == "epochs cannot be written: KeyError: 'x'"
            assert "Traceback" in lines[0]
        until(lambda: service.status()["trouble"] is None)


@pytest.mark.parametrize("function", ["ready_rows", "cut", "delivered", "wait_for_work"])
def test_the_thread_of_epochs_begins_anew_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                           function: str) -> None:
    """Meanwhile puts are refused, and the status tells why."""
    def put_all(first: int, end: int) -> None:
        for stream, made in ("orders", orders), ("offers", offers):
            service.source(stream, "main").push(made(first, end))
            service.release(stream, "main")

    def fails(*_: object) -> None:
        raise SystemExit("a bad day")

    lines = list[str]()
    with JoinService(read_config(config(tmp_path)), lines.append) as service:
        put_all(0, 50)
        with monkeypatch.context() as patch:
            patch.setattr(type(service._writer._of), function, fails)
            until(lambda: service.status()["deaths"] > 1)
            assert service.status()["trouble"] == ("the thread that writes epochs died, and begins anew: SystemExit: "
                                                   "a bad day")
            assert "epochs are written again" not in lines  # not between two deaths, either
            with pytest.raises(InputError, match="the server takes no tuples now, as the thread that writes epochs "):
                service.source("orders", "main")
        until(lambda: service.status()["trouble"] is None)
        put_all(50, 90)
        service.finish("orders")
        service.finish("offers")
        found = [row for batch, _ in service.rows("near") for row in batch.to_pylist()]
        assert service.position("orders", "main") == {"delivered": 90, "committed": 90}
    (tmp_path / "other").mkdir()
    with JoinService(read_config(config(tmp_path / "other")), lambda line: None) as service:
        put_all(0, 90)
        service.finish("orders")
        service.finish("offers")
        assert [row for batch, _ in service.rows("near") for row in batch.to_pylist()] == found


def test_epochs_that_are_dropped_while_they_are_read(tmp_path: Path) -> None:
    with JoinService(read_config(config(tmp_path)), lambda line: None) as service:
        sources = service.source("orders", "main"), service.source("offers", "main")
        for first in 0, 50:
            for source, made in zip(sources, (orders, offers), strict=True):
                source.push(made(first, first + 50))
            until(lambda end=first + 50: service.position("offers", "main")["committed"] == end)
        reading = service.rows("near", follow=False)
        next(reading)
        assert drop_epochs(service.config.folder, service.epochs()) > 1
        with pytest.raises(InputError, match=r"^epoch \d+ of the query 'near' must be there .*, but was dropped mean"):
            next(reading)


def test_heartbeats_of_streams_by_days(tmp_path: Path) -> None:
    by_days = _TEXTS.replace('"columns.arrow"', '"ts:date, name:string"').replace("RANGE 20", "RANGE 20 DAYS")
    (tmp_path / "join.toml").write_text(by_days)
    with JoinService(read_config(tmp_path / "join.toml"), lambda line: None) as service:
        for stream in "orders", "offers":
            service.heartbeat(stream, 20_000)
        with pytest.raises(InputError, match=r"a whole number in the unit of orders\.ts, not 1099511627776"):
            service.heartbeat("orders", 2**40)


def test_a_state_that_cannot_be_read_is_set_aside_on_demand(tmp_path: Path) -> None:
    path = config(tmp_path)
    with JoinService(read_config(path), lambda line: None) as service:
        service.source("orders", "main").push(orders(0, 50))
        service.source("offers", "main").push(offers(0, 50))
    (state,) = (tmp_path / "results").glob("_state-*")
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(SnapshotError, match=r"lose the windows alone: .* --set-aside of splitjoin serve"):
        JoinService(read_config(path), lambda line: None)
    with Server(path, "--set-aside") as server, server.client() as client:
        assert f"was set aside as {tmp_path / 'results' / '_damaged_state-'}" in server.log()
        assert act(client, "position", stream="orders") == {"delivered": 50, "committed": 50}
        before = rows(client, "near")
        put(client, orders(50, 90), "orders", **{"from": 50})
        put(client, offers(50, 90), "offers", **{"from": 50})
        for stream in "orders", "offers":
            act(client, "finish", stream=stream)
        found = rows(client, "near", follow=True)
        assert before
        assert found[:len(before)] == before
        assert found[len(before):]
        assert all(row["ts"] >= 50 for row in found[len(before):])


def test_no_more_is_committed_than_delivered_whatever_comes_while_a_client_asks(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, asked = SharedStreams.delivered, list[None]()

    with JoinService(read_config(config(tmp_path, more=""))) as service:
        def delivered(streams: SharedStreams) -> Any:
            """The number of tuples delivered before further ones came and were committed."""
            found = given.fget(streams)  # type: ignore[attr-defined]  # a property has it
            if not asked:
                asked.append(None)
                service.source("orders", "main").push(orders(0, 50))
                service.source("offers", "main").push(offers(0, 50))
                until(lambda: service.position("orders", "main")["committed"] == 50)
            return found

        monkeypatch.setattr(SharedStreams, "delivered", property(delivered))
        at = service.position("orders", "main")
        assert asked
        assert at["committed"] <= at["delivered"]


def test_a_put_that_has_begun_ends_once_the_server_stops(tmp_path: Path) -> None:
    """Else its tuples would be taken and in no epoch."""
    with JoinService(read_config(config(tmp_path)), lambda line: None) as service:
        server = FlightServer(service)
        with connect(server.port, tmp_path / "results") as client:
            command = fl.FlightDescriptor.for_command(b'{"stream": "orders", "acknowledge": true}')
            writer, reader = client.do_put(command, orders(0, 5).schema)
            writer.write_batch(orders(0, 5))
            reader.read()
            service._stopping = True  # what `stop` does first
            writer.write_batch(orders(5, 9))
            with pytest.raises(fl.FlightError, match="the server stops and takes no more tuples"):
                writer.close()
            assert act(client, "position", stream="orders")["delivered"] == 5
        server.shutdown()
