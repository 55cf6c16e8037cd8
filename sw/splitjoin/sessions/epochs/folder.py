"""`EpochFolder`: a folder of epochs, each of which is there as a whole or not at all (decisions 101 and 133).

What is in it:

- ``epoch-000000000000.parquet``, …: the rows, one file an epoch that has rows; those of several queries in a folder
  each. Their concatenation is the sequence of rows.
- ``_manifest.json``: how many epochs are committed, and what belongs to the last one. Its replacement commits an epoch.
- ``_state-000000000000``: the snapshot of the session behind the last epoch.
- ``_epoch-….parquet``, ``_manifest.new``: files of an epoch that is being written. Readers of folders ignore names that
  begin with "_" or ".".
- ``_dropped.json``: what `drop_epochs` has removed, if it has.
- ``_damaged_state-…``: a state that could not be read, and was set aside.
- ``_lock``: held by the process that writes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from splitjoin.base import disk
from splitjoin.base.errors import InputError, SnapshotError, first_line

from ..envelope import DamagedSnapshot

if TYPE_CHECKING:
    from filelock import BaseFileLock

_FORMAT = 1
_MANIFEST, _LOCK, _DROPPED = "_manifest.json", "_lock", "_dropped.json"
#: The names of rows that are no epoch yet, of epochs, and of states.
_HIDDEN = re.compile(r"_epoch-(\d{12})\.parquet")
_VISIBLE = re.compile(r"epoch-(\d{12})\.parquet")
_STATE = re.compile(r"_state-(\d{12})")
#: The manifest before it has its name.
_NEW = "_manifest.new"


@dataclass(frozen=True)
class Manifest:
    """The committed epochs.

    Attributes:
        epochs: How many epochs are committed; the next one has this number.
        rows: The rows in them, by the name of the query ("" for a session of one query).
        delivered: For each stream, the tuples that each of its sources has delivered to the state behind them.
        frontier: The event time in ticks below which no later row lies, or None.
        last: The queries that have rows in the last epoch; None in a manifest of an early version.
    """

    epochs: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    delivered: Mapping[str, Sequence[int]] = field(default_factory=dict)
    frontier: int | None = None
    last: Sequence[str] | None = ()

    def to_bytes(self) -> bytes:
        """The manifest as JSON."""
        return _json_bytes(vars(self))


class EpochFolder:
    """A folder of epochs, which this process alone writes until `close`. Opening it undoes what was not committed.

    Attributes:
        path: The folder.
        manifest: The epochs that are committed for good: they outlast a power cut.

    Raises `InputError` if another process writes it, it cannot be written, or it lies in another folder of epochs or
    around one; `SnapshotError` for a damaged manifest, and for rows that are in no file.
    """

    def __init__(self, path: str | os.PathLike[str]):
        try:
            self.path = Path(path)
        except TypeError:
            raise InputError(f"epochs need the path of a folder, not {path!r}") from None
        _check_alone(self.path)
        try:
            disk.make_folder(self.path)
        except OSError as error:
            raise InputError(f"epochs need a folder that can be written, but {self.path} cannot be made: "
                             f"{first_line(error)}") from None
        self._lock = _locked(self.path)
        try:
            with self._told(f"{self.path} cannot be opened for epochs"):
                if not (self.path / _MANIFEST).exists():
                    self._claim()
            self.manifest, self._begun = Manifest(), True
            self.settle()
            _check_rows(self.path, self.manifest)
        except BaseException:
            self._lock.release()
            raise

    @property
    def settled(self) -> bool:
        """False after a `commit` that raised where its epoch may count already, until `settle` has found out."""
        return not self._begun

    def settle(self) -> None:
        """Make sure of an epoch whose commit was cut short: then it is committed for good, or not there at all.

        Raises `InputError` while the disk does not let it.
        """
        if not self._begun:
            return
        with self._told(f"{self.path} does not tell which epochs it has"):
            found = read_manifest(self.path)
            disk.sync_folder(self.path)
            self._finish(found)
        with suppress(OSError):  # what is left of epochs that were not committed is in nobody's way
            self._sweep(found.rows)

    def state(self) -> bytes | None:
        """The state behind the last epoch; None if there is none. Raises `SnapshotError` if it cannot be read."""
        if not self.manifest.epochs:
            return None
        try:
            return self._state.read_bytes()
        except OSError as error:
            raise DamagedSnapshot(f"it cannot be read: {first_line(error)}") from None

    def set_aside(self) -> Path:
        """Give the state behind the last epoch another name, by which nobody goes on from it; that name."""
        aside = self.path / f"_damaged{self._state.name}"
        with self._told(f"the state in {self.path} cannot be set aside"):
            if self._state.exists():
                disk.rename(self._state, aside)
                disk.sync_folder(self.path)
        return aside

    def commit(self, tables: Mapping[str, pa.Table], state: bytes, *, delivered: Mapping[str, Sequence[int]],
               frontier: int | None) -> None:
        """Add an epoch: the rows of each query, and the state behind them. An earlier one is settled before.

        Raises `InputError` if the disk does not let it. Then nothing was added if `settled` is true; else the epoch may
        be there, and may be lost in a power cut, until `settle` has returned.
        """
        self.settle()
        n, rows = self.manifest.epochs, dict(self.manifest.rows)
        last = [name for name, table in tables.items() if len(table)]
        try:
            with self._told(f"epoch {n} cannot be written to {self.path}", "its rows are kept, make room there and "
                                                                           "write again"):
                for name, table in tables.items():
                    if name not in rows and epoch_files(self.path, name):
                        raise InputError(f"{_folder_of(self.path, name)} must not hold epochs that the manifest in "
                                         f"{self.path} does not count; move them away, or write to another folder")
                    if name in last:
                        about = {"epoch": n, "first_row": rows.get(name, 0), "frontier": frontier}
                        _write_table(_folder_of(self.path, name) / hidden_name(n), table, about)
                    rows[name] = rows.get(name, 0) + len(table)
                with disk.created(self.path / _state_name(n), 0o600) as file:  # it has columns that results leave out
                    file.write(state)
                for name in last:
                    if name:
                        disk.sync_folder(_folder_of(self.path, name))
                disk.sync_folder(self.path)
                made = Manifest(n + 1, rows, {side: list(counts) for side, counts in delivered.items()}, frontier, last)
                self._write_manifest(made)
        except BaseException:
            with suppress(OSError):
                self._sweep({**rows, **dict.fromkeys(tables)})
            raise
        self._begun = True
        with self._told(f"epoch {n} may be in {self.path} or not", "its rows are written once in any case, write again "
                                                                   "to make sure"):
            disk.rename(self.path / _NEW, self.path / _MANIFEST)  # from here on, the epoch is there
        with self._told(f"epoch {n} is in {self.path}, but may be lost if the power fails", "write again to make sure"):
            disk.sync_folder(self.path)
            self._finish(made)

    def close(self) -> None:
        """Let other processes write."""
        self._lock.release()

    def _claim(self) -> None:
        """Write a manifest without epochs, by which others see that epochs come here."""
        self._write_manifest(Manifest())
        disk.rename(self.path / _NEW, self.path / _MANIFEST)
        try:
            _check_alone(self.path)  # again, as others may have come at the same time
        except InputError:
            disk.remove(self.path / _MANIFEST)
            raise

    def _finish(self, manifest: Manifest) -> None:
        """Give the rows of the last epoch of ``manifest``, which is on the disk, their names, and drop what was needed
        before.
        """
        end = manifest.epochs
        for name in manifest.rows if manifest.last is None else manifest.last:
            folder = _folder_of(self.path, name)
            hidden = ([folder / hidden_name(end - 1)] if manifest.last is not None else
                      [one for one, n in _hidden_files(folder) if n < end])
            for path in hidden:
                if path.exists():
                    disk.rename(path, path.with_name(path.name[1:]))
            disk.sync_folder(folder)
        if end > 1:
            with suppress(FileNotFoundError):
                disk.remove(self.path / _state_name(end - 2))
        self.manifest, self._begun = manifest, False

    def _sweep(self, names: Iterable[str]) -> None:
        """Remove what no committed epoch needs from this folder and those of the queries ``names``."""
        end = self.manifest.epochs
        for name in names:
            for path, _ in _hidden_files(_folder_of(self.path, name)):
                disk.remove(path)
        for path in sorted(self.path.iterdir()):
            found = _STATE.fullmatch(path.name)
            if path.name == _NEW or (found and int(found[1]) != end - 1):
                disk.remove(path)

    def _write_manifest(self, manifest: Manifest) -> None:
        with disk.created(self.path / _NEW) as file:
            file.write(manifest.to_bytes())

    @property
    def _state(self) -> Path:
        return self.path / _state_name(self.manifest.epochs - 1)

    @contextmanager
    def _told(self, what: str, then: str = "make it writable, and try again") -> Iterator[None]:
        """Within the block, raise `InputError` that begins with ``what`` for errors of the disk."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{what}: {first_line(error)}; {then}") from error


