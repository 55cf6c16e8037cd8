"""Numbers of random examples and cases: few in `make test`, which CI runs, and many in `make test-long`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

# CI draws the same ones in every run (tests/conftest.py), so that more of them would find nothing new there.
_TIMES = float(os.environ.get("SPLITJOIN_TEST_EXAMPLES", "0.35"))
#: What `make test-long` sets.
_LONG = 5


def examples(n: int, long: int = 0) -> int:
    """Number of random examples of a test: ``n`` times $SPLITJOIN_TEST_EXAMPLES, by default a third of them; at
    least ``long`` in `make test-long`.
    """
    return max(1, round(n * _TIMES), long if _TIMES >= _LONG else 0)


def at_length(*values: Any) -> Any:
    """A case of a parametrized test that only `make test-long` runs, as others find the same faults sooner."""
    return pytest.param(*values, marks=pytest.mark.long)


def cut(first: int, n: int, most: int = 1000) -> Iterator[range]:
    """The ``n`` seeds from ``first`` on, in parts of ``most``, after each of which a long run says where it is."""
    for start in range(first, first + n, most):
        yield range(start, min(start + most, first + n))
