"""`RowsCache`: Python workers go on with kept `GroupRows` only from the version that these have seen."""

from __future__ import annotations

from typing import Any

import pytest

from splitjoin.spark.streaming import rows_cache
from splitjoin.spark.streaming.rows_cache import RowsCache


class Kept:
    """A `GroupRows` that tells whether it was closed."""

    takes_pairs, closed = False, False

    def close(self) -> None:
        self.closed = True


def test_what_is_kept_goes_on_from_its_own_version_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that is repeated begins with the version before, and what has seen the step already would skip it."""
    monkeypatch.setattr(rows_cache, "_chosen", lambda _: Kept())
    join: Any = None  # of which the replaced choice asks nothing
    cache, first, later = RowsCache(), Kept(), Kept()
    cache.keep("g0", "version 3", first)
    assert cache.take("g0", "version 3", join) is first
    assert not first.closed
    cache.keep("g0", "version 4", later)
    assert cache.take("g0", "version 3", join) not in (first, later)
    assert later.closed
    assert cache.take("g0", "version 4", join) is not later
