"""`JoinService`: shared streams, their queries and their epochs, as a server has them: without the network."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.errors import InputError, SplitJoinError, plural
from splitjoin.base.memory import available_memory, used_memory
from splitjoin.base.parquet import ParquetSource
from splitjoin.lang.schema import SIDES, Side, suggest
from splitjoin.sessions import SharedStreams
from splitjoin.sessions.epochs import EpochWriter, epoch_files
from splitjoin.sessions.gate import Source

from .config import ServerConfig

#: Seconds after which threads that wait look again.
_PATIENCE = 0.2
#: Seconds between two tries to write an epoch that could not be written.
_RETRY = 1.0
#: Rows of one batch that a subscriber gets.
_BATCH = 1 << 16


class JoinService:
    """Takes tuples, runs the queries in a thread, and writes their rows as epochs. Use as a context manager.

    Several threads may call its methods. What is committed survives any end of the process: `committed` says how many
    tuples of a source are, and a client that pushes again what lies behind loses nothing and doubles nothing.

    Args:
        config: What the streams and queries are.
        log: Gets a line for each event that an operator should see.
        set_aside: True to go on with empty windows, and to log so, where the state of the epochs cannot be read.
    """

    def __init__(self, config: ServerConfig, log: Callable[[str], None] = lambda line: print(line, file=sys.stderr), *,
                 set_aside: bool = False):
        self.config, self._log = config, log
        self._changed = threads.condition()
        self._writing = threads.lock()  # held while an epoch is written
        self._stopping = False
        self._trouble: str | None = None
        self._is_down, self._deaths = False, 0  # the thread that writes epochs: dead, and not writing again; how often
        self._streams = _streams(config)
        self.schemas: dict[str, pa.Schema] = {}
        writer: EpochWriter | None = None
        try:
            known = _known_queries(config.folder)
            if lost := [name for name in known if name not in {query.name for query in config.queries}]:
                raise InputError(f"{config.folder} has epochs of the query {lost[0]!r}, which is not in the file; put "
                                 f"it back, or take another folder")
            for query in config.queries:
                if query.name in known:
                    self._add(query)
            writer = self._streams.write_to(config.folder, set_aside=log if set_aside else None, **dict(config.epochs))
            for query in config.queries:  # new ones, from where the streams are
                if query.name not in known:
                    self._add(query)
            self._writer = writer
            self._sources = {(stream.name, name): self._source(side, n) for side, stream in zip(SIDES, config.streams,
                                                                                                 strict=True)
                             for n, name in enumerate(stream.sources)}
            self._busy: set[tuple[str, str]] = set()
        except BaseException:
            if writer is not None:
                writer.close()
            self._streams.__exit__(None, None, None)
            raise
        self._thread = threads.thread(self._run, name="splitjoin epochs")
        self._thread.start()

    def source(self, stream: str, source: str) -> Source:
        """Take a source for one client; `release` gives it back. Raises `InputError` if another client has it."""
        key = self._key(stream, source)
        with self._changed:
            if key in self._busy:
                raise InputError(f"one client at a time puts to a source, but another one puts to {stream}/{source}; "
                                 f"wait for it, or add sources in the file of the server")
            self.check_running()
            self._busy.add(key)
        return self._sources[key]

    def stream(self, name: str) -> tuple[Side, pa.Schema]:
        """The side of a stream, and its schema."""
        side = self._side(name)
        return side, self.config.streams[SIDES.index(side)].schema

    def release(self, stream: str, source: str) -> None:
        """Give a source back."""
        with self._changed:
            self._busy.discard((stream, source))

    def position(self, stream: str, source: str) -> dict[str, int]:
        """How many tuples a source has ``delivered``, and how many of them are ``committed``."""
        key = self._key(stream, source)
        side, index = self._side(stream), [name for name in self._sources if name[0] == stream].index(key)
        # Before what is delivered, which grows meanwhile: nothing is committed that was not delivered.
        committed = _at(self._writer.delivered.get(side, ()), index)
        return {"delivered": _at(self._streams.delivered[side], index), "committed": committed}

    def heartbeat(self, stream: str, time: int) -> None:
        """Promise that a stream delivers no more tuples below ``time``, in the unit of its time column."""
        side = self._side(stream)
        schema, name = self.config.streams[SIDES.index(side)].schema, self.config.streams[SIDES.index(side)].time
        type_ = schema.field(name).type
        try:  # Arrow makes days of 32 bits alone
            value = pa.scalar(time, pa.int32() if pa.types.is_date32(type_) else pa.int64()).cast(type_)
        except (pa.ArrowException, TypeError, OverflowError):
            raise InputError(f"the time of a heartbeat must be a whole number in the unit of {stream}.{name}, not "
                             f"{time!r}") from None
        with self.naming(stream):
            self._streams.heartbeat(value if not pa.types.is_integer(value.type) else time, side)

    def idle(self, stream: str) -> None:
        """Declare a stream silent, until it delivers again."""
        with self.naming(stream):
            self._streams.idle(self._side(stream))

    def finish(self, stream: str) -> None:
        """End a stream for good."""
        with self.naming(stream):
            (self._streams.close_s if self._side(stream) == "s" else self._streams.close_r)()

    @contextmanager
    def naming(self, stream: str, source: str | None = None) -> Iterator[None]:
        """Let errors within the block, which know streams as r and s, begin with the names that the file gives."""
        try:
            yield
        except SplitJoinError as error:
            of = "" if source is None else f", source {source}"
            error.args = (f"stream {stream} ({self._side(stream)}){of}: {error}",)
            raise

    def status(self) -> dict[str, Any]:
        """Counters of the streams and queries, the places of sources, memory in bytes, what fails, and how many epochs
        there are.
        """
        queries = {}
        for name, query in self._streams.queries.items():
            failure = query.failure
            queries[name] = query.counters() | ({} if failure is None else {"failure": str(failure)})
        return {"epochs": self._writer.epochs, "streams": self._streams.counters(), "queries": queries,
                "sources": {stream.name: {name: self.position(stream.name, name) for name in stream.sources}
                            for stream in self.config.streams},
                "memory": {"used": used_memory(), "available": available_memory()},
                "trouble": self._trouble, "deaths": self._deaths}

    def epochs(self) -> int:
        """The number of epochs that are committed."""
        return self._writer.epochs

    def rows(self, query: str, *, epoch: int = 0, row: int = 0, follow: bool = True,
             gone: Callable[[], bool] = lambda: False) -> Iterator[tuple[pa.RecordBatch, dict[str, int]]]:
        """The committed rows of a query, each batch with its epoch and the place of its first row.

        They begin with the epoch ``epoch``, and not before the ``row``-th row of the query. With ``follow``, the
        iterator waits for further epochs, until the streams have ended, the service stops, or ``gone`` is true. Raises
        `InputError` for a query that is not there, and for an epoch that is dropped before its turn.
        """
        if query not in self.schemas:
            raise InputError(f"there is no query {query!r}{suggest(str(query), list(self.schemas))}; there are "
                             f"{', '.join(self.schemas)}")
        seen = -1
        while not gone():
            with self._changed:
                committed, last = self._writer.epochs, self._ended or self._stopping or not follow
            for file in epoch_files(self.config.folder, query):
                number = int(file.name[6:18])
                if number <= seen or number >= committed:
                    continue
                seen = number
                if number >= epoch:
                    try:
                        source = ParquetSource(file)
                    except FileNotFoundError:
                        raise InputError(f"epoch {number} of the query {query!r} must be there to be read, but was "
                                         f"dropped meanwhile; ask for the rows from a later epoch on") from None
                    yield from _batches(source, number, row)
            if last:
                return
            with self._changed:
                if self._writer.epochs == committed and not self._ended and not self._stopping:
                    self._changed.wait(_PATIENCE)

    def tables(self) -> dict[str, tuple[list[Path], pa.Table]]:
        """For each query its committed files, and the rows that are in no epoch yet: one place in the sequence."""
        with self._writing:
            if not self._writer.settled:
                raise InputError(f"statements wait until it is sure which rows are in epochs: {self._trouble}")
            return {name: (epoch_files(self.config.folder, name), rows) for name, rows in self._streams.found().items()}

    def stop(self) -> None:
        """Take no more tuples, end the last epoch, and let followers end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        self._writer.close()
        self._streams.__exit__(None, None, None)

    def __enter__(self) -> JoinService:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _ended(self) -> bool:
        return self._streams.ended and not self._thread.is_alive()

    def _run(self) -> None:
        """Write epochs until the streams end or the service stops. What ends that otherwise is told, and it begins
        anew: rows, states and what is not sure about the disk are the writer's, and no thread's.
        """
        while True:
            is_last = self._stopping
            try:
                self._write_epochs()
                break
            except BaseException as error:
                self._is_down, self._deaths = True, self._deaths + 1
                self._failed(f"the thread that writes epochs died, and begins anew: {type(error).__name__}: {error}",
                             traceback.format_exc())
            with self._changed:
                self._changed.notify_all()
                if is_last:
                    break
                self._changed.wait(_RETRY)
        with self._changed:
            self._changed.notify_all()

    def _write_epochs(self) -> None:
        patience = 0.0  # the thread before may have died of its wait: that is tried before an epoch ends the trouble
        while True:
            self._writer.wait(patience)
            patience = _PATIENCE
            wrote = self._write(final=False)
            with self._changed:
                if wrote or self._trouble:
                    self._changed.notify_all()
                if self._stopping or (self._streams.ended and self._trouble is None):
                    break
                if self._trouble:
                    self._changed.wait(_RETRY)
        while not self._write(final=True) and self._trouble is not None and not self._stopping:
            with self._changed:
                self._changed.wait(_RETRY)

    def _write(self, *, final: bool) -> bool:
        """Write an epoch if one is due, or in any case; trouble is said once, and tried again."""
        try:
            with self._writing:
                wrote = self._writer.commit() if final else self._writer.write()
        except SplitJoinError as error:
            self._failed(str(error))
            return False
        except Exception as error:  # a fault of ours: without this thread, puts would be taken and never committed
            self._failed(f"epochs cannot be written: {type(error).__name__}: {error}", traceback.format_exc())
            return False
        if self._trouble is not None:
            self._log("epochs are written again")
        self._trouble, self._is_down = None, False
        return wrote

    def _failed(self, trouble: str, details: str = "") -> None:
        if trouble != self._trouble:
            with suppress(Exception):  # a log that cannot be written must not end the thread
                self._log(f"{trouble}\n{details}" if details else trouble)
        self._trouble = trouble

    def _add(self, query: Any) -> None:
        made = self._streams.sql(query.sql, window=query.window, name=query.name, device=query.device,
                                 device_options=query.options)
        self.schemas[query.name] = made.schema

    def _source(self, side: Side, n: int) -> Source:
        have, stream = self._streams.sources(side), self.config.streams[SIDES.index(side)]
        if have > len(stream.sources):
            raise InputError(f"{self.config.folder} has epochs of a stream {stream.name} with {have} sources, but the "
                             f"file names {len(stream.sources)}; name all of them, in the same order")
        if n < self._streams.sources(side):
            return self._streams.source_at(side, n)
        return self._streams.source(side)

    def _side(self, stream: str) -> Side:
        names = [one.name for one in self.config.streams]
        if stream not in names:
            raise InputError(f"there is no stream {stream!r}{suggest(str(stream), names)}; there are "
                             f"{', '.join(names)}")
        return SIDES[names.index(stream)]

    def _key(self, stream: str, source: str) -> tuple[str, str]:
        names = self.config.streams[SIDES.index(self._side(stream))].sources
        if source not in names:
            raise InputError(f"stream {stream} has no source {source!r}{suggest(str(source), names)}; its "
                             f"{plural(len(names), 'source')} {'is' if len(names) == 1 else 'are'} {', '.join(names)}")
        return stream, source

    def check_running(self) -> None:
        """Raise `InputError` unless tuples that are put now come into epochs."""
        if self._stopping:
            raise InputError("the server stops and takes no more tuples; ask for the position when it runs again, and "
                             "put from there on")
        if self._is_down or (not self._thread.is_alive() and not self._streams.ended):
            raise InputError(f"the server takes no tuples now, as {self._trouble}; try again later, and put from the "
                             f"position on")


