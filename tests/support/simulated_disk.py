"""A disk that fails at chosen calls, and at a power cut forgets what was not synced: beneath `splitjoin.base.disk`."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from splitjoin.base.disk import Disk

T = TypeVar("T")

#: What may happen at a call. "end": the process ends. "stop": a signal's handler raises. A word with "late": when the
#: call has had its effect. "short": a write takes a part of its bytes.
FAULTS = ("end", "late end", "EIO", "late EIO", "ENOSPC", "stop", "late stop", "short")


class Ended(BaseException):
    """The process has ended, as by kill -9: none of its further calls has an effect."""


@dataclass
class _File:
    """A file. ``durable``: the content that a power cut leaves for sure; ``data``: the one that readers see; ``lost``:
    a sync has failed, after which none has an effect.
    """

    durable: bytes = b""
    data: bytes = b""
    lost: bool = False

    def after_cut(self, chance: random.Random) -> bytes:
        """One of the contents that a power cut may leave: the old, the new, or a new one of which some is zeros or
        missing.
        """
        if self.durable == self.data:
            return self.data
        end = chance.randint(0, len(self.data))
        return chance.choice([self.durable, self.data, self.data[:end], self.data[:end] + bytes(len(self.data) - end)])


@dataclass
class _Folder:
    """A folder. ``durable``: the names that are on the disk; ``pending``: changes since, each whole or not at all."""

    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    names: dict[str, _File | _Folder] = field(default_factory=dict)
    pending: list[dict[str, _File | _Folder | None]] = field(default_factory=list)

    def change(self, names: Mapping[str, _File | _Folder | None]) -> None:
        """Give, and with None take away, names."""
        self.pending.append(dict(names))
        _apply(self.names, names)

    def sync(self) -> None:
        """Put the names on the disk."""
        self.durable, self.pending = dict(self.names), []

    def after_cut(self, chance: random.Random) -> dict[str, _File | _Folder]:
        """One of the sets of names that a power cut may leave."""
        kept, found = chance.choice([0.0, 0.5, 1.0, None]), dict(self.durable)
        for n, names in enumerate(self.pending, 1):
            # None: the last change alone, as systems write them in any order.
            if n == len(self.pending) if kept is None else chance.random() < kept:
                _apply(found, names)
        return found


def _apply(to: dict[str, _File | _Folder], names: Mapping[str, _File | _Folder | None]) -> None:
    for name, node in names.items():
        if node is None:
            to.pop(name, None)
        else:
            to[name] = node


class SimulatedDisk(Disk):
    """A disk in the folder ``root``, where readers find its files.

    It also knows, for each file and folder, what is on the disk and what only in the memory of the system. Unsynced
    content may be lost or torn by `cut_power`, and unsynced names may be lost one by one. After a sync of a file that
    failed, content may be lost for good, although the next sync succeeds. Files that others made there, such as
    compilers, count as unsynced.

    Attributes:
        root: The folder.
        faults: What happens, by the number of the call, from 1, or by its name and its number among those of the name.
        calls: The calls so far, with their names, those of files, and the faults that came there.
        ended: True if the process has ended, after which none of its calls has an effect.
    """

    def __init__(self, root: Path, chance: random.Random):
        self.root, self._chance = root, chance
        self.faults: Mapping[int | tuple[str, int], str] = {}
        self._counts = Counter[str]()
        self.calls: list[str] = []
        self._tree = _Folder()
        self._handles: dict[int, _File] = {}
        self.ended = False
        root.mkdir()

    def restart(self) -> None:
        """Begin another process: it sees what the last one saw, and has none of its files open."""
        for handle in self._handles:
            os.close(handle)
        self._handles, self.ended = {}, False
        self.calls, self.faults, self._counts = [], {}, Counter()

    def cut_power(self) -> None:
        """Leave what a power cut leaves. `restart` is due before."""
        assert not self._handles
        self._adopt(self.root, self._tree)
        for path in list(self.root.iterdir()):
            (shutil.rmtree if path.is_dir() else os.unlink)(path)
        self._tree = self._made_anew(self._tree, self.root)

    def open(self, path: Path, mode: int) -> int:
        def act() -> int:
            handle = super(SimulatedDisk, self).open(path, mode)
            self._handles[handle] = file = _File()
            self._parent(path).change({path.name: file})
            return handle

        return self._call("open", path, act)

    def open_nameless(self, folder: Path) -> int | None:
        def act() -> int | None:
            handle = super(SimulatedDisk, self).open_nameless(folder) if self._chance.random() < 0.5 else None
            if handle is not None:
                self._handles[handle] = _File()
            return handle

        try:
            return self._call("open", folder, act)
        except OSError:
            return None

    def link(self, handle: int, path: Path) -> None:
        def act() -> None:
            super(SimulatedDisk, self).link(handle, path)
            self._parent(path).change({path.name: self._handles[handle]})

        self._call("link", path, act)

    def write(self, handle: int, data: memoryview) -> int:
        some = self._chance.randint(1, len(data))

        def act() -> int:
            part = data[:some] if self.calls[-1].endswith(" short") else data
            self._handles[handle].data += bytes(part)
            return super(SimulatedDisk, self).write(handle, part)

        return self._call("write", self.root, act)

    def chmod(self, handle: int, mode: int) -> None:
        self._call("chmod", self.root, lambda: super(SimulatedDisk, self).chmod(handle, mode))

    def sync(self, handle: int) -> None:
        self._sync_content(self.root, self._handles[handle])

    def sync_file(self, path: Path) -> None:
        found = self._at(path)
        assert isinstance(found, _File)
        self._sync_content(path, found)

    def sync_folder(self, folder: Path) -> None:
        self._call("sync folder", folder, self._folder(folder).sync)

    def close(self, handle: int) -> None:
        def act() -> None:
            del self._handles[handle]
            super(SimulatedDisk, self).close(handle)

        self._call("close", self.root, act)

    def rename(self, path: Path, target: Path) -> None:
        def act() -> None:
            assert path.parent == target.parent
            node = self._at(path)
            super(SimulatedDisk, self).rename(path, target)
            self._parent(path).change({path.name: None, target.name: node})

        self._call("rename", target, act)

    def remove(self, path: Path) -> None:
        def act() -> None:
            super(SimulatedDisk, self).remove(path)
            self._parent(path).change({path.name: None})

        self._call("remove", path, act)

    def make_folder(self, path: Path, mode: int) -> None:
        def act() -> None:
            super(SimulatedDisk, self).make_folder(path, mode)
            self._parent(path).change({path.name: _Folder()})

        self._call("make folder", path, act)

    def _sync_content(self, path: Path, file: _File) -> None:
        def act() -> None:
            if not file.lost:
                file.durable = file.data

        try:
            self._call("sync", path, act)
        except OSError:
            file.lost = self._chance.random() < 0.5
            raise

    def _call(self, name: str, path: Path, act: Callable[[], T]) -> T:
        if self.ended:
            raise Ended
        self._counts[name] += 1
        word = self.faults.get(len(self.calls) + 1, self.faults.get((name, self._counts[name]), ""))
        self.calls.append(f"{len(self.calls) + 1} {name} {os.path.relpath(path, self.root)} {word}".rstrip())
        early = not word.startswith("late ")
        word = word.removeprefix("late ")
        if word and word != "short":
            if not early:
                act()
            self._fail(word)
        return act()

    def _fail(self, word: str) -> None:
        if word == "end":
            self.ended = True
            raise Ended
        if word == "stop":
            raise KeyboardInterrupt
        number = getattr(errno, word)
        raise OSError(number, os.strerror(number))

    def _parent(self, path: Path) -> _Folder:
        return self._folder(path.parent)

    def _folder(self, path: Path) -> _Folder:
        if path in self.root.parents:
            return _Folder()
        found = self._at(path)
        assert isinstance(found, _Folder)
        return found

    def _at(self, path: Path) -> _File | _Folder:
        """The node of a file or folder that is there."""
        node: _File | _Folder = self._tree
        at = self.root
        for part in path.relative_to(self.root).parts:
            assert isinstance(node, _Folder)
            at /= part
            if part not in node.names:
                made = node.names[part] = _Folder() if at.is_dir() else _File(data=at.read_bytes())
                node.pending.insert(0, {part: made})  # others made it at some time
            node = node.names[part]
        return node

    def _adopt(self, at: Path, folder: _Folder) -> None:
        """Note what others have made in ``folder``."""
        for path in sorted(at.iterdir()):
            node = self._at(path)
            if isinstance(node, _Folder):
                self._adopt(path, node)

    def _made_anew(self, folder: _Folder, at: Path) -> _Folder:
        made = _Folder()
        for name, node in sorted(folder.after_cut(self._chance).items()):
            if isinstance(node, _Folder):
                (at / name).mkdir()
                made.names[name] = self._made_anew(node, at / name)
            else:
                content = node.after_cut(self._chance)
                (at / name).write_bytes(content)
                made.names[name] = _File(content, content)
        made.sync()
        return made
