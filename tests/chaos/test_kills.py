"""A short run of `make chaos`."""

from pathlib import Path

import pytest

from ..support.sampling import at_length
from .kills import run


@pytest.mark.parametrize(("kills", "seed"), [(1, 6), at_length(2, 37)])  # of a Python worker; behind one of the JVM
def test_a_streaming_join_survives_kills(kills: int, seed: int, tmp_path: Path) -> None:
    """A JVM takes long to start; files outlast its end at each call to the disk in `tests/disk`."""
    done = run(tmp_path, kills=kills, seed=seed)
    assert done.jvms >= kills - 1
    assert done.workers >= 1
    assert done.pairs > 1000