def _json_bytes(values: Mapping[str, Any]) -> bytes:
    """A file of a folder of epochs with these ``values``."""
    return json.dumps({"format": _FORMAT, **values}).encode()


def read_manifest(folder: Path) -> Manifest:
    """The manifest in ``folder``; one without epochs if there is none. Raises `SnapshotError` if it is damaged."""
    found = _read(folder / _MANIFEST)
    if found is None:
        return Manifest()
    try:
        made = Manifest(found["epochs"], found["rows"], found["delivered"], found["frontier"], found.get("last"))
        whole = (type(made.epochs) is int and isinstance(made.rows, dict) and isinstance(made.delivered, dict)
                 and all(type(n) is int for n in made.rows.values()) and isinstance(made.last, (list, type(None))))
    except KeyError:
        whole = False
    if not whole:
        raise _no_manifest(folder / _MANIFEST)
    return made


def _read(path: Path) -> dict[str, Any] | None:
    """The contents of a file that `_json_bytes` made; None if it is not there."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise _no_manifest(path)
    return found


def _no_manifest(path: Path) -> SnapshotError:
    return SnapshotError(f"{path} must be a manifest of epochs of format {_FORMAT}, but is none; restore the whole "
                         f"folder from a copy, or write to another folder")


def epoch_files(path: str | os.PathLike[str], query: str = "") -> list[Path]:
    """The files of the committed epochs in a folder, in order; of shared streams, those of one ``query``."""
    folder = _folder_of(Path(path), query)
    return sorted(one for one in folder.iterdir() if _VISIBLE.fullmatch(one.name)) if folder.is_dir() else []


def _folder_of(path: Path, query: str) -> Path:
    """The folder of a query, whose name may be any text."""
    if not query:
        return path
    name = quote(query, safe="")
    return path / (f"%{ord(name[0]):02X}{name[1:]}" if name[0] in "._" else name)


def hidden_name(epoch: int) -> str:
    """The name of the rows of an epoch that is not committed yet; without its "_", of one that is."""
    return f"_epoch-{epoch:012}.parquet"


def _state_name(epoch: int) -> str:
    """The name of the state behind an epoch."""
    return f"_state-{epoch:012}"


def _check_rows(folder: Path, manifest: Manifest) -> None:
    """Raise `SnapshotError` unless the files in ``folder`` have the rows of ``manifest``, but for those dropped."""
    dropped = _dropped(folder)
    for query, rows in manifest.rows.items():
        at = dropped.get(query, 0)
        for file in epoch_files(folder, query):
            first, end = _extent(file)
            if first > at:
                break
            at = max(at, end)
        if at != rows:
            of = f" of the query {query!r}" if query else ""
            raise SnapshotError(f"{_folder_of(folder, query)} must hold the {rows} rows{of} that {_MANIFEST} counts, "
                                f"but those from row {at} on are in no file; restore the files from a copy. Old epochs "
                                f"are removed by splitjoin.drop_epochs, which notes them")


def _extent(file: Path) -> tuple[int, int]:
    """The place of the first row of an epoch's file in the rows of its query, and that behind its last row."""
    try:
        found = pq.read_metadata(file)
        first = int(json.loads(found.metadata[b"splitjoin.epoch"])["first_row"])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"{file} must be a file of an epoch, but cannot be read ({first_line(error)}); restore it "
                            f"from a copy") from None
    return first, first + int(found.num_rows)


