"""The process that feeds a streaming job and kills it: `run`."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

import splitjoin
from splitjoin.base.errors import DeviceError
from splitjoin.link.daemon.client import daemon_status

ROOT = Path(__file__).parents[2]
#: Streams, and the column of each beside its time and its number.
COLUMNS = {"r": "x", "s": "a", "t": "b"}
#: The join, and one without a window.
JOIN, ENDLESS = {"on": "abs(r.x - s.a) <= 3", "window": "RANGE 40", "time": "ts"}, {"on": "r.x = s.a", "time": "ts"}
#: Several conditions of one join.
NAMED = {"near": JOIN["on"], "equal": "r.x = s.a", "less": "r.x + 90 < s.a"}
#: The former in plain SQL.
PLAIN = """SELECT r.n n_r, s.n n_s FROM r JOIN s ON abs(r.x - s.a) <= 3
    AND r.at BETWEEN s.at - INTERVAL 40 SECONDS AND s.at + INTERVAL 40 SECONDS"""
#: A join of three streams.
SEVERAL = """SELECT r.n AS n_r, s.n AS n_s, t.n AS n_t FROM r JOIN s ON abs(r.x - s.a) <= 1
    JOIN t ON t.b = s.a AND t.b - r.x < 1"""
WINDOWS = {"r": "RANGE 20", "s": "RANGE 15", "t": "RANGE 25"}
#: Aggregates of all partners of a row of R.
AGGREGATES = {"pairs": "count(*)", "total": "sum(s.a)", "last": "max(s.n)"}
#: Numbers of groups, in turn, of a job that has another one at each start.
GROUPS = 2, 3, 1
#: Rows of each stream in a file, and the seconds in which the job must finish a micro-batch, its start included, on a
#: machine that has as many cores as processes that want one: a job that only is slow has not failed.
_ROWS, _PATIENCE = 200, 900


@dataclass
class Chaos:
    """Record of a run: kills of each kind, starts of the job, micro-batches, pairs, all of which were right, and
    late rows.
    """

    jvms: int = 0
    workers: int = 0
    daemons: int = 0
    starts: int = 0
    batches: int = 0
    pairs: int = 0
    late: int = 0


class Job:
    """The streaming job in ``folder``, which joins by these ``arguments`` of `stream_join`, and with ``daemon`` the
    daemon that owns its devices. With ``groups``, each start has the next number of these.
    """

    def __init__(self, folder: Path, daemon: bool, arguments: dict[str, Any], groups: Iterator[int] | None = None):
        self.folder, self.starts, self._arguments, self._groups = folder, 0, arguments, groups
        self._socket = folder / "private" / "daemon.sock"
        self._daemon: subprocess.Popen[bytes] | None = None
        for side in "rst" if "several" in arguments else "rs":
            (folder / side).mkdir(parents=True, exist_ok=True)
        if daemon:
            self._socket.parent.mkdir(0o700)
            self.start_daemon()
        self.start()

    def start(self) -> None:
        """Start the job."""
        self.starts += 1
        device: dict[str, Any] = {} if self._daemon is None else {"device": "daemon", "socket": str(self._socket)}
        groups = {} if self._groups is None else {"groups": next(self._groups)}
        self.process = self._run("tests.chaos.app", str(self.folder), json.dumps(self._arguments | device | groups))

    def start_daemon(self) -> None:
        """Start the daemon, and wait until it answers."""
        self._daemon = self._run("splitjoin", "daemon", "--device", "cpu", "--count", "2", "--option", "threads=1",
                                 "--socket", str(self._socket))
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                daemon_status(self._socket)
                return
            except DeviceError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def kill_daemon(self) -> None:
        """Kill the daemon, and start another one."""
        assert self._daemon is not None
        self._daemon.kill()
        self._daemon.wait()
        self.start_daemon()

    def kill(self) -> None:
        """Kill the JVM, and with it the driver that started it; Python workers end when it has gone."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ended(self) -> bool:
        """True if the job does not run any more."""
        return self.process.poll() is not None

    def close(self) -> None:
        """End whatever still runs."""
        if self.process.poll() is None:
            self.kill()
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()

    def _run(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "job.log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=ROOT, stdout=log, stderr=log,
                                    start_new_session=True)


