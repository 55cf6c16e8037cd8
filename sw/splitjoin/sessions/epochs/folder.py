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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from splitjoin.base import disk
from splitjoin.base.errors import InputError, first_line

from ..envelope import DamagedSnapshot
from .layout import (
    HIDDEN,
    LOCK,
    MANIFEST,
    STATE,
    Manifest,
    check_rows,
    epoch_files,
    folder_of,
    hidden_name,
    read_manifest,
    state_name,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["EpochFolder"]

#: The manifest before it has its name.
_NEW = "_manifest.new"


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
                if not (self.path / MANIFEST).exists():
                    self._claim()
            self.manifest, self._begun = Manifest(), True
            self.settle()
            check_rows(self.path, self.manifest)
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
                        raise InputError(f"{folder_of(self.path, name)} must not hold epochs that the manifest in "
                                         f"{self.path} does not count; move them away, or write to another folder")
                    if name in last:
                        about = {"epoch": n, "first_row": rows.get(name, 0), "frontier": frontier}
                        _write_table(folder_of(self.path, name) / hidden_name(n), table, about)
                    rows[name] = rows.get(name, 0) + len(table)
                with disk.created(self.path / state_name(n), 0o600) as file:  # it has columns that results leave out
                    file.write(state)
                for name in last:
                    if name:
                        disk.sync_folder(folder_of(self.path, name))
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
            disk.rename(self.path / _NEW, self.path / MANIFEST)  # from here on, the epoch is there
        with self._told(f"epoch {n} is in {self.path}, but may be lost if the power fails", "write again to make sure"):
            disk.sync_folder(self.path)
            self._finish(made)

    def close(self) -> None:
        """Let other processes write."""
        self._lock.release()

    def _claim(self) -> None:
        """Write a manifest without epochs, by which others see that epochs come here."""
        self._write_manifest(Manifest())
        disk.rename(self.path / _NEW, self.path / MANIFEST)
        try:
            _check_alone(self.path)  # again, as others may have come at the same time
        except InputError:
            disk.remove(self.path / MANIFEST)
            raise

    def _finish(self, manifest: Manifest) -> None:
        """Give the rows of the last epoch of ``manifest``, which is on the disk, their names, and drop what was needed
        before.
        """
        end = manifest.epochs
        for name in manifest.rows if manifest.last is None else manifest.last:
            folder = folder_of(self.path, name)
            hidden = ([folder / hidden_name(end - 1)] if manifest.last is not None else
                      [one for one, n in _hidden_files(folder) if n < end])
            for path in hidden:
                if path.exists():
                    disk.rename(path, path.with_name(path.name[1:]))
            disk.sync_folder(folder)
        if end > 1:
            with suppress(FileNotFoundError):
                disk.remove(self.path / state_name(end - 2))
        self.manifest, self._begun = manifest, False

    def _sweep(self, names: Iterable[str]) -> None:
        """Remove what no committed epoch needs from this folder and those of the queries ``names``."""
        end = self.manifest.epochs
        for name in names:
            for path, _ in _hidden_files(folder_of(self.path, name)):
                disk.remove(path)
        for path in sorted(self.path.iterdir()):
            found = STATE.fullmatch(path.name)
            if path.name == _NEW or (found and int(found[1]) != end - 1):
                disk.remove(path)

    def _write_manifest(self, manifest: Manifest) -> None:
        with disk.created(self.path / _NEW) as file:
            file.write(manifest.to_bytes())

    @property
    def _state(self) -> Path:
        return self.path / state_name(self.manifest.epochs - 1)

    @contextmanager
    def _told(self, what: str, then: str = "make it writable, and try again") -> Iterator[None]:
        """Within the block, raise `InputError` that begins with ``what`` for errors of the disk."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{what}: {first_line(error)}; {then}") from error


def _locked(path: Path) -> BaseFileLock:
    from filelock import FileLock, Timeout  # here, as it takes 20 ms to import

    lock = FileLock(path / LOCK, timeout=0)
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
        if (other / MANIFEST).exists():
            raise InputError(f"a folder of epochs must not lie in another one, but {other} is one, and {here} lies "
                             f"{'in' if other in here.parents else 'around'} it; write to a folder beside it")


def _hidden_files(folder: Path) -> list[tuple[Path, int]]:
    """The files of rows without the name of an epoch in the folder of a query, and the numbers of their epochs."""
    if not folder.is_dir():
        return []
    return [(path, int(found[1])) for path in sorted(folder.iterdir()) if (found := HIDDEN.fullmatch(path.name))]


def _write_table(path: Path, table: pa.Table, about: Mapping[str, Any]) -> None:
    if not path.parent.is_dir():
        disk.make_folder(path.parent)
    with disk.created(path) as file, pq.ParquetWriter(file, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"splitjoin.epoch": json.dumps(about)})
