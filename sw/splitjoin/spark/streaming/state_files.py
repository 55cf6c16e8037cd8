"""State files: a version of each group's state in a file of its own, on any file system that Arrow reaches.

``<root>/<query id>/<name of the join>/<micro-batch>/<group>-of-<groups>.state``. A file appears whole or not at all,
and writing it again writes the same state, so a task may run twice, or in two places at once.

State files hold rows of the streams. In the file system of the machine they get mode 0600, and new folders 0700. The
umask can only take more away.
"""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from splitjoin.base import disk
from splitjoin.base.errors import InputError, SnapshotError, first_line

from .state_format import Version, header_bytes

#: The scheme of a URI. It has two characters at least, so that a drive of Windows ("C:") is none; "dbfs:/mnt" has one.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
#: File systems whose files appear when they are closed; on the others they are written beside and renamed.
_ATOMIC = {"s3", "gcs", "abfs", "mock"}
#: Bytes read for a header at first: most headers are shorter.
_HEAD = 4096


@dataclass(frozen=True)
class StateFiles:
    """The state files of one join in one streaming query.

    ``root``: a path or a URI that Arrow knows; ``query``: Spark's id of the query, which outlives restarts from its
    checkpoint; ``name``: the name of the join in the query.
    """

    root: str
    query: str
    name: str

    def path(self, batch: int, group: int, groups: int) -> str:
        """The path of a version below the root."""
        return f"{self.query}/{self.name}/{batch:09d}/{group}-of-{groups}.state"

    def where(self, batch: int, group: int, groups: int) -> str:
        """The place of a version, for messages."""
        return f"{self.root.rstrip('/')}/{self.path(batch, group, groups)}"

    def write(self, batch: int, group: int, groups: int, data: bytes) -> None:
        """Write a version."""
        write_file(self.root, self.path(batch, group, groups), data, private=True)

    def read(self, batch: int, group: int, groups: int) -> pa.Buffer:
        """The bytes of a version. Raises `SnapshotError` if it is not there."""
        files, base = _opened(self.root)
        try:
            with files.open_input_file(f"{base}/{self.path(batch, group, groups)}") as file:
                return file.read_buffer()
        except FileNotFoundError as error:
            raise self._missing(batch, group, groups) from error

    def header(self, batch: int, group: int, groups: int) -> Version:
        """A version without its tuples. Raises `SnapshotError` if it is not there."""
        files, base = _opened(self.root)
        try:
            with files.open_input_file(f"{base}/{self.path(batch, group, groups)}") as file:
                data = file.read(_HEAD)
                needed = header_bytes(data)
                if needed > len(data):
                    data += file.read(needed - len(data))
        except FileNotFoundError as error:
            raise self._missing(batch, group, groups) from error
        return Version.decode(data, self.where(batch, group, groups), None)

    def groups_before(self, batch: int, groups: int) -> int | None:
        """The number of groups of the state that micro-batch ``batch`` goes on from: ``groups`` if the micro-batch
        before has a state of so many, else of another number. None if there is no state at all.

        Raises `SnapshotError` if the micro-batch before has no state, or none that is whole.
        """
        held = self.held(batch - 1)
        whole = {n for _, n in held if all((g, n) in held for g in range(n))}
        if whole:
            return groups if groups in whole else max(whole)
        if not held and not any(n < batch for n in self._versions()):
            return None
        most = max((n for _, n in held), default=groups)
        folder = f"{self.root.rstrip('/')}/{self.query}/{self.name}/{batch - 1:09d}"
        raise SnapshotError(f"the state of micro-batch {batch - 1} is incomplete: {folder} holds "
                            f"{sum(n == most for _, n in held)} of {most} files; each micro-batch must be computed to "
                            f"its end, so a foreachBatch function must write, count or collect its whole DataFrame "
                            f"(take, first, show and isEmpty compute a part); mend the function and start with a new "
                            f"checkpoint, or restore the folder")

    def hot_before(self, batch: int, groups: int) -> frozenset[int]:
        """The hot slots of all groups before micro-batch ``batch``: the same for every task of it."""
        of = self.groups_before(batch, groups) if batch else None
        heads = (self.header(batch - 1, group, of or 0) for group in range(of or 0))
        return frozenset[int]().union(*(head.state.hot for head in heads))

    def held(self, batch: int) -> set[tuple[int, int]]:
        """The files of micro-batch ``batch``: group, and of how many."""
        return self._versions(f"/{batch:09d}").get(batch, set())

    def delete_unneeded(self, keep: int, groups: int) -> None:
        """Delete the files that no version from micro-batch ``keep`` on needs."""
        found = self._versions()
        if keep not in found or any((g, groups) not in found[keep] for g in range(groups)):
            return  # the first micro-batches with this number of groups
        needed = min(self.header(keep, g, groups).chain[0][0] for g in range(groups))
        files, base = _opened(self.root)
        for batch in found:
            if batch < needed:
                files.delete_dir(f"{base}/{self.query}/{self.name}/{batch:09d}")

    def _versions(self, below: str = "") -> dict[int, set[tuple[int, int]]]:
        """The micro-batches that have files in the folder ``below``, and these: group, and of how many."""
        files, base = _opened(self.root)
        folder = f"{base}/{self.query}/{self.name}{below}"
        found: dict[int, set[tuple[int, int]]] = {}
        for info in files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True)):
            name, _, kind = info.base_name.rpartition(".")
            if kind == "state" and info.type == fs.FileType.File:
                group, _, of = name.partition("-of-")
                found.setdefault(int(info.path.split("/")[-2]), set()).add((int(group), int(of)))
        return found

    def _missing(self, batch: int, group: int, groups: int) -> SnapshotError:
        return SnapshotError(f"the state of micro-batch {batch} is not at {self.where(batch, group, groups)}; the "
                             f"folder given with state=… must be the one that the query had so far, and all executors "
                             f"must reach it")


