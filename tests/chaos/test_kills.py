"""A short run of `make chaos`."""

from pathlib import Path

import pytest

from .kills import run


def test_a_streaming_join_survives_kills(tmp_path: Path) -> None:
    done = run(tmp_path, kills=2, seed=37)
    assert done.jvms >= 1
    assert done.workers >= 1
    assert done.pairs > 1000


@pytest.mark.long  # tests/sw/spark/test_chains.py restarts such a join from its checkpoint
def test_a_join_of_three_streams_survives_kills(tmp_path: Path) -> None:
    done = run(tmp_path, kills=3, seed=37, streams=3)
    assert done.jvms >= 1
    assert done.workers >= 1
    assert done.pairs > 1000


@pytest.mark.long  # tests/sw/spark/test_streamed_sql.py restarts such a join from its checkpoint
def test_a_streaming_join_in_plain_sql_survives_a_kill(tmp_path: Path) -> None:
    done = run(tmp_path, kills=1, seed=1, sql=True)
    assert done.jvms == 1
    assert done.pairs > 1000