def run(folder: Path, *, kills: int, seed: int, daemon: bool = False, sql: bool = False, how: str = "inner",
        idle: str | None = None, watermark: str | None = None, early: bool = False, endless: bool = False,
        one_sided: bool = False, named: bool = False, streams: int = 2, aggregate: bool = False, regroup: bool = False,
        sink: str | None = None, say: Callable[[str], None] = lambda _: None) -> Chaos:
    """Run the job in ``folder``, kill it ``kills`` times, and check its rows.

    ``daemon``: the join runs on devices of a daemon, which is killed too. ``sql``: it is in plain SQL, which has none
    of the following. ``how``: its kind. ``idle``: the time after which a silent stream does not count; then S is silent
    for longer before each kill, and some of its rows, which follow, are late. ``watermark``: the rule of lateness.
    ``early``: rows come early, and those that are not taken back count. ``endless``: the join, an as-of join by a key,
    has no window. ``one_sided``: S has no say in the watermark. ``named``: it has several conditions. ``streams``: 3
    for a join of three streams in two steps, which has none of these. ``aggregate``: rows of R with aggregates of their
    partners. ``regroup``: each start has another number of groups. ``sink``: "delta" or "iceberg" for a table of this
    kind, which gets the rows of two streams. Raises `AssertionError` if a row is missing, wrong
    or there twice.
    """
    sides = "rst"[:streams]
    chance = random.Random(seed)
    done, files = Chaos(), 0
    # Without an equality, one group decides the rows of tuples of S that met nothing.
    join: dict[str, Any] = (ENDLESS if endless else JOIN) | {"how": how, "groups": 1 if how in ("right", "full") else 2}
    if named:
        join = join | {"on": NAMED}
    if aggregate:
        join = join | {"by": "r", "aggregate": AGGREGATES, "select": ["n"]}
    job = Job(folder, daemon, {"sql": PLAIN} if sql else {
        "several": SEVERAL, "window": WINDOWS, "time": "ts", "groups": 2} if streams > 2 else join | {
        "idle": idle, "watermark": watermark, "early": early, "one_sided": one_sided, "sink": sink},
        cycle(GROUPS) if regroup else None)
    try:
        for n in range(kills):
            files = _feed(folder, files, 1, seed, sides)
            _go_on(job)
            more = 2 + chance.randrange(4)
            if idle is not None:
                more = 6
                for ahead in range(more):
                    _feed(folder, files + ahead, 1, seed, "r")
                    _go_on(job)
            files = _feed(folder, files, more, seed, sides if idle is None else "s")
            time.sleep(chance.uniform(0.0, 1.5))  # the kill comes anywhere in the micro-batches of these files
            workers, kind = _workers(job.process.pid), chance.random()
            if daemon and kind < 0.4:
                job.kill_daemon()
                done.daemons += 1
                say(f"{n + 1}: the daemon was killed")
            elif workers and kind < 0.6 and _killed(chance.choice(workers)):
                done.workers += 1
                say(f"{n + 1}: a Python worker was killed")
            else:
                job.kill()
                done.jvms += 1
                say(f"{n + 1}: the JVM was killed")
        files = _feed(folder, files, 1, seed, sides)
        _go_on(job)
        _end(folder, files, sides)
        (folder / "stop").touch()
        if _ended(job) != 0:  # killed before, and noticed only now
            job.start()
            if _ended(job) != 0:
                raise AssertionError(f"the job failed: {_log(folder)}")
    finally:
        job.close()
    # Rows with equal times are in the order of their other columns, as Spark has no other.
    tables = {side: pa.concat_tables([_table(side, n, seed) for n in range(files)]).sort_by(
        [("ts", "ascending"), (COLUMNS[side], "ascending"), ("n", "ascending")]) for side in sides}
    if streams > 2:
        assert not list((folder / "late").rglob("*.parquet")), "rows of streams in order are late"
        want = _counted(splitjoin.sql(SEVERAL, **tables, window=WINDOWS, time="ts").to_arrow())
        return _compared(done, job, want, folder, ["n_r", "n_s", "n_t"])
    r, s = tables.values()
    late = {side: _late(folder, which) for side, which in (("r", "left"), ("s", "right"))}
    done.late = sum(map(len, late.values()))
    r, s = (table.filter(pa.compute.invert(pa.compute.is_in(table["n"], late[side])))
            for side, table in (("r", r), ("s", s)))
    columns = ["n"] if how in ("semi", "anti") or aggregate else ["n_r", "n_s"]
    alone: dict[str, Any] = dict(ENDLESS if endless else JOIN)
    if aggregate:
        alone |= {"by": "r", "aggregate": AGGREGATES}
    want = Counter[tuple[Any, ...]]()
    for name, on in (NAMED if named else {"": alone["on"]}).items():
        of = _counted(splitjoin.join(r, s, **alone | {"on": on}, how=how, select=columns).to_arrow())
        want += Counter({(*[name] * named, *row): count for row, count in of.items()})
    if aggregate:
        columns = [*columns, *AGGREGATES]
    return _compared(done, job, want, folder, [*["query"] * named, *columns], early, sink)


