"""With ``--dist loadgroup`` one worker runs all tests here: they share kernels, and two workers would compile most of
them twice, at the same time.
"""

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("kernels"))