def check_root(root: str, argument: str) -> None:
    """Raise `InputError` unless ``root``, which was given as ``argument``, is a folder where files can be written."""
    if not isinstance(root, str) or not root:
        raise InputError(f"{argument} must be a path or a URI of a folder, such as 'file:///data/state' or "
                         f"'s3://bucket/state', not {root!r}")
    try:
        files, base = _opened(root)
    except InputError as error:
        raise InputError(f"{argument}: {error}{_instead(root, argument)}") from None
    probe = f"{base}/.splitjoin-{uuid.uuid4().hex}"
    try:
        if files.type_name == "local":
            disk.make_folder(Path(base), 0o777 if argument == "late_to" else 0o700)
        else:
            files.create_dir(base, recursive=True)
        with files.open_output_stream(probe) as out:
            out.write(b"")
        files.delete_file(probe)
    except OSError as error:
        raise InputError(f"{argument} must be a folder that the driver and all executors may write to, but nothing can "
                         f"be written to {root!r}: {first_line(error)}") from None


def _opened(root: str) -> tuple[fs.FileSystem, str]:
    """The file system of ``root``, and its path there."""
    if not _SCHEME.match(root):
        return fs.LocalFileSystem(), os.path.abspath(root)  # a path of the driver or an executor
    try:
        files, base = fs.FileSystem.from_uri(root)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(f"a folder must be a path or a URI of a file system that Arrow reaches (file, hdfs, s3, gs, "
                         f"abfs), but {root!r} is not: {first_line(error)}") from None  # whose text has the keys of it
    return files, base.rstrip("/")


def _instead(root: str, argument: str) -> str:
    """The end of the error for ``root``: the URI or path to give in its place if Spark knows its scheme and Arrow does
    not, else empty. ``argument``: the argument or setting that ``root`` comes from.
    """
    if root.startswith(("s3a://", "s3n://")):
        known = "s3" + root[3:]
    elif root.startswith("dbfs:"):
        known = "/dbfs/" + root[5:].lstrip("/")
    else:
        return ""
    if argument in ("state", "late_to"):
        return f"; write {known!r}"
    return f"; leave the setting as it is, and give state={known!r}"


def write_file(root: str, path: str, data: bytes, *, private: bool) -> None:
    """Write ``data`` to ``path`` below ``root``, whole or not at all, in place of what is there.

    ``private``: in the file system of the machine, the file and new folders are for the user alone (0600 and 0700);
    else the umask decides. Other file systems have rules of their own.
    """
    files, base = _opened(root)
    full = f"{base}/{path}"
    if files.type_name == "local":
        disk.make_folder(Path(full).parent, 0o700 if private else 0o777)
        with disk.replacing(Path(full), 0o600 if private else 0o666) as file:
            file.write(data)
        return
    files.create_dir(full.rpartition("/")[0], recursive=True)
    if files.type_name in _ATOMIC:
        with files.open_output_stream(full) as out:
            out.write(data)
        return
    part = f"{full}.{uuid.uuid4().hex}"
    with files.open_output_stream(part) as out:
        out.write(data)
    if files.get_file_info(full).type != fs.FileType.NotFound:
        files.delete_file(full)  # some file systems refuse to replace a file by a rename
    files.move(part, full)


def delete_file(root: str, path: str) -> None:
    """Delete the file ``path`` below ``root``, if it is there."""
    files, base = _opened(root)
    try:
        files.delete_file(f"{base}/{path}")
    except FileNotFoundError:
        return