def _dropped(folder: Path) -> dict[str, int]:
    """The rows of each query that `drop_epochs` has removed."""
    found = _read(folder / _DROPPED) or {"rows": {}}
    if not isinstance(found.get("rows"), dict) or not all(type(n) is int for n in found["rows"].values()):
        raise _no_manifest(folder / _DROPPED)
    return dict(found["rows"])


def drop_epochs(folder: str | os.PathLike[str], before: int) -> int:
    """Remove the rows of the epochs before number ``before`` from a folder that `StreamJoin.write_to` fills, also while
    it does. Returns the number of files. Rows that go without it count as lost when the folder is opened again.

    Raises `InputError` for epochs that are not committed, and where files cannot be removed.
    """
    path = Path(folder)
    manifest, rows = read_manifest(path), _dropped(path)
    if type(before) is not int or not 0 <= before <= manifest.epochs:
        raise InputError(f"epochs before a number from 0 to {manifest.epochs}, which are committed, can be dropped, "
                         f"not those before {before!r}")
    old = {query: [file for file in epoch_files(path, query) if int(file.name[6:18]) < before]
           for query in manifest.rows}
    for query, files in old.items():
        if files:
            rows[query] = max(rows.get(query, 0), _extent(files[-1])[1])
    try:
        with disk.replacing(path / _DROPPED) as file:
            file.write(_json_bytes({"rows": rows}))
        for file_ in (one for files in old.values() for one in files):
            disk.remove(file_)
    except OSError as error:
        raise InputError(f"epochs of {path} cannot be dropped: {first_line(error)}; call it again") from error
    return sum(map(len, old.values()))