def _compared(done: Chaos, job: Job, want: Counter[tuple[Any, ...]], folder: Path, columns: list[str],
              early: bool = False, sink: str | None = None) -> Chaos:
    """The record ``done`` of a run whose rows, in these ``columns``, are ``want``, which is asserted."""
    batches, found = _written(folder, [*columns, *["operation"] * early], sink)
    got = _counted(found.select(columns))
    if early:
        given, back = (_counted(found.filter(pa.compute.equal(found["operation"], sign)).select(columns))
                       for sign in "+-")
        assert given >= back > Counter(), "rows are taken back that were not given, or none is"
        got = given - back
    # The rows that end the input, of kinds that give rows that met nothing.
    got = Counter({row: count for row, count in got.items() if -1 not in row})
    missing, surplus = want - got, got - want
    assert got == want, (f"{missing.total()} rows are missing, such as {sorted(missing, key=str)[:9]}; "
                         f"{surplus.total()} should not be there, such as {sorted(surplus, key=str)[:9]}")
    done.starts, done.batches, done.pairs = job.starts, batches, got.total()
    return done


def _written(folder: Path, columns: list[str], sink: str | None) -> tuple[int, pa.Table]:
    """The number of micro-batches that were written, and their rows."""
    if sink == "delta":
        from deltalake import DeltaTable

        delta = DeltaTable(str(folder / "out"))
        return delta.version() + 1, delta.to_pyarrow_table(columns=columns)
    if sink == "iceberg":
        table = iceberg(folder).load_table("chaos.out")
        return len(table.snapshots()), table.scan(selected_fields=tuple(columns)).to_arrow()
    batches = sorted((folder / "out").iterdir())
    return len(batches), pa.concat_tables(pq.ParquetDataset(str(b), partitioning=None).read(columns) for b in batches)


