"""The files of a folder of epochs: their names, the manifest, and the check that its rows are there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from splitjoin.base import disk
from splitjoin.base.errors import InputError, SnapshotError, first_line

__all__ = ["HIDDEN", "LOCK", "MANIFEST", "STATE", "Manifest", "check_rows", "drop_epochs", "epoch_files", "folder_of",
           "hidden_name", "json_bytes", "read_manifest", "state_name"]

_FORMAT = 1
MANIFEST, LOCK, _DROPPED = "_manifest.json", "_lock", "_dropped.json"
#: The names of rows that are no epoch yet, of epochs, and of states.
HIDDEN = re.compile(r"_epoch-(\d{12})\.parquet")
_VISIBLE = re.compile(r"epoch-(\d{12})\.parquet")
STATE = re.compile(r"_state-(\d{12})")


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
        return json_bytes(vars(self))


def json_bytes(values: Mapping[str, Any]) -> bytes:
    """A file of a folder of epochs with these ``values``."""
    return json.dumps({"format": _FORMAT, **values}).encode()


def read_manifest(folder: Path) -> Manifest:
    """The manifest in ``folder``; one without epochs if there is none. Raises `SnapshotError` if it is damaged."""
    found = _read(folder / MANIFEST)
    if found is None:
        return Manifest()
    try:
        made = Manifest(found["epochs"], found["rows"], found["delivered"], found["frontier"], found.get("last"))
        whole = (type(made.epochs) is int and isinstance(made.rows, dict) and isinstance(made.delivered, dict)
                 and all(type(n) is int for n in made.rows.values()) and isinstance(made.last, (list, type(None))))
    except KeyError:
        whole = False
    if not whole:
        raise _no_manifest(folder / MANIFEST)
    return made


def _read(path: Path) -> dict[str, Any] | None:
    """The contents of a file that `json_bytes` made; None if it is not there."""
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
    folder = folder_of(Path(path), query)
    return sorted(one for one in folder.iterdir() if _VISIBLE.fullmatch(one.name)) if folder.is_dir() else []


def folder_of(path: Path, query: str) -> Path:
    """The folder of a query, whose name may be any text."""
    if not query:
        return path
    name = quote(query, safe="")
    return path / (f"%{ord(name[0]):02X}{name[1:]}" if name[0] in "._" else name)


def hidden_name(epoch: int) -> str:
    """The name of the rows of an epoch that is not committed yet; without its "_", of one that is."""
    return f"_epoch-{epoch:012}.parquet"


def state_name(epoch: int) -> str:
    """The name of the state behind an epoch."""
    return f"_state-{epoch:012}"


def check_rows(folder: Path, manifest: Manifest) -> None:
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
            raise SnapshotError(f"{folder_of(folder, query)} must hold the {rows} rows{of} that {MANIFEST} counts, but "
                                f"those from row {at} on are in no file; restore the files from a copy. Old epochs "
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
            file.write(json_bytes({"rows": rows}))
        for file_ in (one for files in old.values() for one in files):
            disk.remove(file_)
    except OSError as error:
        raise InputError(f"epochs of {path} cannot be dropped: {first_line(error)}; call it again") from error
    return sum(map(len, old.values()))
