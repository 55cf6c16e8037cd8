"""`EpochsSubject`: a folder of epochs, written by sessions one after the other, whose rows are known beforehand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from splitjoin.base import threads
from splitjoin.base.errors import InputError
from splitjoin.sessions.epochs import DeliveredCounts, EpochSource, EpochWriter, drop_epochs, epoch_files
from splitjoin.sessions.epochs.folder import EpochFolder, read_manifest

#: A query's rows are the numbers of the tuples that its number divides.
_QUERIES = {"all": 1, "few": 4}


class _Waiting:
    """The rows of a query that wait."""

    lags = drained = False

    def __init__(self) -> None:
        self.rows: list[int] = []

    def found_rows(self) -> int:
        return len(self.rows)

    def take_found(self) -> tuple[pa.Table, Callable[[], None]]:
        taken, self.rows = self.rows, []

        def undo() -> None:
            self.rows = taken + self.rows

        return pa.table({"x": pa.array(taken, pa.int64())}), undo


class _Counting:
    """Streams whose tuples are 0, 1, …, with the rows of `_QUERIES`; their state is how many they have had."""

    def __init__(self) -> None:
        self.at = 0
        self.waiting = {name: _Waiting() for name in _QUERIES}
        self.counts = DeliveredCounts()
        self.push(0)

    def push(self, n: int) -> None:
        for i in range(self.at, self.at + n):
            for name, every in _QUERIES.items():
                if i % every == 0:
                    self.waiting[name].rows.append(i)
        self.at += n
        self.counts.add("r", 0, n)

    def restore(self, state: bytes) -> None:
        self.at = json.loads(state)

    @property
    def epochs(self) -> EpochSource:
        return EpochSource(threads.condition(), lambda: self.waiting, self.counts, lambda: self.at, lambda: False,
                           lambda: json.dumps(self.at).encode(), self.restore, lambda why: None, None, lambda: 0.0)


class EpochsSubject:
    """Sessions that write epochs, while others try the same folder and nested ones, and old epochs are dropped."""

    def __init__(self, root: Path, chance: random.Random):
        self._root, self._folder, self._chance = root, root / "deep" / "out", chance
        self._sure = 0  # epochs that a commit has promised
        self._dropped = 0  # epochs before this one may have been dropped
        self._seen: dict[tuple[str, str], list[int]] = {}  # the rows of each file that a reader has seen
        self._open: EpochWriter | None = None

    def live(self) -> None:
        """One process: a session that goes on, commits a few epochs or none, and sometimes ends in order."""
        session, writer = self._opened()
        for _ in range(self._chance.randint(0, 3)):
            session.push(self._chance.randint(0, 4))
            epochs = writer.epochs
            try:
                wrote = writer.commit()
                assert wrote == (writer.epochs > epochs)
                assert not any(query.rows for query in session.waiting.values())
            except (InputError, KeyboardInterrupt):
                pass
            self._promise(writer)
            self._count(session, writer)
            self._disturb(writer)
        if self._chance.random() < 0.5:
            writer.close()
            self._count(session, writer)

    def _count(self, session: _Counting, writer: EpochWriter) -> None:
        """Every row is in an epoch, or waits for one, or for a poll."""
        if writer.settled:
            assert read_manifest(self._folder).epochs == writer.epochs
            in_epochs = _delivered(self._folder)
            for name, every in _QUERIES.items():
                assert session.waiting[name].rows == [i for i in range(in_epochs, session.at) if i % every == 0]

    def end(self) -> None:
        """The end of a process, which lets its locks go."""
        if self._open is not None:
            self._open._folder.close()
            self._open = None

    def look(self) -> None:
        """A reader that comes at any time: whole epochs, of which one that was seen does not change."""
        manifest = read_manifest(self._folder)
        assert manifest.epochs >= self._sure
        for name, every in _QUERIES.items():
            files = self._kept_files(name)
            at: int | None = None
            for file in files:
                rows = _rows(file)
                assert self._seen.setdefault((name, file.name), rows) == rows
                assert at is None or rows[0] == at
                at = rows[-1] + every
                assert int(file.name[6:18]) < manifest.epochs
            assert at is None or at <= manifest.rows[name] * every
            if files and not self._dropped:
                assert _rows(files[0])[0] == 0

    def finish(self) -> None:
        """A session on a disk that is well: all rows are there once."""
        self.live()
        self.end()
        session, writer = self._opened()
        session.push(5)
        assert writer.commit()
        self._promise(writer)
        self.end()
        EpochFolder(self._folder).close()  # checks the rows
        self.look()
        names = {path.name for path in self._folder.iterdir() if not path.name.startswith(".splitjoin-")}
        assert names - {"_dropped.json"} == {"_lock", "_manifest.json", f"_state-{writer.epochs - 1:012}", *_QUERIES}
        for name, every in _QUERIES.items():
            found = [i for file in self._kept_files(name) for i in _rows(file)]
            wanted = range(0, session.at, every)
            assert found == list(wanted)[len(wanted) - len(found):]
            assert self._dropped or len(found) == len(wanted)
            assert not [one for one in (self._folder / name).iterdir() if one.name.startswith("_")]

    def _opened(self) -> tuple[_Counting, EpochWriter]:
        """A session that goes on from the last epoch."""
        session = _Counting()
        self._open = EpochWriter(session.epochs, self._folder, every=None, rows=None, delay=1e9)
        self._promise(self._open)
        assert session.at == _delivered(self._folder) == sum(session.counts.state()["r"])
        return session, self._open

    def _kept_files(self, query: str) -> list[Path]:
        """The files that were not dropped; a power cut may bring back some of the others."""
        return [file for file in epoch_files(self._folder, query) if int(file.name[6:18]) >= self._dropped]

    def _promise(self, writer: EpochWriter) -> None:
        assert writer.epochs >= self._sure
        self._sure = writer.epochs

    def _disturb(self, writer: EpochWriter) -> None:
        """Sometimes do in the same folder, or in nested ones, what others may try."""
        match self._chance.randint(0, 7):
            case 0:
                _refused(self._folder)
            case 1:
                _refused(self._folder / self._chance.choice(["all", "day1", "day1/deep"]))
            case 2:
                _refused(self._root)
            case 3:
                before = self._chance.randint(0, writer.epochs)
                self._dropped = max(self._dropped, before)
                with suppress(InputError, KeyboardInterrupt):
                    drop_epochs(self._folder, before)


def _refused(folder: Path) -> None:
    try:
        found = EpochFolder(folder)
    except (InputError, KeyboardInterrupt):
        return
    found.close()
    raise AssertionError(f"{folder} must be refused")


def _delivered(folder: Path) -> int:
    return sum(read_manifest(folder).delivered.get("r", ()))


def _rows(file: Path) -> list[int]:
    with pq.ParquetFile(file) as source:
        rows: list[int] = source.read(use_threads=False)["x"].to_pylist()
        return rows
