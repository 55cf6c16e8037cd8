"""Files of Spark's event logs: which of them make up a log, and their lines, unpacked within limits."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from splitjoin.base.errors import InputError, first_line

#: The longest line that is read, in bytes: a plan of ten thousand nodes is a tenth of it.
MOST_LINE = 16 * 2**20
#: A compressed file is read up to so many bytes for each of its own, and up to `_UNPACKED` at least. Logs of Spark
#: unpack to five to fifty.
UNPACKED_PER_BYTE = 200
_UNPACKED = 16 * 2**20
#: Bytes that are unpacked at once: as much is lost where a file ends early.
_READ = 2**13
#: Compressed logs that no package here reads, by the ending that Spark gives them: its own formats.
_OTHERS = {".lz4": "lz4", ".snappy": "snappy", ".lzf": "lzf"}
#: A file of a rolling log: its number.
_PART = re.compile(r"events_(\d{1,18})_.*", re.ASCII)


class CutShort(Exception):
    """A file of a log that cannot be read up to its end. The text says why."""


def logs_at(path: Path) -> list[list[Path]]:
    """The event logs at ``path``, each as its files in order. Raises `InputError` where there is none."""
    if not path.exists():
        raise InputError(f"there is no event log at {str(path)!r}; give the files or folders that Spark wrote to "
                         f"spark.eventLog.dir")
    if path.is_file():
        return [[path]]
    if path.name.startswith("eventlog_v2_"):
        return [_parts(path)]
    logs = [log for child in sorted(path.iterdir()) if not child.name.startswith(".") for log in logs_at(child)]
    if not logs:
        raise InputError(f"{str(path)!r} holds no event log; give the folder of spark.eventLog.dir")
    return logs


def _parts(folder: Path) -> list[Path]:
    """The files of a rolling log in order, from the last one on into which Spark compacted those before it."""
    parts = sorted((int(found[1]), file) for file in folder.iterdir() if (found := _PART.fullmatch(file.name)))
    if not parts:
        raise InputError(f"{str(folder)!r} holds no file events_…, as a rolling event log of Spark does; give the "
                         f"folder of spark.eventLog.dir")
    files = [file for _, file in parts]
    compacted = [at for at, file in enumerate(files) if file.suffix == ".compact"]
    return files[compacted[-1]:] if compacted else files


def lines(path: Path) -> Iterator[bytes | None]:
    """The lines of a file; None for each one that is longer than `MOST_LINE`.

    Raises `InputError` for a compression that is not read, and `CutShort` where the file ends early, is damaged, cannot
    be opened or unpacks to more than it may.
    """
    name = path.name.removesuffix(".inprogress").removesuffix(".compact")
    ending = Path(name).suffix
    if ending in _OTHERS:
        raise InputError(f"{str(path)!r} is compressed by {_OTHERS[ending]} in Spark's own format, which is not read "
                         f"here; unpack it, or let Spark write logs with spark.eventLog.compression.codec=zstd")
    try:
        with _opened(path, ending) as raw:
            yield from _lines(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise CutShort(f"{path.name} ends early: {first_line(error)}") from None


def _opened(path: Path, ending: str) -> BinaryIO:
    if ending == ".gz":
        stream = cast(BinaryIO, gzip.GzipFile(path))
    elif ending in (".zstd", ".zst"):
        stream = cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))
    else:
        return path.open("rb")
    return io.BufferedReader(_Unpacked(stream, path), _READ)


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a compressed file, up to its limit."""

    def __init__(self, stream: BinaryIO, path: Path):
        self._stream, self._name = stream, path.name
        self._left = self._most = max(_UNPACKED, UNPACKED_PER_BYTE * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader gives a memoryview
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"it unpacks to more than {self._most:,} bytes, {UNPACKED_PER_BYTE} times its size, which no "
                          f"log of Spark does; unpack it yourself if it is one")
        buffer[:len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    while line := stream.readline(MOST_LINE + 1):
        if len(line) <= MOST_LINE or line.endswith(b"\n"):
            yield line
            continue
        del line
        while (rest := stream.readline(2**20)) and not rest.endswith(b"\n"):
            pass
        yield None