def _locked(path: Path) -> BaseFileLock:
    from filelock import FileLock, Timeout  # here, as it takes 20 ms to import

    lock = FileLock(path / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"one process writes a folder of epochs at a time, but another one writes {path}; end that "
                         f"one, or write to another folder") from None
    except OSError as error:
        raise InputError(f"epochs need a folder that can be written, but {path} cannot: {first_line(error)}") from None
    return lock


def _check_alone(path: Path) -> None:
    """Raise `InputError` if a folder above or below ``path`` has epochs of its own."""
    here = Path(os.path.realpath(path))
    others = [*here.parents, *(Path(at) for at, _, _ in os.walk(here) if at != str(here))]
    for other in others:
        if (other / _MANIFEST).exists():
            raise InputError(f"a folder of epochs must not lie in another one, but {other} is one, and {here} lies "
                             f"{'in' if other in here.parents else 'around'} it; write to a folder beside it")


def _hidden_files(folder: Path) -> list[tuple[Path, int]]:
    """The files of rows without the name of an epoch in the folder of a query, and the numbers of their epochs."""
    if not folder.is_dir():
        return []
    return [(path, int(found[1])) for path in sorted(folder.iterdir()) if (found := _HIDDEN.fullmatch(path.name))]


def _write_table(path: Path, table: pa.Table, about: Mapping[str, Any]) -> None:
    if not path.parent.is_dir():
        disk.make_folder(path.parent)
    with disk.created(path) as file, pq.ParquetWriter(file, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"splitjoin.epoch": json.dumps(about)})
