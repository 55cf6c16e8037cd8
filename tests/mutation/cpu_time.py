"""A plugin of pytest that says how many CPU seconds each test took: those of a loaded machine's clock say little."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

_took: dict[str, float] = {}


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
