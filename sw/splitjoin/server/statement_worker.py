"""The process that runs statements for `splitjoin.server.statements`, within limits that the system enforces.

Run as a file, with the descriptors of two pipes and the bytes of memory that a statement may take. It imports nothing
of splitjoin, so that it starts in a fraction of a second and holds little memory. DuckDB alone cannot be trusted with
limits: it counts some of its memory, and looks at the clock between vectors of rows.

A request is a frame of JSON, and one for each table with its rows in memory; an answer is frames of Arrow IPC, then a
frame of JSON. A frame is its kind, a byte, the bytes that follow, in 8 bytes, and these.
"""

from __future__ import annotations

import importlib.abc
import io
import json
import math
import os
import resource
import struct
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc

#: Kind and length of a frame; the kinds of an answer's frames; the most bytes of a frame of rows.
FRAME, ROWS, END, MOST = struct.Struct("<cQ"), b"R", b"E", 64 << 20
#: Rows of a batch of DuckDB's, and bytes of one that is sent, unless one row has more.
_BATCH, _PART = 1 << 13, 8 << 20


class _NoPandas(importlib.abc.MetaPathFinder):
    """Lets pandas be missing: Arrow and DuckDB would import it, which takes a second."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Raise ImportError for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def main() -> None:
    """Serve requests until the pipe ends, or what the last one left behind is too much for another one."""
    requests, answers, memory = (int(word) for word in sys.argv[1:])
    sys.meta_path.insert(0, _NoPandas())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with os.fdopen(requests, "rb") as receive, os.fdopen(answers, "wb") as send:
        _run({"sql": "SELECT max(x) FROM t", "tables": [["t", []]], "memory": memory}, [pa.table({"x": [1]})],
             io.BytesIO())  # loads what statements need, which then is no part of their memory
        _send(send, END, b"{}")
        before = _addresses()
        limits = {resource.RLIMIT_AS: before + memory, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}
        for kind, most in limits.items():
            resource.setrlimit(kind, (most, most))
        while (asked := _receive(receive)) is not None:
            request = json.loads(asked)
            rest = [pa.ipc.open_stream(_receive(receive)).read_all() for _ in request["tables"]]
            used = resource.getrusage(resource.RUSAGE_SELF)
            seconds = math.ceil(used.ru_utime + used.ru_stime + request["seconds"]) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            said, again = _run(request, rest, send)
            del rest
            again = again and _addresses() - before < memory // 4
            _send(send, END, json.dumps({"error": said, "again": again}).encode())
            if not again:
                return


def _addresses() -> int:
    """The bytes of this process's address space that are in use."""
    with open("/proc/self/statm") as told:
        return int(told.read().split()[0]) * resource.getpagesize()


def _run(request: dict[str, Any], rest: list[pa.Table], send: BinaryIO) -> tuple[str | None, bool]:
    """Answer ``request``; ``rest``: the rows of its tables that are in no file. Gives the error, and whether the
    process is as good as new.
    """
    import duckdb  # here, as the server reads this file, too
    from pyarrow import _dataset_parquet, dataset  # noqa: F401  # the first one reads files of the second one

    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": "1", "memory_limit": f"{request['memory'] * 4 // 5} B", "temp_directory": ""}
    try:
        with duckdb.connect(":memory:", config=config) as connection:
            connection.execute("SET python_enable_replacements = false")  # its tables are those named here
            for n, ((name, files), rows) in enumerate(zip(request["tables"], rest, strict=True)):
                quoted = name.replace('"', '""')
                parts = [f"SELECT * FROM splitjoin_memory_{n}"]
                connection.register(f"splitjoin_memory_{n}", rows)
                if files:
                    connection.register(f"splitjoin_files_{n}", dataset.dataset(files, schema=rows.schema))
                    parts.insert(0, f"SELECT * FROM splitjoin_files_{n}")
                connection.execute(f'CREATE VIEW "{quoted}" AS {" UNION ALL ".join(parts)}')
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            relation = connection.sql(request["sql"])
            if relation is None:
                return "it has no rows", True
            for data in _rows(relation.to_arrow_reader(_BATCH)):
                if len(data) > MOST:
                    return f"a row of its answer takes more than {MOST >> 20} MiB", False
                _send(send, ROWS, data)
    except (MemoryError, duckdb.OutOfMemoryException, pa.ArrowMemoryError):
        return "memory", False
    except (duckdb.Error, pa.ArrowException, OSError, ValueError) as error:
        text = str(error)
        return ("memory", False) if "Out of Memory" in text or "failed to allocate" in text else (text, True)
    return None, True


def _rows(reader: pa.RecordBatchReader) -> Iterator[bytes]:
    """The stream of IPC of the answer, in parts that end with a batch; the first has the schema alone."""
    yield reader.schema.serialize().to_pybytes()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            for part in _parts(batch):
                writer.write_batch(part)
                yield sink.getvalue()
                sink.seek(0)
                sink.truncate()


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= _PART or len(batch) < 2:
        yield batch
        return
    half = len(batch) // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _receive(pipe: BinaryIO) -> bytes | None:
    """The next frame; None at the end of the pipe."""
    head = pipe.read(FRAME.size)
    if len(head) < FRAME.size:
        return None
    return pipe.read(FRAME.unpack(head)[1])


def _send(pipe: BinaryIO, kind: bytes, data: bytes) -> None:
    pipe.write(FRAME.pack(kind, len(data)))
    pipe.write(data)
    pipe.flush()


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, MemoryError, KeyboardInterrupt):  # the server is gone, or there is no memory to say so
        os._exit(1)
