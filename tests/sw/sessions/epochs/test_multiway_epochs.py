"""Epochs of joins of several streams: every row in exactly one file, wherever runs end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from splitjoin.base.errors import DeviceError, InputError, SnapshotError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.sessions import MultiwayJoin
from splitjoin.sessions.epochs import epoch_files
from tests.support.multiway import combinations

from ....support.lagging import LaggingDevice
from ..test_multiway import SCHEMA, holds, made

STREAMS = {name: pa.table([[i // 3 for i in range(40)], [(i * k) % 4 for i in range(40)]], schema=SCHEMA)
           for k, name in enumerate("abc", 1)}


WANTED = [{f"{name}{column}": of[column] for column in "tv" for name, of in zip("abc", chosen, strict=True)}
          for chosen in combinations(STREAMS, holds, [3, 2, 2], "t")]


def written(folder: Path) -> list[Any]:
    """The rows of all epochs."""
    return [row for file in epoch_files(folder) for row in pa.parquet.read_table(file).to_pylist()]


def opened(lag: int | None = None, lengths: tuple[int, int, int] = (3, 2, 2)) -> MultiwayJoin:
    select = made(3, list(lengths))
    return MultiwayJoin(select, [GoldenDevice() if lag is None else LaggingDevice(lag) for _ in select.steps])


@pytest.mark.parametrize("failing", [0, 1])
def test_a_device_that_fails_loses_and_doubles_nothing(tmp_path: Path, failing: int) -> None:
    select = made(3, [3, 2, 2])
    devices: list[Any] = [GoldenDevice(), GoldenDevice()]
    devices[failing] = LaggingDevice(lag=2, fails=3)
    with MultiwayJoin(select, devices) as session, session.write_to(tmp_path) as writer:
        failed = 0
        for at in range(0, 40, 10):
            for name, stream in STREAMS.items():
                try:
                    session.push(name, stream.slice(at, 10))
                except DeviceError:  # what was pushed is kept
                    failed += 1
                    session.restart("golden")
        assert failed == 1
        writer.commit()
        assert writer.delivered == dict.fromkeys("abc", (40,))
        for name in STREAMS:
            session.finish(name)
        writer.run()
    assert written(tmp_path) == WANTED


def test_rows_that_go_to_a_folder_are_not_polled(tmp_path: Path) -> None:
    with opened() as session, session.write_to(tmp_path / "a") as writer:
        session.push("a", STREAMS["a"])
        for call in (session.poll, session.flush, lambda: session.restore(b""),
                     lambda: session.write_to(tmp_path / "b")):
            with pytest.raises(InputError, match=r"call write_to before the first push|so no poll, restore or"):
                call()
        assert writer.commit() and not writer.commit()
        assert writer.delivered["a"] == (40,) and writer.delivered["b"] == ()
    with opened(lengths=(9, 9, 9)) as session, pytest.raises(SnapshotError, match="another query"):
        session.write_to(tmp_path / "a")
