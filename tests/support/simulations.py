"""Simulations that tests share: preparing one takes longer than most runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tests.testbench.on_amaranth import Simulation


@lru_cache(maxsize=24)  # of one file of tests at most, as each takes megabytes
def simulation(component: Any, *arguments: Any, **options: Any) -> Simulation:
    """The simulation of ``component(*arguments, **options)``; each run of it begins after a reset."""
    return Simulation(component(*arguments, **options))
