"""Numbers of random examples and cases: few in `make test`, which CI runs, and many in `make test-long`."""

from __future__ import annotations

import os
from typing import Any

import pytest

__all__ = ["at_length", "examples"]

# CI draws the same ones in every run (tests/conftest.py), so that more of them would find nothing new there.
_TIMES = float(os.environ.get("SPLITJOIN_TEST_EXAMPLES", "0.5"))


def examples(n: int) -> int:
    """Number of random examples of a test: ``n`` times $SPLITJOIN_TEST_EXAMPLES, by default half of them."""
    return max(1, round(n * _TIMES))


def at_length(*values: Any) -> Any:
    """A case of a parametrized test that only `make test-long` runs, as others find the same faults sooner."""
    return pytest.param(*values, marks=pytest.mark.long)