def iceberg(folder: Path) -> Any:
    """The catalogue of Iceberg tables in ``folder``."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("chaos", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace_if_not_exists("chaos")
    return catalog


def _late(folder: Path, which: str) -> pa.Array:
    """The numbers of the late rows of ``which`` stream."""
    files = sorted((folder / "late" / which).glob("*.parquet"))
    found = [pa.array([], pa.int64()), *(pq.read_table(f)["n"].combine_chunks() for f in files)]
    return pa.concat_arrays(found)


def _counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _table(side: str, n: int, seed: int) -> pa.Table:
    """File number ``n`` of a stream: times that follow those of the file before, with ties."""
    rng = np.random.default_rng([seed, n, "srt".index(side)])
    ts = np.sort(rng.integers(n * 60, (n + 1) * 60, _ROWS))
    return pa.table({"ts": ts, COLUMNS[side]: rng.integers(0, 100, _ROWS).astype(np.int32),
                     "n": np.arange(n * _ROWS, (n + 1) * _ROWS)})


def _feed(folder: Path, files: int, more: int, seed: int, sides: str = "rs") -> int:
    """Add ``more`` files of each of the ``sides``; returns how many there are."""
    for n in range(files, files + more):
        for side in sides:
            (folder / side).mkdir(exist_ok=True)
            part = folder / f"{side}{n}.part"
            pq.write_table(_table(side, n, seed), part)
            os.utime(part, (10**9 + n, 10**9 + n))
            part.rename(folder / side / f"{n:06d}.parquet")
    return files + more


def _end(folder: Path, files: int, sides: str) -> None:
    """Add a last file of each stream, whose row meets nothing and brings the watermark past all others."""
    for side in sides:
        name, value = COLUMNS[side], {"r": -1000, "s": 1000, "t": 3000}[side]
        part = folder / f"{side}.end"
        pq.write_table(pa.table({"ts": [10**9], name: pa.array([value], pa.int32()), "n": [-1]}), part)
        os.utime(part, (10**9 + files, 10**9 + files))
        part.rename(folder / side / f"{files:06d}.parquet")


def _go_on(job: Job) -> None:
    """Wait until the job has finished one more micro-batch; a job that has ended is started again."""
    before, began, starts = _finished(job.folder), time.monotonic(), job.starts
    while _finished(job.folder) == before:
        if _is_over(began) or job.starts > starts + 3:
            raise AssertionError(f"the job does not go on: {_log(job.folder)}")
        if job.ended():
            job.start()
        time.sleep(0.02)


def _is_over(began: float) -> bool:
    """True if a job has had its time since ``began``, the longer the more processes wait for a core."""
    return time.monotonic() > began + _PATIENCE * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _ended(job: Job) -> int:
    """Wait until the job has ended, which finishes micro-batches meanwhile; its exit status."""
    before, began = -2, 0.0
    while (status := job.process.poll()) is None:
        if (now := _finished(job.folder)) != before:
            before, began = now, time.monotonic()
        if _is_over(began):
            raise AssertionError(f"the job neither goes on nor ends: {_log(job.folder)}")
        time.sleep(0.1)
    return status


def _finished(folder: Path) -> int:
    """The number of the last micro-batch that Spark has committed, or -1."""
    return max((int(p.name) for p in (folder / "checkpoint" / "commits").glob("[0-9]*")), default=-1)


def _workers(job: int) -> list[int]:
    """The Python workers of the job: the children of their daemon."""
    children = _children()
    found, todo = [], [job]
    while todo:
        one = todo.pop()
        todo += children.get(one, [])
        if _is_daemon(one):
            found += [c for c in children.get(one, []) if _is_daemon(c)]
    return found


def _is_daemon(process: int) -> bool:
    """True for the daemon of Python workers, PySpark's or `splitjoin.spark.daemon`, and for workers, its copies."""
    return re.search(r"\b(pyspark|splitjoin\.spark)\.daemon\b", _command(process)) is not None


def _killed(process: int) -> bool:
    """Kill ``process``; False if it has ended by itself meanwhile."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            found.setdefault(parent, []).append(int(entry.name))
    return found


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _log(folder: Path) -> str:
    return "".join((folder / name).read_text(errors="replace")[-3000:] for name in ("job.log", "spark.log")
                   if (folder / name).exists())
