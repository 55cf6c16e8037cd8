"""How much the tests sample: `make test` in a quarter of an hour, `make test-long` at length."""

from __future__ import annotations

import os
from typing import Any

import pytest

__all__ = ["at_length", "examples"]

_TIMES = int(os.environ.get("SPLITJOIN_TEST_EXAMPLES", "1"))


def examples(n: int) -> int:
    """Random examples of a test: ``n``, or so many times ``n`` as $SPLITJOIN_TEST_EXAMPLES says."""
    return n * _TIMES


def at_length(*values: Any) -> Any:
    """A case of a parametrized test that only `make test-long` runs, as others find the same faults sooner."""
    return pytest.param(*values, marks=pytest.mark.long)
