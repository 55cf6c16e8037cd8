"""A plugin of pytest that says how many CPU seconds each test took, as a loaded machine's clock says little, and ends
the process beyond a limit of all.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Generator
from typing import Any

import pytest

#: The variable of the environment with the most CPU seconds of the process.
CPU_SECONDS = "SPLITJOIN_MUTATION_CPU_SECONDS"
_took: dict[str, float] = {}


def pytest_configure() -> None:
    most = int(os.environ[CPU_SECONDS])
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    began = time.process_time()
    try:
        return (yield)
    finally:
        _took[item.nodeid] = time.process_time() - began


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for test, seconds in _took.items():
        terminalreporter.write_line(f"CPU {seconds:.1f} {test}")
