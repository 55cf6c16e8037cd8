"""Compiling a query's loops in another process, while this one goes on without them.

The other process runs the query over a sample of its tuples, so that exactly what the query needs is compiled, into the
cache on disk. It lives on when this process ends: the next one finds the loops there. A marker in the cache says which
queries have been compiled.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from splitjoin.base import threads
from splitjoin.base.cache import KERNELS, NoCache, cache_folder, find, made, place, try_lock
from splitjoin.base.errors import SplitJoinError, UnsupportedError
from splitjoin.base.processes import SAFE, python_command, python_path
from splitjoin.base.progress import tell
from splitjoin.base.version import __version__
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.serial import decode_query, encode_condition, encode_query
from splitjoin.plan.passes.pipeline import make_plan
from splitjoin.plan.plan import suits_runs

from ..arrival import Arrivals
from .session import BatchSession

__all__ = ["Child", "Compilation", "OpenCompiled", "compile_query", "compile_sample", "toolchain"]

#: Opens a compiled session of a query with an engine: "auto", "index", "sorted" or "nested".
OpenCompiled = Callable[[Query, str], BatchSession]

#: Arrivals of the sample, and of its last batch.
_SAMPLE, _LAST = 1 << 16, 100
#: Processes that compile at the same time, on one machine.
_SLOTS = 2
#: The exit code of a process that found all slots taken.
_BUSY = 75
#: Settings that numba compiles by.
_SETTINGS = ("NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")


class Child:
    """A process that compiles; `code` is its exit code, None while it runs."""

    def __init__(self, pid: int):
        self._pid, self._lock = pid, threads.lock()
        self._code: int | None = None

    @property
    def code(self) -> int | None:
        with self._lock:  # the system tells the code once
            if self._code is None:
                try:
                    pid, status = os.waitpid(self._pid, os.WNOHANG)
                except ChildProcessError:  # somebody else has waited for it
                    self._code = 0
                else:
                    self._code = os.waitstatus_to_exitcode(status) if pid else None
            return self._code


#: The processes that this one has started and that may still run: no more than `_SLOTS`, as each of many short queries
#: would otherwise start one that imports everything only to find that no slot is free.
_children: list[Child] = []
_starting = threads.GlobalLock()


class Compilation:
    """The compilation of ``query`` for ``engine`` in the background; `is_done` starts it.

    ``retry``: seconds after which it asks again where others compile.
    """

    def __init__(self, query: Query, engine: str, retry: float = 5.0):
        self._query, self._engine, self._retry = query, engine, retry
        self._marker = _marker(query, engine)
        self._child: Child | None = None
        self._again = 0.0  # when to ask for a slot again
        self._failed = False

    @property
    def is_known(self) -> bool:
        """True if the query has been compiled before."""
        return find(self._marker) is not None

    @property
    def is_loaded(self) -> bool:
        """True if this process has loaded numba, which takes longer than many a short join."""
        return "numba" in sys.modules

    def is_done(self, coming: Arrivals) -> bool:
        """True once a session of the query finds its loops compiled, or has to compile them itself.

        Starts the compilation if none runs, with the first of the ``coming`` arrivals as a sample.
        """
        if self.is_known:
            return True
        if self._child is None and not self._failed:
            if len(coming) and threads.monotonic() >= self._again:
                try:
                    with _starting:
                        self._start(coming)
                except (OSError, SplitJoinError, pa.ArrowException):  # no process, a cache that cannot be written to, …
                    self._failed = True
            return self._failed
        if self._child is None:
            return True
        code = self._child.code
        if code == _BUSY:
            self._child, self._again = None, threads.monotonic() + self._retry
            return False
        return code is not None  # without a marker it has failed, and the session says why, or does better

    def _start(self, coming: Arrivals) -> None:
        with _nameless() as sample:
            _write_sample(sample, self._query, self._engine, coming.split(_SAMPLE)[0])
            sample.flush()
            sample.seek(0)
            self._child = _start_child(self._marker, sample)
        if self._child is None:
            self._again = threads.monotonic() + self._retry


def _start_child(marker: str, sample: IO[bytes]) -> Child | None:
    """A process that compiles what ``sample`` needs, at low priority, and makes the ``marker``; None where as many run
    as may. Raises `OSError` and `NoCache` where it cannot be.
    """
    _children[:] = [child for child in _children if child.code is None]
    if len(_children) >= _SLOTS:
        return None
    cache_folder()  # without one there is no place for what the process compiles
    tell("the first results come without compiled loops; these are compiled meanwhile, once for this machine")
    code = ("import os, sys; os.nice(10); from splitjoin.engines.cpu.device import compile_in_background as run; "
            "run(*sys.argv[1:])")
    files: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, sample.fileno(), 0), *(
        (os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in (1, 2))]
    # Not subprocess.Popen, which minds that its process outlives it. A session of its own keeps Ctrl-C from it.
    child = Child(os.posix_spawn(
        sys.executable, python_command(code, marker), {**os.environ, **SAFE, "PYTHONPATH": python_path()},
        file_actions=files, setsid=True))
    _children.append(child)
    return child


def compile_sample(sample: IO[bytes], marker: str, open_compiled: OpenCompiled) -> int:
    """Compile what the query of ``sample`` needs, and make the ``marker``, unless another process does, or as many
    compile as may. Returns the exit code of the process.
    """
    query, engine, coming = _read_sample(sample)
    folder = place(marker).parent
    slots = [folder / f"compiling-{n}.lock" for n in range(_SLOTS)]
    with try_lock([folder / f"{marker.rpartition('/')[2]}.lock"]) as mine, try_lock(slots if mine else []) as free:
        if not free:
            return _BUSY
        compile_query(query, engine, coming, open_compiled)
    return 0


def compile_query(query: Query, engine: str, coming: Arrivals, open_compiled: OpenCompiled) -> None:
    """Compile, in this process, what a join of the ``coming`` arrivals needs, and note that it has been done."""
    # As the window fills, and the values change, another engine may be chosen.
    others = ("index", "nested", *(["sorted"] if suits_runs(make_plan(query.predicate)) else []))
    for one in (engine, *(others if engine == "auto" else ())):
        with suppress(UnsupportedError), open_compiled(query, one) as session:
            first, last = coming.split(max(len(coming) - _LAST, 1))
            session.push(first)
            if last is not None:  # a small batch behind another one is joined by other loops
                session.push(last)
            session.flush()
        with suppress(NoCache):
            place(_marker(query, engine)).touch(mode=0o600)
            made()


@cache
def toolchain() -> str:
    """Environment, beside the query, that compiled loops depend on."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    changed = [file.stat().st_mtime_ns for file in files]
    return repr((__version__, str(Path(__file__).parent), changed, sys.version, importlib.metadata.version("numba"),
                 np.__version__, [os.environ.get(name) for name in _SETTINGS]))


