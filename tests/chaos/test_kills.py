"""A short run of `make chaos`."""

from pathlib import Path

import pytest

from .kills import run


@pytest.mark.long  # starts Spark three times; clients, servers and epochs are killed by other tests
def test_a_streaming_join_survives_kills(tmp_path: Path) -> None:
    done = run(tmp_path, kills=2, seed=37)
    assert done.jvms >= 1
    assert done.workers >= 1
    assert done.pairs > 1000