def check_config(config: ServerConfig) -> None:
    """Raise what a `JoinService` would raise for the streams, queries and options of ``config``, without its folder and
    devices.
    """
    with _streams(config) as streams, TemporaryDirectory() as folder:
        for query in config.queries:
            streams.sql(query.sql, window=query.window, name=query.name, device="golden")
        with streams.write_to(folder, **dict(config.epochs)):
            pass


def _streams(config: ServerConfig) -> SharedStreams:
    r, s = config.streams
    return SharedStreams(r.schema, s.schema, time=(r.time, s.time), names=(r.name, s.name),
                         waiting=config.limits.waiting, unread=config.limits.unread, when_full="block",
                         **dict(config.input))


def _known_queries(folder: Path) -> list[str]:
    """The queries of the state in ``folder``; none if there is no state. `EpochFolder` checks the manifest."""
    try:
        return list(json.loads((folder / "_manifest.json").read_bytes())["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _batches(source: ParquetSource, number: int, row: int) -> Iterator[tuple[pa.RecordBatch, dict[str, int]]]:
    """The rows of an epoch's file from the ``row``-th of the query on, and their places; closes it."""
    with source:
        at = int(json.loads(source.metadata.metadata[b"splitjoin.epoch"])["first_row"])
        if at + source.metadata.num_rows <= row:
            return
        for batch in source.batches(_BATCH):
            skip = min(max(row - at, 0), len(batch))
            if skip < len(batch):
                yield batch.slice(skip), {"epoch": number, "row": at + skip}
            at += len(batch)


def _at(counts: Any, index: int) -> int:
    return counts[index] if index < len(counts) else 0