def _marker(query: Query, engine: str) -> str:
    """The entry of the cache that says that the loops of ``query`` for ``engine`` are in it."""
    key = [_without_names(encode_condition(query.predicate)), query.order.kind == "inner",
           [w.length is None for w in (query.window_r, query.window_s)], engine, toolchain()]
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]
    return f"{KERNELS}/query-{name}.compiled"


def _without_names(nodes: list[Any]) -> list[Any]:
    """A condition as `encode_condition` gives it, its columns by number: compiled loops know no names."""
    numbers: dict[tuple[str, str], int] = {}
    found = []
    for name, type_, at, *properties in nodes:
        if name == "Col":
            side, column, *rest = properties
            properties = [side, numbers.setdefault((side, column), len(numbers)), *rest]
        found.append([name, type_, at, *properties])
    return found


def _nameless() -> IO[bytes]:
    """A file without a name, in memory where the system has such files: rows of the user's are on no disk afterwards,
    however a process ends.
    """
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("splitjoin-sample"), "w+b")
    return tempfile.TemporaryFile()


def _write_sample(file: IO[bytes], query: Query, engine: str, coming: Arrivals) -> None:
    arrived = {"stream": pa.array(coming.stream)}
    if coming.ts is not None:
        arrived["ts"] = pa.array(coming.ts)
    header = json.dumps({"query": encode_query(query), "engine": engine})
    tables = [pa.table(arrived).replace_schema_metadata({"query": header})]
    for side in SIDES:
        names = [c.name for c in columns(query.predicate) if c.side == side]
        tables.append(coming.table(side).select(names or coming.table(side).column_names[:1]))
    for table in tables:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)


def _read_sample(file: IO[bytes]) -> tuple[Query, str, Arrivals]:
    arrived, r, s = (pa.ipc.open_stream(file).read_all() for _ in range(3))
    header: dict[str, Any] = json.loads(arrived.schema.metadata[b"query"])
    stream = arrived.column("stream").to_numpy().astype(np.uint8)
    ts = arrived.column("ts").to_numpy().astype(np.int64) if "ts" in arrived.column_names else None
    return decode_query(header["query"]), header["engine"], Arrivals(stream, ts, r, s)
