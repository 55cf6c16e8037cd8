"""Waiting for what must happen: for long, as a loaded machine gives a test a twentieth of a core."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds after which something that should happen soon counts as not happening.
SOON = 600.0


def until(holds: Callable[[], Any]) -> Any:
    """Wait until ``holds`` gives something true, which must stay so, and return it."""
    end = time.monotonic() + SOON
    while not (found := holds()):
        assert time.monotonic() < end, "it should have happened by now"
        time.sleep(0.01)
    return found
