"""`EpochFolder`: a folder of epochs, each of which is there as a whole or not at all (decision 101).

What is in it:

- ``epoch-000000000000.parquet``, …: the rows, one file an epoch that has rows; those of several queries in a folder
  each. Their concatenation is the sequence of rows.
- ``_manifest.json``: how many epochs are committed, and what belongs to the last one. Its replacement commits an epoch.
- ``_state-000000000000``: the snapshot of the session behind the last epoch.
- ``_epoch-….parquet``, ``*.new``: files of an epoch that is being written. Readers of folders ignore names that begin
  with "_" or ".".
- ``_lock``: held by the process that writes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from splitjoin.base.errors import InputError, SnapshotError, first_line

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["EpochFolder", "Manifest", "epoch_files"]

_FORMAT = 1
_MANIFEST = "_manifest.json"
_FILE = re.compile(r"_epoch-(\d{12})\.parquet")
_VISIBLE = re.compile(r"epoch-(\d{12})\.parquet")
_STATE = re.compile(r"_state-(\d{12})")


@dataclass(frozen=True)
class Manifest:
    """What is committed.

    Attributes:
        epochs: How many epochs are committed; the next one has this number.
        rows: The rows in them, by the name of the query ("" for a session of one query).
        delivered: For each stream, the tuples that each of its sources has delivered to the state behind them.
        frontier: The event time in ticks below which no later row lies, or None.
    """

    epochs: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    delivered: Mapping[str, Sequence[int]] = field(default_factory=dict)
    frontier: int | None = None


class EpochFolder:
    """A folder of epochs, which this process alone writes until `close`. Opening it undoes what was not committed.

    Raises `InputError` if another process writes it or it cannot be written, `SnapshotError` for a damaged manifest.
    """

    def __init__(self, path: str | os.PathLike[str]):
        try:
            self.path = Path(path)
        except TypeError:
            raise InputError(f"epochs need the path of a folder, not {path!r}") from None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"epochs need a folder that can be written, but {self.path} cannot be made: "
                             f"{first_line(error)}") from None
        self._lock = _locked(self.path)
        try:
            self.manifest = self._read()
            self._recover(self.manifest.epochs)
        except BaseException:
            self._lock.release()
            raise

    def state(self) -> bytes | None:
        """The state behind the last epoch; None if there is none."""
        if not self.manifest.epochs:
            return None
        try:
            return self._state(self.manifest.epochs - 1).read_bytes()
        except OSError as error:
            raise SnapshotError(f"the state of epoch {self.manifest.epochs - 1} must be in {self.path}, but "
                                f"{first_line(error)}; restore the whole folder from a copy") from None

    def commit(self, tables: Mapping[str, pa.Table], state: bytes, *, delivered: Mapping[str, Sequence[int]],
               frontier: int | None) -> None:
        """Add an epoch: the rows of each query, and the state behind them. Nothing is added if this raises.

        Raises `InputError` if a file cannot be written.
        """
        n, rows = self.manifest.epochs, dict(self.manifest.rows)
        written: list[Path] = []
        try:
            for name, table in tables.items():
                if len(table):
                    about = {"epoch": n, "first_row": rows.get(name, 0), "frontier": frontier}
                    written.append(self._hidden(name, n))
                    _write_table(written[-1], table, about)
                rows[name] = rows.get(name, 0) + len(table)
            written.append(self._state(n))
            _write(written[-1], state, 0o600)  # it has columns that results leave out
            manifest = Manifest(n + 1, rows, {side: list(counts) for side, counts in delivered.items()}, frontier)
            written.append(self.path / f"{_MANIFEST}.new")
            _write(written[-1], json.dumps({"format": _FORMAT, **vars(manifest)}).encode())
            os.replace(written[-1], self.path / _MANIFEST)  # from here on, the epoch is there
        except (OSError, pa.ArrowException) as error:
            for path in written:
                with suppress(OSError):  # the next commit, or the next process, removes what is left
                    path.unlink()
            raise InputError(f"epoch {n} cannot be written to {self.path}: {first_line(error)}; its rows are kept, "
                             f"make room there and write again") from error
        _sync(self.path)
        self._recover(manifest.epochs)
        self.manifest = manifest

    def close(self) -> None:
        """Let other processes write."""
        self._lock.release()

    def _read(self) -> Manifest:
        try:
            text = (self.path / _MANIFEST).read_bytes()
        except FileNotFoundError:
            return Manifest()
        try:
            found: Any = json.loads(text)
            made = Manifest(found["epochs"], found["rows"], found["delivered"], found["frontier"])
            whole = (found["format"] == _FORMAT and type(made.epochs) is int and isinstance(made.rows, dict)
                     and isinstance(made.delivered, dict))
        except (ValueError, KeyError, TypeError, RecursionError):
            whole = False
        if not whole:
            raise SnapshotError(f"{self.path / _MANIFEST} must be a manifest of epochs of format {_FORMAT}, but is "
                                f"none; restore the whole folder from a copy, or write to another folder")
        return made

    def _recover(self, end: int) -> None:
        """Give the files of ``end`` committed epochs their names, and remove what belongs to no committed epoch."""
        for folder in [self.path, *(one for one in self.path.iterdir() if one.is_dir())]:
            for path in list(folder.iterdir()):
                if found := _FILE.fullmatch(path.name):
                    if int(found[1]) < end:
                        os.replace(path, path.with_name(path.name[1:]))
                        _sync(folder)
                    else:
                        path.unlink()
        for path in list(self.path.iterdir()):
            found = _STATE.fullmatch(path.name)
            if path.name == f"{_MANIFEST}.new" or (found and int(found[1]) != end - 1):
                path.unlink()

    def _hidden(self, name: str, n: int) -> Path:
        folder = _folder(self.path, name)
        folder.mkdir(exist_ok=True)
        return folder / f"_epoch-{n:012}.parquet"

    def _state(self, n: int) -> Path:
        return self.path / f"_state-{n:012}"


def _locked(path: Path) -> BaseFileLock:
    from filelock import FileLock, Timeout  # here, as it takes 20 ms to import

    lock = FileLock(path / "_lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"one process writes a folder of epochs at a time, but another one writes {path}; end that "
                         f"one, or write to another folder") from None
    except OSError as error:
        raise InputError(f"epochs need a folder that can be written, but {path} cannot: {first_line(error)}") from None
    return lock


def _write_table(path: Path, table: pa.Table, about: Mapping[str, Any]) -> None:
    with _created(path) as file, pq.ParquetWriter(file, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"splitjoin.epoch": json.dumps(about)})


def _write(path: Path, data: bytes, mode: int = 0o666) -> None:
    with _created(path, mode) as file:
        file.write(data)


@contextmanager
def _created(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that is on the disk when the block ends, not only in the system's memory."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Put the names of ``folder`` on the disk."""
    if os.name == "posix":  # Windows cannot open folders, and orders renames by itself
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def epoch_files(path: str | os.PathLike[str], query: str = "") -> list[Path]:
    """The files of the committed epochs in a folder, in order; of shared streams, those of one ``query``."""
    folder = _folder(Path(path), query)
    return sorted(one for one in folder.iterdir() if _VISIBLE.fullmatch(one.name)) if folder.is_dir() else []


def _folder(path: Path, query: str) -> Path:
    """The folder of a query, whose name may be any text."""
    if not query:
        return path
    name = quote(query, safe="")
    return path / (f"%{ord(name[0]):02X}{name[1:]}" if name[0] in "._" else name)
