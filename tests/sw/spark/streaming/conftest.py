"""Each test of streaming joins starts as a Python worker that remembers nothing."""

from collections.abc import Iterator

import pytest

from splitjoin.spark.streaming import task as tasks


@pytest.fixture(autouse=True)
def _new_worker() -> Iterator[None]:
    # What a test of another module left would be there before the first test, not only after each one.
    tasks._CACHE.clear()
    tasks._SESSIONS.clear()
    yield
    tasks._CACHE.clear()
    tasks._SESSIONS.clear()
