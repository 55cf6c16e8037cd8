"""Subjects of single files: results (`to=`), state files of Spark's streams, and entries of the cache."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.feather

from splitjoin.base.cache import publish
from splitjoin.base.errors import InputError
from splitjoin.spark.streaming.state_files import StateFiles
from splitjoin.tables import read_table, write_table

#: What the umask takes away from the permissions of new files.
UMASK = os.umask(0o22)
os.umask(UMASK)


class _Versions:
    """A file that is written anew again and again: which contents it may have, None: it is not there."""

    def __init__(self) -> None:
        self.possible: list[int | None] = [None]
        self.next = 0

    def attempt(self) -> int:
        """The number of the next content, which may be there from now on."""
        self.next += 1
        self.possible.append(self.next)
        return self.next

    def done(self) -> None:
        """The last attempt has returned: it must stay."""
        self.possible = [self.possible[-1]]

    def check(self, found: int | None) -> None:
        assert found in self.possible, f"found {found}, but there may be {self.possible}"


class ResultsSubject:
    """Tables that `to=` writes, each in place of the one before."""

    def __init__(self, root: Path, chance: random.Random):
        self._path, self._chance = root / f"out{chance.choice(['.parquet', '.arrow', '.csv'])}", chance
        self._versions = _Versions()

    def live(self) -> None:
        """Write a few tables."""
        for _ in range(self._chance.randint(1, 3)):
            version = self._versions.attempt()
            try:
                write_table(pa.table({"x": [version] * 20}), self._path)
                self._versions.done()
            except InputError as error:
                assert "cannot be written" in str(error) or self._read() == version
            except KeyboardInterrupt:
                pass

    def end(self) -> None:
        """Nothing is left open."""

    def look(self) -> None:
        """The old table or the new one."""
        found = self._read()
        self._versions.check(found)

    def finish(self) -> None:
        """Write on a disk that is well."""
        write_table(pa.table({"x": [self._versions.attempt()] * 20}), self._path)
        self._versions.done()
        self.look()

    def _read(self) -> int | None:
        if not self._path.exists():
            return None
        assert stat.S_IMODE(self._path.stat().st_mode) == 0o666 & ~UMASK, "as of a file opened for writing"
        values = read_table(self._path)["x"].to_pylist()
        assert len(values) == 20
        assert len(set(values)) == 1
        return int(values[0])


class StatesSubject:
    """State files of micro-batches, which tasks write and run again."""

    def __init__(self, root: Path, chance: random.Random):
        self._files, self._chance = StateFiles(str(root / "state"), "query", "join"), chance
        self._versions = {(batch, group): _Versions() for batch in range(2) for group in range(2)}

    def live(self) -> None:
        """Write a few versions."""
        for _ in range(self._chance.randint(1, 3)):
            at = self._chance.choice(list(self._versions))
            version = self._versions[at].attempt()
            try:
                self._files.write(at[0], at[1], 2, b"%d " % version * 20)
                self._versions[at].done()
            except (OSError, KeyboardInterrupt):
                pass

    def end(self) -> None:
        """Nothing is left open."""

    def look(self) -> None:
        """Each file is the old one or the new one."""
        for (batch, group), versions in self._versions.items():
            found = None
            if (group, 2) in self._files.held(batch):
                (one,) = set(self._files.read(batch, group, 2).to_pybytes().split())
                assert self._files.read(batch, group, 2).size == 20 * (len(one) + 1)
                found = int(one)
            versions.check(found)

    def finish(self) -> None:
        """Write on a disk that is well."""
        for (batch, group), versions in self._versions.items():
            self._files.write(batch, group, 2, b"%d " % versions.attempt() * 20)
            versions.done()
            mode = Path(self._files.where(batch, group, 2)).stat().st_mode
            assert stat.S_IMODE(mode) == 0o600 & ~UMASK, "for its owner alone"
        self.look()


class CacheSubject:
    """Entries of the cache, files and folders, which a compiler has made."""

    def __init__(self, root: Path, chance: random.Random):
        self._root, self._chance = root, chance

    def live(self) -> None:
        """Publish an entry, as a process does that finds none."""
        for name in "file", "folder":
            target = self._root / name
            if target.exists():
                continue
            part = self._root / f"{name}.part{self._chance.randint(0, 10**9)}"
            if name == "folder":
                (part / "inner").mkdir(parents=True)
                for file in (part / "a", part / "inner" / "b"):
                    file.write_bytes(b"code" * 50)
            else:
                part.write_bytes(b"code" * 50)
            try:
                publish(part, target)
                assert target.exists()
            except (OSError, KeyboardInterrupt):
                pass

    def end(self) -> None:
        """Nothing is left open."""

    def look(self) -> None:
        """An entry is whole, or not there."""
        if (self._root / "file").exists():
            assert (self._root / "file").read_bytes() == b"code" * 50
        if (folder := self._root / "folder").exists():
            assert {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()
                    } == {"a": b"code" * 50, "inner/b": b"code" * 50}

    def finish(self) -> None:
        """Publish on a disk that is well."""
        self.live()
        assert (self._root / "file").exists()
        assert (self._root / "folder").exists()
        self.look()
