"""One-time statements over the rows of continuous queries, each in a process that is killed at its limits."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from splitjoin.base import threads
from splitjoin.base.errors import InputError, StatementError, ToolError, first_line
from splitjoin.base.processes import SAFE, python_path

from .config import Limits
from .messages import FlightData, data_message, split, stated
from .statement_worker import END, FRAME, MOST

#: Few arenas and threads, so that address space is memory; Arrow's own pool would keep what it has freed.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}


class Statements:
    """Runs statements of clients within limits. Keeps a process ready, so that a small one does not wait for it."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._free = threads.semaphore(limits.statements)
        self._lock = threads.lock()
        self._ready: list[_Worker] = []
        self._closed = False
        threads.thread(self._prepare, name="splitjoin statements").start()

    def answer(self, sql: str, tables: Mapping[str, tuple[list[Path], pa.Table]]) -> Iterator[bytes]:
        """The answer to ``sql`` as messages of FlightData. In it each query is a table: its committed files, and the
        rows that are in none yet.

        Raises `InputError` if too many statements run, `StatementError` for one that DuckDB refuses or that takes too
        long or too much memory.
        """
        if not _has_duckdb():
            raise ToolError("statements need duckdb, which is not installed; install splitjoin[serve]")
        if not self._free.acquire(blocking=False):
            raise InputError(f"{self._limits.statements} statements may run at once, and so many do; try again later")
        is_free = threads.lock()

        def free() -> None:
            if is_free.acquire(blocking=False):
                self._free.release()

        try:
            with self._lock:
                worker = self._ready.pop() if self._ready else None
            worker = worker or _Worker(self._limits)
            is_late = threads.event()

            def stop() -> None:
                is_late.set()
                worker.kill()
                free()  # also where the client does not read on

            timer = threads.timer(self._limits.statement_seconds, stop)
            try:
                worker.wait()
                timer.start()
                end = yield from worker.answers(sql, tables)
            finally:
                timer.cancel()
                if timer.ident is not None:
                    timer.join()  # it must not kill what runs the next statement
                self._give_back(worker, is_late.is_set())
            if said := self._reason(end, worker, is_late.is_set()):
                raise StatementError(f"a statement must be a SELECT over {', '.join(tables)}, but: {said}")
        finally:
            free()

    def close(self) -> None:
        """End the processes that wait."""
        with self._lock:
            self._closed = True
            for worker in self._ready:
                worker.close()
            self._ready.clear()

    def _reason(self, end: dict[str, Any] | None, worker: _Worker, is_late: bool) -> str:
        """Why a statement failed, of what its process said last, None if it died; nothing if it did not."""
        if end is not None and end["error"] not in (None, "memory"):
            return first_line(end["error"])
        if end is not None and end["error"] is None:
            return ""
        if end is None and (is_late or worker.signal == signal.SIGXCPU):
            return f"it took more than {self._limits.statement_seconds:g} s"
        return f"it took more than {self._limits.statement_memory} of memory"

    def _give_back(self, worker: _Worker, is_late: bool) -> None:
        """Keep ``worker`` for the next statement if it can run one; or else have another one ready."""
        with self._lock:
            if worker.is_fresh and not is_late and not self._ready and not self._closed:
                self._ready.append(worker)
                return
        worker.close()
        self._prepare()

    def _prepare(self) -> None:
        """Start a process, unless one waits."""
        if self._ready or self._closed or not _has_duckdb():
            return
        worker = _Worker(self._limits)
        with self._lock:
            if self._ready or self._closed:
                worker.close()
            else:
                self._ready.append(worker)


class _Worker:
    """A process of `splitjoin.server.statement_worker`.

    Attributes:
        is_fresh: True if it can run a statement.
    """

    def __init__(self, limits: Limits):
        self._limits = limits
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._send, self._receive = os.fdopen(self._requests, "wb"), os.fdopen(self._answers, "rb")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("statement_worker.py")), str(requests),
                 str(answers), str(limits.statement_size)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(requests, answers), env={**os.environ, **SAFE, **_ENVIRONMENT, "PYTHONPATH": python_path()})
        finally:
            os.close(requests)
            os.close(answers)
        self._is_up = False
        self.is_fresh = True

    @property
    def signal(self) -> int:
        """The number of the signal that ended the process; 0 if none did."""
        return max(0, -self._process.wait())

    def wait(self) -> None:
        """Wait until the process has started. Raises `ToolError` if it cannot."""
        if not self._is_up and self._next() is None:  # what it says first
            raise ToolError(f"the process that runs statements does not start, its exit code is {self._process.wait()}"
                            f"; see whether splitjoin[serve] is installed, and whether memory is free")
        self._is_up = True

    def answers(self, sql: str, tables: Mapping[str, tuple[list[Path], pa.Table]]
                ) -> Generator[bytes, None, dict[str, Any] | None]:
        """The messages of FlightData of an answer; returns what the process says last, None if it ended."""
        self.is_fresh = False
        end: dict[str, Any] | None = None
        try:
            self._write(json.dumps({"sql": sql, "tables": [[name, [str(file.absolute()) for file in files]]
                                                           for name, (files, _) in tables.items()],
                                    "seconds": self._limits.statement_seconds,
                                    "memory": self._limits.statement_size}).encode())
            for _, rest in tables.values():
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, rest.schema) as writer:
                    writer.write_table(rest)
                self._write(sink.getvalue())
            has_schema = False
            while (frame := self._next()) is not None:
                kind, data = frame
                if kind == END:
                    end = json.loads(data)
                    self.is_fresh = bool(end["again"])
                    break
                for header, body in split(data):
                    is_schema = stated(FlightData(b"", header, body)).kind == "schema"
                    if not (is_schema and has_schema):  # the writer writes it again
                        yield data_message(header, body)
                    has_schema = True
        except BrokenPipeError:
            pass
        return end

    def kill(self) -> None:
        """End the process at once; another thread may wait for what it says."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process, and give back what is used for it."""
        self.kill()
        self._receive.close()
        with contextlib.suppress(BrokenPipeError):  # of a request that was not sent
            self._send.close()

    def _write(self, data: Any) -> None:
        self._send.write(FRAME.pack(b"R", len(data)))
        self._send.write(data)
        self._send.flush()

    def _next(self) -> tuple[bytes, bytes] | None:
        """The next frame; None if the process has ended, or sends one that it never should."""
        head = self._receive.read(FRAME.size)
        if len(head) < FRAME.size:
            return None
        kind, size = FRAME.unpack(head)
        data = self._receive.read(size) if size <= MOST else b""
        return (kind, data) if len(data) == size else None


def _has_duckdb() -> bool:
    return importlib.util.find_spec("duckdb") is not None
