"""Numbers of random examples and cases: `make test` takes a quarter of an hour, `make test-long` samples at length."""

from __future__ import annotations

import os
from typing import Any

import pytest

__all__ = ["at_length", "examples"]

_TIMES = int(os.environ.get("SPLITJOIN_TEST_EXAMPLES", "1"))


def examples(n: int) -> int:
    """Number of random examples of a test: ``n`` times $SPLITJOIN_TEST_EXAMPLES, by default 1."""
    return n * _TIMES


def at_length(*values: Any) -> Any:
    """A case of a parametrized test that only `make test-long` runs, as others find the same faults sooner."""
    return pytest.param(*values, marks=pytest.mark.long)
