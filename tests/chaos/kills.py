"""The process that feeds a streaming job and kills it: `run`."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import splitjoin

from .app import JOIN

__all__ = ["Chaos", "run"]

ROOT = Path(__file__).parents[2]
#: Rows of each stream in a file, and seconds in which the job must have joined all input that is there.
_ROWS, _PATIENCE = 200, 300


@dataclass
class Chaos:
    """What a run did: kills of the JVM and of Python workers, micro-batches, and pairs, all of which were right."""

    jvms: int = 0
    workers: int = 0
    batches: int = 0
    pairs: int = 0


def run(folder: Path, *, kills: int, seed: int, device: str = "cpu", options: Mapping[str, object] | None = None,
        say: Callable[[str], None] = lambda _: None) -> Chaos:
    """Run the job in ``folder``, kill it ``kills`` times, and check its rows.

    Raises `AssertionError` if a row is missing, wrong or there twice.
    """
    chance = random.Random(seed)
    done = Chaos()
    files = 0
    job = _started(folder, device, options or {})
    try:
        for n in range(kills):
            files = _feed(folder, files, 1, seed)
            if not _joins(folder, job):
                raise AssertionError(f"the job does not go on: {_log(folder)}")
            files = _feed(folder, files, 2 + chance.randrange(4), seed)
            time.sleep(chance.uniform(0.0, 1.5))  # the kill comes anywhere in the micro-batches of these files
            workers = _workers(job.pid)
            if workers and chance.random() < 0.6:
                os.kill(chance.choice(workers), signal.SIGKILL)
                done.workers += 1
                say(f"{n + 1}: a Python worker was killed")
            else:
                _kill_all(job)
                done.jvms += 1
                say(f"{n + 1}: the JVM was killed")
            if job.poll() is not None or not _alive(job.pid):
                job.wait()
                files = _feed(folder, files, 2, seed)
                job = _started(folder, device, options or {})
        files = _feed(folder, files, 3, seed)
        (folder / "stop").touch()
        if job.wait(_PATIENCE) != 0:
            raise AssertionError(f"the job failed: {_log(folder)}")
    finally:
        if job.poll() is None:
            _kill_all(job)
    r, s = (pa.concat_tables([_table(side, n, seed) for n in range(files)]) for side in "rs")
    want = Counter(zip(*(splitjoin.join(r, s, **JOIN, select=["n_r", "n_s"]).column(c).to_pylist()
                         for c in ("n_r", "n_s")), strict=True))
    batches = sorted((folder / "out").iterdir())
    found = [pq.ParquetDataset(str(b), partitioning=None).read(["n_r", "n_s"]) for b in batches]
    got = Counter(zip(*(pa.concat_tables(found).column(c).to_pylist() for c in ("n_r", "n_s")), strict=True))
    assert got == want, f"{(want - got).total()} pairs are missing, {(got - want).total()} should not be there"
    done.batches, done.pairs = len(batches), got.total()
    return done


def _table(side: str, n: int, seed: int) -> pa.Table:
    """File number ``n`` of a stream: times that follow those of the file before, with ties."""
    rng = np.random.default_rng([seed, n, side == "r"])
    ts = np.sort(rng.integers(n * 60, (n + 1) * 60, _ROWS))
    return pa.table({"ts": ts, "x" if side == "r" else "a": rng.integers(0, 100, _ROWS).astype(np.int32),
                     "n": np.arange(n * _ROWS, (n + 1) * _ROWS)})


def _feed(folder: Path, files: int, more: int, seed: int) -> int:
    """Add ``more`` files of each stream; returns how many there are."""
    for n in range(files, files + more):
        for side in "rs":
            (folder / side).mkdir(exist_ok=True)
            part = folder / f"{side}{n}.part"
            pq.write_table(_table(side, n, seed), part)
            os.utime(part, (10**9 + n, 10**9 + n))
            part.rename(folder / side / f"{n:06d}.parquet")
    return files + more


def _started(folder: Path, device: str, options: Mapping[str, object]) -> subprocess.Popen[bytes]:
    for side in "rs":
        (folder / side).mkdir(parents=True, exist_ok=True)
    with (folder / "job.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.chaos.app", str(folder), device, json.dumps(dict(options))]
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def _joins(folder: Path, job: subprocess.Popen[bytes]) -> bool:
    """Wait until the job has finished one more micro-batch. False if it ended, or does not do so."""
    before, end = _finished(folder), time.monotonic() + _PATIENCE
    while time.monotonic() < end and job.poll() is None:
        if _finished(folder) > before:
            return True
        time.sleep(0.02)
    return False


def _finished(folder: Path) -> int:
    """The number of the last micro-batch that Spark has committed, or -1."""
    return max((int(p.name) for p in (folder / "checkpoint" / "commits").glob("[0-9]*")), default=-1)


def _workers(job: int) -> list[int]:
    """The Python workers of the job: the children of PySpark's daemon."""
    children = _children()
    found, todo = [], [job]
    while todo:
        one = todo.pop()
        todo += children.get(one, [])
        if "pyspark.daemon" in _command(one):
            found += [c for c in children.get(one, []) if "pyspark.daemon" in _command(c)]
    return found


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


def _alive(process: int) -> bool:
    return any("java" in _command(c) for c in _children().get(process, []))


def _kill_all(job: subprocess.Popen[bytes]) -> None:
    """Kill the JVM, and with it the driver that started it; Python workers end when it has gone."""
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def _log(folder: Path) -> str:
    return "".join((folder / name).read_text(errors="replace")[-3000:] for name in ("job.log", "spark.log")
                   if (folder / name).exists())
