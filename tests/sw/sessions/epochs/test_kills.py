"""A process that writes epochs, killed at random moments: kill -9, which nothing can catch."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import splitjoin
from splitjoin.sessions.epochs import epoch_files

from ....support.sampling import at_length, examples
from .run import THREE, offers, orders

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("streams", ["two", at_length("three")])
def test_every_row_is_in_one_epoch_though_the_process_is_killed(tmp_path: Path, streams: str) -> None:
    chance, kills, interrupted = random.Random(7), 0, 0
    wanted = splitjoin.join(orders(), offers(), on="abs(r.x - s.a) <= 5", window="RANGE 40", time="ts", how="full",
                            device="golden").table.to_pylist()
    if streams == "three":
        wanted = splitjoin.sql(**THREE, o=orders(), f=offers(), p=orders(), device="golden").table.to_pylist()
    while True:
        process = subprocess.Popen([sys.executable, "-m", "tests.sw.sessions.epochs.run", str(tmp_path), streams],
                                   cwd=ROOT)
        try:
            if kills < examples(2):
                have = len(epoch_files(tmp_path))
                deadline = time.monotonic() + 120
                while len(epoch_files(tmp_path)) < have + 1 and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.005)
                time.sleep(chance.random() * 0.1)
                process.kill()
                kills += 1
                interrupted += process.wait() == -9
            else:
                assert process.wait(300) == 0
        finally:
            process.kill()
            process.wait()
        found = [row for file in epoch_files(tmp_path) for row in pq.read_table(file).to_pylist()]
        assert found == wanted[:len(found)]
        if kills == examples(2) and process.returncode == 0:
            break
    assert found == wanted
    assert interrupted
